"""What people are told of once for each value, as an unknown code: not again for each incident that shows it."""

from brain.core.context import Context
from brain.core.state import Incident

ONCE_S = 30 * 86_400.0  # how long a value of `page_once` counts as paged
TOLD_BY = 2  # nodes that have shown a value, when it counts as told for all
MAX_ONCE = 100  # values that are remembered of one node


def is_new(ctx: Context, incident: Incident) -> bool:
    """Whether the incident may be paged: not if its rule pages once for a value that people were told of.

    They were told for a node when it was paged for that node, and for all when TOLD_BY nodes have shown it: one alone could
    use up every value that is to come (decision 33).
    """
    if not incident.page_once or incident.pages.first_at:
        return True
    known = ctx.state.paged_once
    for value, by in list(known.items()):
        for source in [source for source, at in by.items() if at <= ctx.now - ONCE_S]:
            del by[source]
        if not by:
            del known[value]
    source = incident.node or incident.scope
    told = known.get(incident.page_once, {})
    if source in told or len(told) >= TOLD_BY:
        return False
    known.setdefault(incident.page_once, {})[source] = ctx.now
    mine = [value for value, by in known.items() if source in by]
    if len(mine) > MAX_ONCE:
        oldest = min(mine, key=lambda value: known[value][source])
        del known[oldest][source]
        if not known[oldest]:
            del known[oldest]
    return True
