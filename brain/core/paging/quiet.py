"""What lies wholly within an open maintenance window calls nobody before the window ends (decision 71).

People have said that they work there: that it is dark is no news to them. What is over by the end of its window was never
paged; what is not is paged then, as new. P0 waits for nothing; the shared cause of a place in whose window it is is none
(decision 85). A hold is another word: it stops gpuward, and people are told.
"""

from brain.core import stops
from brain.core.context import Context
from brain.core.pack.spec import Priority, Window
from brain.core.pack.topology import type_of
from brain.core.state import Incident

TIMER = "quiet"  # when the window of an incident ends
# Of a leaf switch in the window of its rack neither contains the other: its ill nodes say where it is.
_BY_NODES = ("chassis", "nvlink", "leaf", "rack", "power", "cooling", "row", "pod")


def waits(ctx: Context, incident: Incident, to: str, text: str) -> bool:
    """Whether the first page of a channel group waits for the end of a window: then `text` is what it will say. What people were
    told of before the window opened waits for nothing.
    """
    pages = incident.pages
    if pages.first_at or pages.was is not None:
        return False
    around = _windows(ctx, incident)
    if not around:
        over(ctx, incident)
        return False
    if not pages.later:
        told = stops.text(around[-1])
        why = f"{told}; nobody is called before that ends, and then if it is still so: {text}"
        ctx.note("page.waits", why, incident=incident.id, scope=incident.scope)
    pages.later[to] = text
    ctx.set_timer(f"{TIMER}:{incident.id}", around[-1].until)
    return True


def over(ctx: Context, incident: Incident) -> None:
    """Its pages wait no more."""
    if incident.pages.later:
        incident.pages.later = {}
        ctx.cancel_timer(f"{TIMER}:{incident.id}")


def _windows(ctx: Context, incident: Incident) -> list[Window]:
    """The open windows within which the incident lies with all of its nodes; the one that ends last comes last."""
    if incident.severity is Priority.P0:
        return []
    contains, scope = ctx.compiled.topology.contains, incident.scope
    found = []
    for window in stops.windows(ctx):
        inside = contains(window.scope, scope)
        if not inside and type_of(scope) in _BY_NODES and incident.nodes == len(incident.affected) > 0:
            inside = all(contains(window.scope, f"node/{node}") for node in incident.affected)
        if inside:
            found.append(window)
    return sorted(found, key=lambda window: window.until)
