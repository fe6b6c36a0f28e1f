"""The world of a month: machines, their faults, their jobs, and the account of what is lost. The same for every policy.

A policy sees what the machines' agents say and what its own monitors can see, and acts through the simulated actions that
drills use. What the world alone knows - which fault is where, and what ends it - decides only what an action does and how
it is judged afterwards.
"""

from collections.abc import Callable, Sequence
from functools import partial
from math import fsum, inf

from simulations import changes as ch
from simulations.changes import after
from simulations.faults import Fix
from simulations.month.draw import FaultCase, Month, RackHold
from simulations.month.jobs import Gang, GangScheduler
from simulations.month.kinds import Cured, Harm, Onset
from simulations.month.tally import Act, ActVerdict, FaultStory, Tally
from simulations.virtual_fleet import Call, VirtualFleet


class World:
    """The faults and jobs of one policy's fleet."""

    def __init__(self, fleet: VirtualFleet, month: Month, policy: str) -> None:
        self.month = month
        self.fleet = fleet
        self.tally = Tally(policy=policy, start=fleet.start)
        self.jobs = GangScheduler(fleet, month)
        # node -> its faults that last, by name
        self.open: dict[str, dict[str, FaultCase]] = {}
        self._cases = {case.id: case for case in month.cases}
        self._out: dict[str, float] = {}
        self._well_out: dict[str, float] = {}
        self._drained: dict[str, None] = {}
        self._hands: dict[str, float] = {}
        self._late: dict[tuple[str, str], None] = {}  # (node, fault) of those that show by now
        # node -> its last action that disrupts, for what comes of it
        self._acted: dict[str, Act] = {}
        # node -> faults that are over there, and await that it is in service
        self._over: dict[str, list[str]] = {}
        # (node, fault) -> the action after which it seemed to be over
        self._credited: dict[tuple[str, str], Act] = {}
        self._idle: dict[str, list[Call]] = {}
        # Called with the nodes of a job that has just ended.
        self.job_ended: Callable[[Sequence[str], float], None] = lambda _nodes, _now: None
        # Called with a node that was given back with a fault that ends jobs.
        self.returned_broken: Callable[[str, float], None] = lambda _node, _now: None
        # Called with a hold that people put on a rack.
        self.hold_begins: Callable[[RackHold, float], None] = lambda _hold, _now: None
        # Called with a fault that has begun on a node.
        self.began: Callable[[FaultCase, str, float], None] = lambda _case, _node, _now: None
        # Called with a silent fault that its job has noticed.
        self.showed: Callable[[FaultCase, str, float], None] = lambda _case, _node, _now: None
        fleet.watch = self._watch
        self.jobs.ended = self._ended
        self._holds: dict[str, float] = {}  # rack -> until when a hold stands on it
        for hold in month.holds:
            fleet.call(fleet.start + hold.at_s, partial(self._hold, hold))
        for case in month.cases:
            self.tally.stories[case.id] = FaultStory(case=case)
            fleet.call(fleet.start + case.at_s, partial(self._begin, case))

    # --- holds ---

    def _hold(self, hold: RackHold, now: float) -> None:
        self._holds[hold.rack] = max(now + hold.for_s, self._holds.get(hold.rack, 0.0))
        self.hold_begins(hold, now)

    def held(self, node: str, now: float) -> str:
        """Which hold stands on a node; empty: none."""
        rack = self.month.places[node].rack
        return f"rack/{rack}" if self._holds.get(rack, 0.0) > now else ""

    # --- faults ---

    def _begin(self, case: FaultCase, now: float) -> None:
        """It begins where it can: a node that is down, or out of service for its like, has no further one."""
        story = self.tally.stories[case.id]
        for nth, node in enumerate(case.nodes):
            machine = self.fleet.machines[node]
            if machine.down(now) or any(one.kind.name == case.kind.name for one in self._there(node)):
                continue
            story.begun, story.on[node] = True, None
            onset = Onset(
                name=case.id,
                machine=machine.state,
                fixes=case.fixes,
                part=case.part,
                lasts_s=case.lasts_s,
                found=case.found,
                soothed_by=case.soothed_by,
                relapse_s=case.relapse_s,
                worsened_by=case.worsened_by,
                nth=nth,
            )
            plan = case.kind.plan(onset)
            self.fleet.apply(node, plan, now)
            if case.kind.cured is Cured.TIME and Fix.TIME in case.fixes:
                self.fleet.call(now + case.lasts_s, partial(self._pass, case, node))

    def _there(self, node: str) -> list[FaultCase]:
        return list(self.open.get(node, {}).values())

    def _pass(self, case: FaultCase, node: str, now: float) -> None:
        fix = ch.FixApplied(fix=Fix.TIME, component="node", target=case.id)
        self.fleet.apply(node, [after(0, fix)], now)

    def _ended(self, gang: Gang, now: float) -> None:
        """What was about a job ends with it, and whoever waits for its nodes goes on."""
        for node in [node for node in self.open if self.jobs.has(gang, node)]:
            if any(case.kind.cured is Cured.JOB for case in self._there(node)):
                self._end_job_faults(node, now)
        for node in [node for node in self._idle if self.jobs.has(gang, node)]:
            for waiting in self._idle.pop(node):
                waiting(now)
        self.job_ended(gang.nodes, now)

    def end_hurt_job(self, node: str, now: float) -> None:
        """Ends a job that starts on a node with a fault that ends it anyway, so that it starts elsewhere at once."""
        gang = self.jobs.gang_on(node)
        if gang is not None and self.harmed(node):
            self.jobs.fail(gang, now)

    def when_idle(self, node: str, what: Call, now: float) -> None:
        """Calls `what` as soon as no job runs there: now, or when the one that runs ends."""
        if self.jobs.gang_on(node) is None:
            what(now)
        else:
            self._idle.setdefault(node, []).append(what)

    def _end_job_faults(self, node: str, now: float) -> None:
        self.fleet.apply(node, [after(0, ch.FixApplied(fix=Fix.END_JOB, component="node"))], now)

    def _watch(self, node: str, now: float) -> None:
        """A machine may have changed: which faults it has, and whether it is in service."""
        state = self.fleet.machines[node].state
        there = self.open.get(node)
        if there or state.faults:
            self._compare(node, now)
        self._account(node, now)
        if self.jobs.looked_at(node, now) and (act := self._acted.get(node)) is not None:
            act.ended_job = True

    def _compare(self, node: str, now: float) -> None:
        faults, there = self.fleet.machines[node].state.faults, self.open.setdefault(node, {})
        for name in [name for name in there if name not in faults]:
            self._over_on(there.pop(name), node, now)
        for name in faults:
            if name not in there and name in self._cases:
                there[name] = self._cases[name]
                self._relapsed(name, node)
                self._hits(self._cases[name], node, now)
                self.began(self._cases[name], node, now)
        if not there:
            del self.open[node]

    def _relapsed(self, name: str, node: str) -> None:
        """A fault that has begun anew was never healed, and what seemed to end it has not helped."""
        story = self.tally.stories[name]
        story.on[node], story.healed_s = None, None
        over = self._over.get(node, [])
        if name in over:
            over.remove(name)
        act = self._credited.pop((node, name), None)
        if act is not None:
            act.verdict = ActVerdict.WRONG

    def _hits(self, case: FaultCase, node: str, now: float) -> None:
        match case.kind.harm:
            case Harm.KILLS if case.kind.late:
                self.fleet.call(now + case.lasts_s, partial(self._shows, case, node, now))
            case Harm.KILLS:
                self.jobs.hit(node, now)
                if case.kind.cured is Cured.JOB:
                    self._end_job_faults(node, now)
            case Harm.HANGS:
                self.jobs.hang(node, now, case.lasts_s)
                if self.jobs.gang_on(node) is None:
                    self._end_job_faults(node, now)
            case Harm.SLOWS:
                self.jobs.slowed(node, now, slow=True)
            case Harm.NONE:
                pass

    def _shows(self, case: FaultCase, node: str, since: float, now: float) -> None:
        if case.id in self.open.get(node, {}):
            self._late[node, case.id] = None
            self.jobs.hit(node, now, since=since)
            self.showed(case, node, now)

    def _over_on(self, case: FaultCase, node: str, now: float) -> None:
        if case.kind.harm is Harm.KILLS and (
            not case.kind.late or self._late.pop((node, case.id), 0) is None
        ):
            self.jobs.relieved(node)
        if case.kind.harm is Harm.SLOWS:
            self.jobs.slowed(node, now, slow=False)
        self._over.setdefault(node, []).append(case.id)
        act = self._acted.get(node)
        if act is not None and act.verdict is ActVerdict.WRONG:
            act.verdict = ActVerdict.RIGHT
            if case.soothed_by:
                self._credited[node, case.id] = act

    # --- the account ---

    def harmed(self, node: str) -> bool:
        """Whether a fault that ends jobs lasts there, as far as anybody can know: a silent one counts when it has shown."""
        return any(
            case.kind.harm is Harm.KILLS and (not case.kind.late or (node, case.id) in self._late)
            for case in self._there(node)
        )

    def _account(self, node: str, now: float) -> None:
        machine = self.fleet.machines[node]
        drained = bool(machine.state.drain_reason)
        if drained != (node in self._drained):
            self._change_drain(node, now, drained=drained)
        serves = self.jobs.in_service(machine, now)
        harmed = self.harmed(node)
        out = not serves or harmed
        if out and node not in self._out:
            self._out[node] = now
            self.tally.out_steps.append((now, 1))
        elif not out and node in self._out:
            since = self._out.pop(node)
            self.tally.out_steps.append((now, -1))
            self.tally.out_spans.append((node, since, now))
            self.tally.out_s += now - since
        well_out = not serves and not self._there(node)
        if well_out and node not in self._well_out:
            self._well_out[node] = now
        elif not well_out and node in self._well_out:
            self.tally.well_out_s += now - self._well_out.pop(node)
        if not out and node in self._over:
            for name in self._over.pop(node):
                self._healed(name, node, now)

    def _change_drain(self, node: str, now: float, *, drained: bool) -> None:
        if drained:
            self._drained[node] = None
            return
        del self._drained[node]
        if self.harmed(node):
            self.tally.returned_broken += 1
            self.returned_broken(node, now)

    def _healed(self, name: str, node: str, now: float) -> None:
        story = self.tally.stories[name]
        story.on.pop(node, None)
        if not story.on and story.healed_s is None:
            story.healed_s = self._since(story, now)

    def close(self) -> Tally:
        """The month is over."""
        now = self.fleet.start + self.month.days * 86400
        self.tally.out_s += fsum(now - since for since in self._out.values())
        self.tally.out_spans += [(node, since, inf) for node, since in self._out.items()]
        self.tally.well_out_s += fsum(now - since for since in self._well_out.values())
        for since in list(self._hands.values()):
            self.tally.hands_s += now - since
        self.jobs.close(now)
        self.tally.jobs = self.jobs.loss
        return self.tally

    # --- what policies do ---

    def detected(self, node: str, now: float, seen_by: str = "", seen_as: str = "") -> None:
        """The policy knows that something is wrong there: by which incident, and for which cause it takes it."""
        for story in self._stories(node):
            if story.detected_s is None:
                story.seen_by, story.seen_as = seen_by, seen_as
                story.detected_s = self._since(story, now)

    def explained(self, incident: str, by: str, cause: str) -> None:
        """An incident turned out to be part of another one."""
        for story in self.tally.stories.values():
            if story.seen_by == incident:
                story.seen_by, story.seen_as = by, cause

    def _since(self, story: FaultStory, now: float) -> float:
        return round(max(0.0, now - self.fleet.start - story.case.at_s), 3)

    def decided(self, node: str, now: float) -> None:
        """The policy begins to do something about it, or calls people."""
        for story in self._stories(node):
            if story.decided_s is None:
                story.decided_s = self._since(story, now)

    def people_called(self, node: str, why: str) -> None:
        """People are called about this node, and told why."""
        for story in self._stories(node):
            story.why_people = story.why_people or why

    def people_act(self, node: str) -> None:
        """People do something about this node."""
        for story in self._stories(node):
            story.people = True

    def _stories(self, node: str) -> list[FaultStory]:
        names = [*self.open.get(node, {}), *self._over.get(node, ())]
        return [self.tally.stories[name] for name in names]

    def acts(self, node: str, action: str, now: float, *, people: bool = False) -> None:
        """The policy begins an action that disrupts something: what it is worth, as far as it can be known now. `people`
        know of each other's holds.
        """
        real = [case for case in self._there(node) if not case.kind.benign]
        waits = node in self._over
        if action in ("scheduler.drain", "node.isolate"):
            verdict = ActVerdict.RIGHT if real or waits else ActVerdict.NEEDLESS
        else:
            verdict = ActVerdict.WRONG if real else ActVerdict.NEEDLESS
        hold = "" if people else self.held(node, now)
        act = Act(at=now, node=node, action=action, verdict=verdict, hold=hold)
        self.tally.acts.append(act)
        self._acted[node] = act

    def hands_begin(self, node: str, now: float) -> None:
        """A part is awaited or being worked on."""
        self._hands.setdefault(node, now)

    def hands_end(self, node: str, now: float) -> None:
        """The part works."""
        self.tally.hands_s += now - self._hands.pop(node, now)
