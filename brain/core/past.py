"""What people hear of the past of a fault: of its card elsewhere, of the shared cause that has left it behind, and over what
time a place fell ill. Pure.
"""

from brain.core import several
from brain.core.context import Context
from brain.core.faults import cards, creeping, tails, wider
from brain.core.pack.spec import Rule
from brain.core.state import Incident


def tell(ctx: Context, incident: Incident, rule: Rule) -> None:
    """An incident opens: remembers that its card had it, and writes why it is what the rule says."""
    told = [one for one in (cards.opened(ctx, incident), tails.left_by(ctx, incident)) if one is not None]
    if (found := wider.counted(ctx, rule, incident.scope)) is not None and found[1].crept:
        slow = creeping.because(ctx, *found)
        incident.slow, incident.slow_zh = (slow.en, slow.zh) if slow is not None else ("", "")
    incident.past = "; ".join(one.en for one in told)
    incident.past_zh = "；".join(one.zh for one in told)
    several.tell_why(incident, rule)
