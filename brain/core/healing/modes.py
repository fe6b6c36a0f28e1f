"""How far a runbook may go by itself on a node: what the site has set, what people have said since, what gpuward took back."""

from collections.abc import Iterable
from fnmatch import fnmatchcase

from brain.core.context import Context
from brain.core.pack.spec import Mode, ModeSetting
from brain.core.state import GPUWARD, ModeOverride

_STRICTEST_FIRST = (Mode.OBSERVE, Mode.APPROVE, Mode.AUTO)


def mode_of(ctx: Context, runbook: str, node: str, at_most: Mode) -> Mode:
    """The mode in force for a runbook on a node; OBSERVE always with `observe_all`."""
    if ctx.observe_all:
        return Mode.OBSERVE
    return in_force(ctx.compiled.settings.modes, ctx.state.modes, runbook, node, at_most)


def in_force(
    site: Iterable[ModeSetting], said: Iterable[ModeOverride], runbook: str, node: str, at_most: Mode
) -> Mode:
    """What people said last that fits, else the last setting of the site that fits, else OBSERVE; never looser than `at_most`.

    What gpuward has taken back only makes stricter what was said before it. `node`: `*` is where nothing is set for a node.
    """
    mode = Mode.OBSERVE
    for setting in site:
        if fits(setting.runbook, runbook) and fits(setting.nodes, node):
            mode = setting.mode
    for override in said:
        if fits(override.runbook, runbook) and fits(override.nodes, node):
            mode = _stricter(mode, override.mode) if override.why else override.mode
    return _stricter(mode, at_most)


def _stricter(one: Mode, other: Mode) -> Mode:
    return min(one, other, key=_STRICTEST_FIRST.index)


def fits(pattern: str, name: str) -> bool:
    """Whether a mode's glob is about this runbook, or this node."""
    return pattern == "*" or fnmatchcase(name, pattern)


def taken_back(ctx: Context, runbook: str) -> str:
    """Why gpuward itself has set the runbook's mode, as a clause; empty: a person has, or the configuration."""
    why = [one.why for one in ctx.state.modes if one.why and one.runbook == runbook]
    return f" (set by {GPUWARD}: {why[-1]})" if why else ""
