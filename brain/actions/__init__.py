"""What the brain does itself: BMCs, schedulers, subnet managers, switches. A new action is its row in
`brain/core/actions.py`, its file here and its line in `AREAS`.
"""

from collections.abc import Awaitable, Callable, Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass
from typing import Protocol

from agent.contract.errors import Refused
from brain.actions.base import Action, Fleet, Scheduler
from brain.actions.subnet_manager import subnet_managers
from brain.config import BrainConfig


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


AREAS: tuple[Area, ...] = (_subnet_managers,)


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
        schedulers=lambda _: None,
        on_close=stack.push_async_callback,
    )
    built = {action.name: action for area in AREAS for action in area(site)}
    return Own(actions=built, schedulers=site.schedulers)


def missing(action: str) -> Refused:
    """Why an action that is declared cannot be done here."""
    return Refused(f"this site's configuration has nothing for {action} (docs/actions.md says what it needs)")
