"""What the brain does itself: BMCs, schedulers, subnet managers, switches. A new action is its row in
`brain/core/actions.py`, its file here and its line in `AREAS`.
"""

from collections.abc import Awaitable, Callable, Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass
from typing import Protocol

from agent.contract.errors import Refused
from brain.actions import bmc, scheduler
from brain.actions.base import Action, Fleet, Scheduler
from brain.actions.subnet_manager import subnet_managers
from brain.actions.switch import Switches, port_actions
from brain.actions.switch_command import CommandSwitches, command_switches
from brain.actions.switch_ufm import UfmSwitches, ufm_switches
from brain.config import BrainConfig
from brain.options import kind
from brain.ufm import ufms


@dataclass(frozen=True, slots=True, kw_only=True)
class Site:
    """What an area is built from."""

    config: BrainConfig
    fleet: Fleet
    schedulers: Callable[[str], Scheduler | None]  # node -> the scheduler that has it
    on_close: Callable[[Callable[[], Awaitable[object]]], object]  # closes connections at the end


class Area(Protocol):
    """A group of actions that share their configuration."""

    def __call__(self, site: Site) -> list[Action]:
        """Its actions; empty when the site configures nothing for them. ConfigError names the key."""
        ...


def _subnet_managers(site: Site) -> list[Action]:
    return subnet_managers(dict(site.config.subnet_managers), site.fleet)


def _switches(site: Site) -> list[Action]:
    known = ufms(site.config.ufm)
    for one in known.values():
        site.on_close(one.close)
    backends: list[Switches] = []
    for name, table in site.config.switches.items():
        where = f"switches.{name}"
        if kind(table, where, _SWITCHES) == "ufm":
            backends.append(ufm_switches(table, where, known))
        else:
            backends.append(command_switches(table, where))
    return port_actions(backends)


_SWITCHES = {"ufm": UfmSwitches, "command": CommandSwitches}
AREAS: tuple[Area, ...] = (bmc.area, scheduler.area, _subnet_managers, _switches)


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
