"""What the brain does itself, by BMCs, schedulers, subnet managers and switches: one line in AREAS for each area."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field

from agent.contract.errors import Refused
from brain.actions import bmc, scheduler, subnet_manager, switches
from brain.actions.base import Action, ActionGroup, NodeCommands, NodeWitness, Scheduler, Site
from brain.config import BrainConfig
from brain.core.inputs import Reported

AREAS: tuple[ActionGroup, ...] = (bmc.area, scheduler.area, subnet_manager.area, switches.area)


def no_others(_put: Callable[[Reported], None], _leads: Callable[[], bool]) -> Sequence[NodeWitness]:
    """A real site has those of its configuration only."""
    return ()


@dataclass(frozen=True, slots=True, kw_only=True)
class SiteActions:
    """What a brain can do itself with the configuration of its site."""

    # By the name of the action
    actions: Mapping[str, Action]
    # node -> the scheduler that has it
    schedulers: Callable[[str], Scheduler | None]
    # By the name of the table, to be asked what our account may do there
    accounts: Mapping[str, scheduler.Closing] = field(default_factory=dict)
    # (publishes a report to the log, does this brain lead?) -> who says something of nodes beside what the configuration has
    witnesses: Callable[[Callable[[Reported], None], Callable[[], bool]], Sequence[NodeWitness]] = no_others


def build(config: BrainConfig, commands: NodeCommands, stack: AsyncExitStack) -> SiteActions:
    """Builds all actions that the configuration allows; `stack` closes their connections. ConfigError names the key."""
    site = Site(
        config=config,
        node_commands=commands,
        schedulers=scheduler.choose(config.schedulers, stack.push_async_callback),
        on_close=stack.push_async_callback,
    )
    built = {action.name: action for area in AREAS for action in area(site)}
    accounts = {name: scheduler.built(name, table) for name, table in config.schedulers.items()}
    for one in accounts.values():
        stack.push_async_callback(one.close)
    return SiteActions(actions=built, schedulers=site.schedulers, accounts=accounts)


Request = Callable[[str, bytes, float], Awaitable[bytes]]  # node, body, timeout in s -> its answer
# How a brain gets its own actions. A real brain has one way, a simulated fleet brings another, and no configuration can
# choose between them (law 9: neither reaches what belongs to the other).
BuildActions = Callable[[BrainConfig, NodeCommands, AsyncExitStack, Request], SiteActions]


def build_real(
    config: BrainConfig, commands: NodeCommands, stack: AsyncExitStack, _ask: Request
) -> SiteActions:
    """Builds the actions on real BMCs, schedulers, subnet managers and switches, as configured."""
    return build(config, commands, stack)


def missing(action: str) -> Refused:
    """Returns the refusal of an action that is declared but not configured here."""
    return Refused(f"this site's configuration has nothing for {action} (docs/actions.md says what it needs)")
