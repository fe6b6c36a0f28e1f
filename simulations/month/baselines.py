"""What sites do without gpuward, on the same machines with the same faults: the policies that it is compared with.

Each is a little better here than in the field: people know what is wrong once they look, nothing is detected that is not
there, and no script has a bug. What a monitor can see stands with each kind of fault (simulations/month/kinds.py).
"""

from abc import abstractmethod
from functools import partial

from agent.contract.messages import UnsentEvent
from simulations import changes as ch
from simulations.changes import after
from simulations.faults import Fix
from simulations.month.draw import FaultCase, Month
from simulations.month.engine_fleet import times
from simulations.month.kinds import PeerRemedy
from simulations.month.people import People, remedy
from simulations.month.world import World
from simulations.virtual_fleet import VirtualFleet

SCRAPE_S = (
    15.0  # Prometheus' usual pause between two scrapes, and NVSentinel's between two looks at the journal
)
FOR_S = 300.0  # the usual `for: 5m` of an alert
CHECK_S = 300.0  # Slurm's HealthCheckInterval, and the period of Meta's checks (arXiv 2410.21680)
DOWN_S = 300.0  # Slurm's SlurmdTimeout
SETTLE_S = 60.0  # from the end of a boot until the scheduler has the node again
REBOOTS = 2  # in a day, then a person: as gpud
REMEDIES = 5  # in a week, then a person: as NVSentinel
DAY_S = 86400.0


class BaselineFleet(VirtualFleet):
    """A fleet under a policy that is not gpuward's."""

    name: str
    summary: str

    def __init__(self, month: Month) -> None:
        super().__init__(month.nodes, times=times(month.profile))
        self.world = World(self, month, self.name)
        self.world.began = self.began
        self.world.showed = self.showed
        self.people = People(self.world)
        self._order = {node: n for n, node in enumerate(month.nodes)}
        self._remedies: dict[str, list[float]] = {}

    def said(self, node: str, unsent: UnsentEvent, at: float, now: float) -> None:
        """See VirtualFleet: no agent of ours is heard."""

    def silent(self, node: str, since: float, now: float) -> None:
        """See VirtualFleet."""

    def heard_again(self, node: str, since: float, now: float) -> None:
        """See VirtualFleet."""

    @abstractmethod
    def began(self, case: FaultCase, node: str, now: float) -> None:
        """A fault has begun on a node: when the policy sees it, and what it does then."""

    def run(self, until_s: float) -> None:
        """Everything up to `until_s` after the start."""
        until = self.start + until_s
        while (at := self.next_at()) is not None and at <= until:
            self.pass_time(at)

    def lasts(self, case: FaultCase, node: str) -> bool:
        """Whether it is still there."""
        return case.id in self.world.open.get(node, {})

    def page(self, case: FaultCase, node: str, now: float) -> None:
        """Somebody is called, if it is still there."""
        if self.lasts(case, node):
            self.world.tally.pages += 1
            self.world.detected(node, now)
            self.people.called(node, now, self._done)

    def notice(self, case: FaultCase, node: str, now: float) -> None:
        """Nothing says it: somebody notices, because a job fails or by chance."""
        self.call(now + case.notice_s, partial(self._noticed, case, node))

    def _noticed(self, case: FaultCase, node: str, now: float) -> None:
        if self.lasts(case, node):
            self.world.detected(node, now)
            self.people.called(node, now, self._done)

    def showed(self, case: FaultCase, node: str, now: float) -> None:
        """The job has noticed a silent fault."""
        self.notice(case, node, now)

    def _done(self, now: float) -> None:
        """People are done: the policy has nothing more to do."""

    def next_look(self, node: str, now: float, every_s: float) -> float:
        """When something that looks at each node every so often looks next; the nodes are spread over the time."""
        phase = self._order[node] * 0.61803 * every_s % every_s
        return now + (phase - now) % every_s

    def too_often(self, node: str, now: float, most: int, within_s: float) -> bool:
        """Whether a node has had so many remedies; counts one more otherwise."""
        past = [at for at in self._remedies.get(node, ()) if now - at < within_s]
        self._remedies[node] = past
        if len(past) >= most:
            return True
        past.append(now)
        return False

    def drain(self, node: str, now: float) -> None:
        """No new jobs."""
        if not self.machines[node].state.drain_reason:
            self.world.acts(node, "scheduler.drain", now)
            self.apply(node, [after(0, ch.DrainSet(reason=self.name))], now)

    def give_back(self, node: str, now: float) -> None:
        """The drain of this policy ends, whatever is wrong with the node."""
        if self.machines[node].state.drain_reason == self.name:
            self.apply(node, [after(0, ch.DrainSet(reason=""))], now)


class Ideal(BaselineFleet):
    """No policy but a bound: whatever is wrong is known at once, and the gentlest remedy that works is begun at once."""

    name = "the ideal"
    summary = "a bound: all is known at once, and only what works is done; hands take the time that they take"

    def __init__(self, month: Month) -> None:
        super().__init__(month)
        self.people = People(self.world, at_once=True)

    def began(self, case: FaultCase, node: str, now: float) -> None:
        """See BaselineFleet."""
        if not case.kind.late and not case.kind.benign:
            self.people.called(node, now, self._done)

    def showed(self, case: FaultCase, node: str, now: float) -> None:
        """See BaselineFleet."""
        if self.lasts(case, node):
            self.people.called(node, now, self._done)


class PeopleAlone(BaselineFleet):
    """Nobody is told: somebody notices, looks, and repairs."""

    name = "people alone"
    summary = "no alerts: a failed job is noticed, then somebody looks and repairs"

    def began(self, case: FaultCase, node: str, now: float) -> None:
        """See BaselineFleet."""
        if not case.kind.late and not case.noise:
            self.notice(case, node, now)


class AlertingOnly(BaselineFleet):
    """Alerts page people, who do the rest."""

    name = "alerting only"
    summary = "exporters scraped every 15 s, alerts after 5 minutes; people do the rest"

    def began(self, case: FaultCase, node: str, now: float) -> None:
        """See BaselineFleet."""
        if case.kind.alerts:
            self.call(self.next_look(node, now, SCRAPE_S) + FOR_S, partial(self.page, case, node))
        elif not case.kind.late and not case.noise:
            self.notice(case, node, now)


class DrainAndReboot(BaselineFleet):
    """A health check drains a node for whatever it finds, and reboots it when it is idle; twice a day, then a person."""

    name = "drain and reboot"
    summary = "a check every 5 minutes drains and reboots for whatever it finds; after two in a day a person"

    def began(self, case: FaultCase, node: str, now: float) -> None:
        """See BaselineFleet."""
        if not case.kind.checked:
            if not case.kind.late and not case.noise:
                self.notice(case, node, now)
            return
        self._again(case, node, now)

    def _again(self, case: FaultCase, node: str, now: float) -> None:
        at = self.next_look(node, now, CHECK_S)
        if self.machines[node].state.unreachable(now):
            at = now + DOWN_S
        self.call(at, partial(self._check, case, node))

    def _check(self, case: FaultCase, node: str, now: float) -> None:
        if not self.lasts(case, node) or node in self.people.at_work or node in self._busy:
            return
        self.world.detected(node, now)
        self.world.decided(node, now)
        self.drain(node, now)
        if self.too_often(node, now, REBOOTS, DAY_S):
            self.page(case, node, now)
            self.call(now + CHECK_S, partial(self._wait_for_people, node))
            return
        self._busy[node] = None
        self.world.when_idle(node, partial(self._reboot, case, node), now)

    def __init__(self, month: Month) -> None:
        super().__init__(month)
        self._busy: dict[str, None] = {}  # nodes that wait for their reboot, or boot

    def _wait_for_people(self, node: str, now: float) -> None:
        if node in self.people.at_work:
            self.people.at_work[node].append(partial(self.give_back, node))
        else:
            self.give_back(node, now)

    def _reboot(self, case: FaultCase, node: str, now: float) -> None:
        took_s = remedy(self.world, node, case, Fix.REBOOT, now)
        self.call(now + took_s + SETTLE_S, partial(self._back, node))

    def _back(self, node: str, now: float) -> None:
        """`nextstate=RESUME`: the node is given back when it is up, and what is still wrong shows at the next check."""
        del self._busy[node]
        self.give_back(node, now)
        for case in list(self.world.open.get(node, {}).values()):
            if case.kind.checked:
                self._again(case, node, now)


class NvSentinel(AlertingOnly):
    """NVSentinel's published policy for what its monitors see; alerts and people for the rest."""

    name = "nvsentinel"
    summary = (
        "its monitors every 15 s: cordon, drain, GPU reset or reboot, five in a week; alerts for the rest"
    )

    def __init__(self, month: Month) -> None:
        super().__init__(month)
        self._busy: dict[str, None] = {}

    def began(self, case: FaultCase, node: str, now: float) -> None:
        """See BaselineFleet."""
        if case.kind.peer is PeerRemedy.NOTHING:
            super().began(case, node, now)
        else:
            self.call(self.next_look(node, now, SCRAPE_S), partial(self._quarantine, case, node))

    def _quarantine(self, case: FaultCase, node: str, now: float) -> None:
        if not self.lasts(case, node) or node in self.people.at_work or node in self._busy:
            return
        self.world.detected(node, now)
        self.world.decided(node, now)
        self.drain(node, now)
        if self.too_often(node, now, REMEDIES, 7 * DAY_S):
            self.page(case, node, now)
            self.people.at_work[node].append(partial(self.give_back, node))
            return
        self._busy[node] = None
        self.world.end_hurt_job(node, now)  # it evicts
        self.world.when_idle(node, partial(self._remedy, case, node), now)

    def _remedy(self, case: FaultCase, node: str, now: float) -> None:
        fix = Fix.RESET_ALL_GPUS if case.kind.peer is PeerRemedy.RESET else Fix.REBOOT
        took_s = remedy(self.world, node, case, fix, now)
        self.call(now + took_s + SETTLE_S, partial(self._back, node))

    def _back(self, node: str, now: float) -> None:
        """The remedy was done: uncordoned. What is still wrong shows at the next look."""
        del self._busy[node]
        self.give_back(node, now)
        for case in list(self.world.open.get(node, {}).values()):
            if case.kind.peer is not PeerRemedy.NOTHING:
                self.call(self.next_look(node, now, SCRAPE_S), partial(self._quarantine, case, node))


BASELINES: tuple[type[BaselineFleet], ...] = (PeopleAlone, AlertingOnly, DrainAndReboot, NvSentinel, Ideal)
