"""The people of a site: when they look, what they do to a node, and when their hands are free. The same for every policy.

They are better than real ones: once they look they know what is wrong, and use the gentlest remedy that works.
"""

import random
from functools import partial
from math import exp

from simulations import changes as ch
from simulations.actions.base import Params
from simulations.changes import after
from simulations.faults import Fix
from simulations.month.draw import FaultCase
from simulations.month.world import World
from simulations.virtual_fleet import Call

MARK = "ann: under repair"  # the reason of their own drains
DAY_S = 86400.0
# Remedies that disturb no job.
_HARMLESS = (Fix.SET_MTU, Fix.RESTART_SERVICE, Fix.LOAD_MODULE, Fix.PERSISTENCE, Fix.REPLACE_MASTER)
_SETTLE_S = 60.0  # from the last step of a remedy until the node is given back


def hands_begin(now: float, shift: tuple[int, int]) -> float:
    """When hands are free: now, or at the next beginning of a shift (UTC, Monday to Friday)."""
    first, last = shift
    day = int(now // DAY_S)
    hour = (now - day * DAY_S) / 3600
    workday = (day + 3) % 7 < 5  # 1 January 1970 was a Thursday
    if workday and first <= hour < last:
        return now
    if not (workday and hour < first):
        day += 1
    while (day + 3) % 7 >= 5:
        day += 1
    return day * DAY_S + first * 3600.0


class People:
    """Whoever is called."""

    def __init__(self, world: World, *, at_once: bool = False) -> None:
        """`at_once`: they are no people but the best that there could be: only hands take them time."""
        self._at_once = at_once
        self._world = world
        self._fleet = world.fleet
        self._profile = world.month.profile
        self._settle_s = 1.0 if at_once else _SETTLE_S
        self._looks: dict[str, int] = {}
        # node -> what is called when they are done with it
        self.at_work: dict[str, list[Call]] = {}

    def look_s(self, node: str) -> float:
        """How long it takes until somebody who was called about this node knows what is wrong."""
        if self._at_once:
            return 0.0
        for case in self._world.open.get(node, {}).values():
            return case.look_s
        n = self._looks[node] = self._looks.get(node, 0) + 1
        chance = random.Random(f"gpuward {self._world.month.seed} look {node} {n}")  # noqa: S311  a simulation
        look = self._profile.people.look_minutes
        return round(60 * min(look.most, look.median * exp(look.sigma * chance.gauss(0.0, 1.0))), 3)

    def called(self, node: str, now: float, done: Call) -> None:
        """Somebody is called about a node, looks, repairs what is wrong, and then calls `done`. Several calls are one."""
        if node in self.at_work:
            self.at_work[node].append(done)
            return
        self.at_work[node] = [done]
        self._fleet.call(now + self.look_s(node), partial(self._look, node))

    def _look(self, node: str, now: float) -> None:
        world = self._world
        world.detected(node, now)
        world.decided(node, now)
        wrong = [case for case in world.open.get(node, {}).values() if not case.kind.benign]
        if not wrong:
            self._done(node, now)
            return
        if not (self._at_once and wrong[0].fixes):
            world.people_act(node)
        if Fix.REPLACE_MASTER in wrong[0].fixes:
            self._apply(node, wrong[0], now)  # no node is at fault
            return
        if not self._fleet.machines[node].state.drain_reason:
            self.drain(node, now)
        world.end_hurt_job(node, now)
        case = wrong[0]
        if not case.fixes:
            self._take_hands(node, case, now)
        elif case.fixes[0] in _HARMLESS or case.fixes[0] is Fix.LIMIT_POWER:
            self._apply(node, case, now)
        else:
            world.when_idle(node, partial(self._apply, node, case), now)

    def drain(self, node: str, now: float) -> None:
        """No new jobs."""
        self._world.acts(node, "scheduler.drain", now, people=True)
        self._fleet.apply(node, [after(0, ch.DrainSet(reason=MARK))], now)

    def _apply(self, node: str, case: FaultCase, now: float) -> None:
        if case.id not in self._world.open.get(node, {}):
            self._look(node, now)
            return
        took_s = remedy(self._world, node, case, case.fixes[0], now, people=True)
        self._fleet.call(now + took_s + self._settle_s, partial(self._look, node))

    def _take_hands(self, node: str, case: FaultCase, now: float) -> None:
        self._world.hands_begin(node, now)
        begin = hands_begin(now, self._profile.people.shift)
        self._fleet.call(begin + case.hands_s, partial(self._repaired, node))

    def _repaired(self, node: str, now: float) -> None:
        self._world.hands_end(node, now)
        self._fleet.apply(node, [after(0, ch.Repaired(stays_drained=True))], now)
        self._fleet.call(now + self._settle_s, partial(self._look, node))

    def _done(self, node: str, now: float) -> None:
        """The node is well: what people have drained they give back."""
        if self._fleet.machines[node].state.drain_reason == MARK:
            self._fleet.apply(node, [after(0, ch.DrainSet(reason=""))], now)
        for done in self.at_work.pop(node):
            done(now)


def remedy(world: World, node: str, case: FaultCase, fix: Fix, now: float, *, people: bool = False) -> float:
    """Applies a remedy to a node on which no job runs, by the action that does it; how long it takes, seconds."""
    fleet = world.fleet
    machine = fleet.machines[node]
    fault = machine.state.faults.get(case.id)
    component = fault.component if fault is not None else "node"
    boot_s = machine.state.times.boot_s
    away = machine.state.unreachable(now)
    ways: dict[Fix, tuple[str, Params]] = {
        Fix.RESET_GPU: ("gpu.reset", {"gpu": component}),
        Fix.RESET_ALL_GPUS: ("gpu.reset", {"gpu": "node"}),
        Fix.RELOAD_DRIVER: ("driver.reload", {}),
        Fix.LIMIT_POWER: ("gpu.power_limit", {"gpu": component, "percent": 70}),
        Fix.RESET_PORT: ("ib.port_reset", {"port": component}),
        Fix.RESET_NIC: ("nic.reset", {"nic": component}),
        Fix.RESTART_FABRIC_MANAGER: ("fabricmanager.restart", {}),
        Fix.SET_MTU: ("mtu.set", {"link": component, "mtu": 9000}),
        Fix.RESTART_SERVICE: ("service.restart", {"unit": component.partition("/")[2]}),
        Fix.LOAD_MODULE: ("module.load", {"module": fault.target if fault is not None else ""}),
        Fix.PERSISTENCE: ("gpu.persistence", {"gpu": component}),
        Fix.REPLACE_MASTER: ("sm.stop_master", {}),
        Fix.REBOOT: ("bmc.restart", {}) if away else ("node.reboot", {}),
        Fix.CYCLE_POWER: ("bmc.power_cycle", {}),
    }
    action, params = ways[fix]
    if fix not in _HARMLESS:
        world.acts(node, action, now, people=people)
    if action.startswith("bmc.") or fix is Fix.REPLACE_MASTER:
        for changed in fleet.infrastructure.perform(action, node, params, "", now).nodes:
            fleet.schedule(changed, now)
        fleet.schedule(node, now)
        return boot_s if action.startswith("bmc.") else 0.0
    took_s = machine.perform(action, params, now).took_s
    fleet.schedule(node, now)
    return took_s
