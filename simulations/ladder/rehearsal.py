"""The tree of one runbook of a pack, by name: what a person asks for, and what CI asks for every runbook."""

from collections.abc import Callable, Mapping

from agent.contract.actions.spec import ActionSpec
from agent.contract.errors import ConfigError
from brain.core.pack.compiled import Compiled
from brain.core.pack.spec import Example, Expect, Pack
from simulations.ladder.fault import ToldFault, leading_to
from simulations.ladder.tree import MOST_PLAYS, TooMany, Tree, grown

NOTHING = Example(name="a healthy node", given=(), expect=Expect(nothing=True))


def rehearsed(
    pack: Pack,
    actions: Mapping[str, ActionSpec],
    runbook: str,
    cause: str = "",
    *,
    compile_pack: Callable[[Pack], Compiled] | None = None,
    fine: bool = True,
) -> Tree:
    """The tree. `cause`: of the fault; empty: the first that leads to the runbook, or none where only people start it.
    `fine`: see `grown`.

    ConfigError: there is no such runbook, no such fault leads to it, or it has too many ways.
    """
    found = {one.name: one for one in pack.runbooks}.get(runbook)
    if found is None:
        raise ConfigError(
            f"there is no runbook {runbook!r} (have: {', '.join(sorted(one.name for one in pack.runbooks))})"
        )
    faults = leading_to(pack, runbook)
    if cause and cause not in faults:
        raise ConfigError(
            f"no rule leads from {cause!r} to {runbook} (what does: {', '.join(faults) or 'nothing'})"
        )
    if not faults and not found.request:
        raise ConfigError(
            f"nothing leads to {runbook}: no rule names it with an example, and people may not start it"
        )
    cause = cause or next(iter(faults), "")
    example = faults[cause][1] if cause else NOTHING
    try:
        return grown(
            pack,
            actions,
            lambda: ToldFault(pack, example),
            runbook=runbook,
            cause=cause,
            compile_pack=compile_pack,
            fine=fine,
        )
    except TooMany as error:
        raise ConfigError(
            f"{runbook} has more ways than are played ({MOST_PLAYS} plays): each rung and each retry multiplies them; "
            f"give it fewer, or split it into two runbooks"
        ) from error
