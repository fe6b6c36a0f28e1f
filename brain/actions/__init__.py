"""What the brain does itself: BMCs, schedulers, subnet managers, switches. A new action is its row in
`brain/core/actions.py`, its file here and its line in `AREAS`.
"""

from collections.abc import Awaitable, Callable, Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass

from agent.contract.errors import Refused
from brain.actions import bmc, scheduler, subnet_manager, switches
from brain.actions.base import Action, Area, Fleet, Scheduler, Site
from brain.config import BrainConfig

AREAS: tuple[Area, ...] = (bmc.area, scheduler.area, subnet_manager.area, switches.area)


@dataclass(frozen=True, slots=True, kw_only=True)
class Own:
    """What this site's configuration makes possible."""

    actions: Mapping[str, Action]  # by name
    schedulers: Callable[[str], Scheduler | None]  # node -> the scheduler that has it


def build(config: BrainConfig, fleet: Fleet, stack: AsyncExitStack) -> Own:
    """Everything, closed with `stack`. ConfigError names the key."""
    site = Site(
        config=config,
        fleet=fleet,
        schedulers=scheduler.choose(config.schedulers, stack.push_async_callback),
        on_close=stack.push_async_callback,
    )
    built = {action.name: action for area in AREAS for action in area(site)}
    return Own(actions=built, schedulers=site.schedulers)


Ask = Callable[[str, bytes, float], Awaitable[bytes]]  # subject, body, patience in s -> the answer
# What the brain's own actions are made of. Production has one maker; a rehearsal brings its own, which no
# configuration can name (law 9: neither reaches what belongs to the other).
Make = Callable[[BrainConfig, Fleet, AsyncExitStack, Ask], Own]


def real(config: BrainConfig, fleet: Fleet, stack: AsyncExitStack, _ask: Ask) -> Own:
    """The actions on real BMCs, schedulers, subnet managers and switches, as configured."""
    return build(config, fleet, stack)


def missing(action: str) -> Refused:
    """Why an action that is declared cannot be done here."""
    return Refused(f"this site's configuration has nothing for {action} (docs/actions.md says what it needs)")
