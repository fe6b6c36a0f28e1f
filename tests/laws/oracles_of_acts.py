"""Oracles of what gpuward does: budgets, holds, repeats, unknown codes, shared causes, old news, intents."""

from agent.contract.actions.spec import Repeat
from agent.contract.commands import Outcome
from agent.contract.components import NODE, TYPES
from agent.contract.messages import Event, Scalar
from brain.core.effects import Note, Perform, ShowRun
from brain.core.healing.budgets import LONG_WAIT_S
from brain.core.inputs import EventSeen, Intent, NodeState, OperatorCommand
from brain.core.pack.actions import ACTIONS
from brain.core.pack.spec import Match, Pack, Symptom
from tests.laws.cell import Cell
from tests.laws.moment import Moment
from tests.laws.oracle import OVER, Found, contains
from tests.laws.story import UNKNOWN_XID
from tests.laws.truth import disruptive
from tests.laws.world import Story

FRESH_S = 5.0  # a fact that was younger when it came is news


class OneRunPerNode:
    """Law 1: never two disruptive runs on one node, nor more than the budgets of cell and leaf."""

    law = 1
    looks_at: tuple[type, ...] = (Perform, ShowRun)

    def __init__(self) -> None:
        self._at_work: dict[str, str] = {}  # run -> node
        self._waits: dict[
            str, float
        ] = {}  # run that only keeps new jobs away: it drains, or tests -> since when
        self._last: dict[str, tuple[str, float]] = {}  # run -> its newest disruptive step, and when that left

    def see(self, cell: Cell, moment: Moment) -> Found:
        now = moment.now
        for run in moment.runs:
            if run.state in (*OVER, "held", "approval"):
                self._at_work.pop(run.id, None)  # what waits disturbs nobody
        for step in moment.performed:
            tests = ACTIONS[step.action].tests
            if not disruptive(step):
                if tests and step.run in self._last:  # on the way back
                    last, left = self._last[step.run]
                    self._waits.setdefault(step.run, max(left, cell.ended.get(last, (0.0,))[0]))
                continue
            others = [
                run for run, node in self._at_work.items() if node == step.node and run != step.run and node
            ]
            if others:
                yield f"{step.id} ({step.action}) begins on {step.node} where {others[0]} is at work"
            self._at_work[step.run] = step.node
            again = self._last.get(step.run, ("", 0.0))[0] == step.id  # a new leader sends it once more
            self._last[step.run] = step.id, now
            if step.action == "scheduler.drain" or tests:  # after a while it uses up no budget
                if not again:
                    self._waits[step.run] = now
            else:
                self._waits.pop(step.run, None)
            waits = [run for run, since in self._waits.items() if now - since >= LONG_WAIT_S]
            at_work = {run: node for run, node in self._at_work.items() if run not in waits}
            settings = cell.pack.settings
            if len(at_work) > max(settings.disruptive_runs, 1) and not others:
                yield f"{step.id}: {len(at_work)} disruptive runs, at most {settings.disruptive_runs}"
            leaf = cell.pack.places[step.node].leaf if step.node in cell.pack.places else ""
            here = [node for node in at_work.values() if node and cell.pack.places[node].leaf == leaf]
            if leaf and len(here) > settings.disruptive_runs_per_leaf:
                yield f"{step.id}: {len(here)} disruptive runs under {leaf}"

    def end(self, story: Story) -> Found:
        return iter(())


class HoldsAndWindows:
    """Law 2: no disruptive step leaves under a hold; in a window or beside a protected job only with an approval."""

    law = 2
    looks_at: tuple[type, ...] = (Perform,)

    def see(self, cell: Cell, moment: Moment) -> Found:
        now = moment.now
        for step in moment.performed:
            if not disruptive(step):
                continue
            for hold in cell.holds.values():
                if (
                    (not hold.until or now < hold.until)
                    and step.node
                    and contains(cell.pack, hold.scope, step.node)
                ):
                    yield f"{step.id} ({step.action}) leaves under the hold on {hold.scope}"
            if step.incident in cell.approvals:
                continue
            for window in cell.pack.settings.maintenance:
                if (
                    window.since <= now < window.until
                    and step.node
                    and contains(cell.pack, window.scope, step.node)
                ):
                    yield f"{step.id} ({step.action}) leaves in the window of {window.scope}"
            if cell.pack.settings.ask_jobs and step.node:
                answer = cell.node(step.node).jobs_answer
                if answer is None or not answer[1] or answer[2]:
                    yield f"{step.id} ({step.action}) leaves though the scheduler said {answer}"

    def end(self, story: Story) -> Found:
        return iter(())


class NeverTwice:
    """Law 4: no rung with repeat class `never` is performed twice for one decision."""

    law = 4
    looks_at: tuple[type, ...] = (Perform,)

    def __init__(self) -> None:
        self._begun: dict[str, str] = {}  # run and rung -> step id

    def see(self, cell: Cell, moment: Moment) -> Found:
        for step in moment.performed:
            if step.repeat is not Repeat.NEVER:
                continue
            rung = step.id.rpartition(".a")[0]
            before = self._begun.get(rung)
            if before is not None:
                ended = cell.ended.get(before)
                if ended is None or ended[1] not in (Outcome.UNREACHABLE, Outcome.REFUSED):
                    yield f"{step.id} ({step.action}) is performed after {before} ({ended})"
            self._begun[rung] = step.id

    def end(self, story: Story) -> Found:
        return iter(())


class UnknownCodes:
    """Law 5: an unknown code never leads to an action that disturbs."""

    law = 5
    looks_at: tuple[type, ...] = (EventSeen, Perform)

    def __init__(self) -> None:
        self._unknown: set[str] = set()  # ids of facts

    def see(self, cell: Cell, moment: Moment) -> Found:
        given = moment.given
        if isinstance(given, EventSeen) and given.event.kind == "gpu.xid":
            code = given.event.data.get("code")
            if isinstance(code, int) and code >= UNKNOWN_XID:
                self._unknown.add(given.event.id)
        for step in moment.performed:
            incident = cell.incidents.get(step.incident)
            facts = [fact.id for fact in incident.evidence] if incident is not None else []
            if disruptive(step) and facts and all(fact in self._unknown for fact in facts):
                yield f"{step.id} ({step.action}) rests on unknown codes alone"

    def end(self, story: Story) -> Found:
        return iter(())


class SharedCause:
    """Law 6: when a large share shows one symptom now, at once or one after the other, nothing is begun for it on a node."""

    law = 6
    looks_at: tuple[type, ...] = (EventSeen, OperatorCommand, Perform)

    def __init__(self) -> None:
        self._active: dict[str, dict[str, float]] = {}  # symptom -> node -> until when it lives
        self._begun: set[str] = set()  # runs that had disturbed something before

    def see(self, cell: Cell, moment: Moment) -> Found:
        given, now = moment.given, moment.now
        if isinstance(given, EventSeen):
            self._heard(cell.pack, given, now)
        elif isinstance(given, OperatorCommand) and (
            given.verb == "return" or any(note.kind == "node.forgotten" for note in moment.notes)
        ):
            for there in self._active.values():  # a person says that this node is healthy, or gone
                there.pop(str(given.args.get("node")), None)
        for step in moment.performed:
            if not disruptive(step) or not step.node or step.run in self._begun:
                continue
            self._begun.add(step.run)
            incident = cell.incidents.get(step.incident)
            for key in incident.symptoms if incident is not None else ():
                name = key.partition("@")[0]
                nodes = [node for node, until in self._active.get(name, {}).items() if until > now]
                size = len(cell.nodes)
                if size >= 4 and len(nodes) >= min(max(cell.pack.settings.shared_nodes, 0.1 * size), size):
                    yield f"{step.id} ({step.action}) begins on {step.node} while {len(nodes)} of {size} nodes show {name}"

    def _heard(self, pack: Pack, given: EventSeen, now: float) -> None:
        event = given.event
        for symptom in _seen(pack.version, pack).get(event.kind, ()):
            if event.component == NODE and symptom.scope in TYPES and symptom.scope != NODE:
                continue  # it names no part, so it is no fault of one
            if any(_fits(match, given) for match in symptom.clear):
                self._active.get(symptom.name, {}).pop(event.node, None)
            elif event.age_s < FRESH_S and any(_fits(match, given) for match in symptom.on):
                self._active.setdefault(symptom.name, {})[event.node] = now + symptom.ttl_s

    def end(self, story: Story) -> Found:
        return iter(())


_SEEN: dict[str, dict[str, list[Symptom]]] = {}


def _seen(version: str, pack: Pack) -> dict[str, list[Symptom]]:
    """Kind of event -> the symptoms that one such event begins or ends."""
    if version not in _SEEN:
        kinds = _SEEN[version] = {}
        for symptom in pack.symptoms:
            for kind in dict.fromkeys(match.kind for match in (*symptom.on, *symptom.clear)):
                if symptom.detect == "seen":
                    kinds.setdefault(kind, []).append(symptom)
    return _SEEN[version]


def _fits(match: Match, given: EventSeen) -> bool:
    """A plain match only: equal values and lists. (A symptom with tests is left to the engine's own examples.)"""
    if match.kind != given.event.kind:
        return False
    for name, want in match.where.items():
        value = _value(given.event, name)
        if isinstance(want, dict) or (
            value not in want if isinstance(want, (list, tuple)) else value != want
        ):
            return False
    return True


def _value(event: Event, name: str) -> Scalar | None:
    match name:
        case "component":
            return event.component
        case "component_type":
            return event.component.partition("/")[0]
        case _:
            return event.data.get(name)


class NoOldNews:
    """Law 13: no disruptive step of a fault begins when neither a fact nor the run's own work is younger than the limit."""

    law = 13
    looks_at: tuple[type, ...] = (EventSeen, NodeState, Note, Perform)

    def __init__(self) -> None:
        self._facts: dict[tuple[str, str], float] = {}  # (node, kind) -> when the newest fact occurred
        self._silent: set[str] = set()
        self._moved: dict[str, float] = {}  # run -> when it last did something

    def see(self, cell: Cell, moment: Moment) -> Found:
        given, now = moment.given, moment.now
        if isinstance(given, EventSeen):
            key = given.event.node, given.event.kind
            self._facts[key] = max(self._facts.get(key, 0.0), now - given.event.age_s)
        elif isinstance(given, NodeState):
            (self._silent.discard if given.alive else self._silent.add)(given.node)
            self._facts[given.node, "node.returned" if given.alive else "node.unreachable"] = now
        for note in moment.notes:
            if note.kind in ("step.result", "run.not_verified"):
                self._moved[note.run] = now
        for step in moment.performed:
            run, incident = cell.runs.get(step.run), cell.incidents.get(step.incident)
            if not disruptive(step) or not step.node or run is None or run.requested_by or incident is None:
                continue
            if step.incident in cell.approvals or step.node in self._silent or step.id in cell.under_way:
                continue
            kinds = {fact.kind for fact in incident.evidence}
            newest = max((self._facts.get((step.node, kind), 0.0) for kind in kinds), default=now)
            age = now - max(newest, self._moved.get(step.run, 0.0))
            # A symptom that means "not cleared for so long" has no younger fact.
            names = {key.partition("@")[0] for key in incident.symptoms}
            waited_s = max((one.for_s for one in cell.pack.symptoms if one.name in names), default=0.0)
            if age > cell.pack.settings.stale_s + waited_s + FRESH_S:
                yield f"{step.id} ({step.action}) begins on {step.node}, its newest fact is {age:.0f} s old"

    def end(self, story: Story) -> Found:
        return iter(())


class IntentFirst:
    """Laws 4 and 16: a step leaves only after the present leader's intent has come back, or again under the same id."""

    law = 16
    looks_at: tuple[type, ...] = (Perform,)

    def see(self, cell: Cell, moment: Moment) -> Found:
        given = moment.given
        for step in moment.performed:
            mine = isinstance(given, Intent) and given.step == step.id and given.epoch == cell.epoch
            if not mine and step.id not in cell.under_way:
                yield f"{step.id} ({step.action}) leaves without an intent of epoch {cell.epoch}"

    def end(self, story: Story) -> Found:
        return iter(())
