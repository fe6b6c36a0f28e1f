"""What people have said that keeps gpuward from acting: holds and maintenance windows. One place says which are in force."""

from collections.abc import Iterator

from brain.core.context import Context
from brain.core.pack.spec import Window
from brain.core.people import do
from brain.core.state import Hold, Incident

MAX_TOLD = 3  # a page names the first ones


def holds(ctx: Context) -> Iterator[Hold]:
    """The holds in force now."""
    return (one for one in ctx.state.holds.values() if not one.until or ctx.now < one.until)


def windows(ctx: Context) -> Iterator[Window]:
    """The maintenance windows that are open now."""
    return (one for one in ctx.compiled.settings.maintenance if one.since <= ctx.now < one.until)


def text(stop: Hold | Window) -> str:
    """A hold or a window as people read it."""
    if isinstance(stop, Hold):
        return f"{do(stop.who, 'holds')} {stop.scope}: {stop.why}"
    return f"{stop.scope} is in maintenance: {stop.why}"


def holds_on(ctx: Context, scope: str) -> tuple[str, ...]:
    """The holds that concern a scope now, as sentences."""
    topology = ctx.compiled.topology
    return tuple(text(one) for one in holds(ctx) if topology.meet(one.scope, scope))[:MAX_TOLD]


def told_on(ctx: Context, incident: Incident) -> tuple[str, ...]:
    """The holds and windows that concern an incident now, as sentences: whoever is woken by a node under somebody's hands
    reads whose they are.
    """
    topology = ctx.compiled.topology
    open_now = (text(one) for one in windows(ctx) if topology.meet(one.scope, incident.scope))
    return (*holds_on(ctx, incident.scope), *open_now)[:MAX_TOLD]
