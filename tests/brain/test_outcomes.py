"""What was tried and what came of it is kept beside the history; what would have been tried is judged by what people did."""

import random
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agent.contract.commands import Outcome
from agent.contract.messages import Event, Severity
from brain.adapters.readmodel import ReadModel
from brain.console.api.outcome_shapes import RemediesShape
from brain.console.outcomes import cases, readiness, remedies
from brain.console.outcomes.cases import PlannedCase
from brain.core.effects import Effect, Perform
from brain.core.inputs import Input, StepResult
from brain.core.pack.spec import Mode
from brain.core.state import GPUWARD, ModeOverride
from tests.brain.world import GPU, Story, history_of, pack

HOUR, DAY = 3600.0, 86_400.0
BOUNCE = next(one for one in pack().runbooks if one.name == "bounce")


class Tries(Story):
    """Links go down, and are bounced with or without success."""

    def __init__(self, mode: Mode = Mode.AUTO) -> None:
        super().__init__(
            pack(mode, same_cause_nodes=99, same_cause_nodes_per_day=99, harm_nodes=0, remedies_per_day=99)
        )
        self.fails = False
        self.clock = 0.0

    def _answer(self, effect: Effect, now: float) -> Iterable[tuple[float, Input]]:
        if self.fails and isinstance(effect, Perform):
            step = effect.step
            yield now + 1, StepResult(id=f"f:{step.id}", step=step.id, outcome=Outcome.FAILED, why="no")
        else:
            yield from super()._answer(effect, now)

    def down(self, node: str, *, heals: bool = True, fails: bool = False, later: float = 3 * HOUR) -> None:
        """One goes down, later; where nothing heals it, people mend it after an hour."""
        self.heals, self.fails = heals, fails
        self.clock += later
        self.event(self.clock, "link.state", "link/eth0", node, up=False)
        self.run(self.clock + HOUR)
        self.event(self.clock + HOUR, "link.state", "link/eth0", node, up=True)
        self.run(self.clock + HOUR + 60)


def reckoned(model: ReadModel, until: float, taken_back: Sequence[ModeOverride] = ()) -> RemediesShape:
    """As the route does."""
    return remedies.remedies(
        model.tried_since(0.0, 1000),
        taken_back,
        {"bounce": ["bounce", "tell"]},
        since=0.0,
        until=until,
        whole=True,
    )


def test_what_helped_and_what_did_not(tmp_path: Path) -> None:
    """Verified, seen again, and could not be done; each node and each time."""
    story = Tries()
    for node in ("n1", "n2", "n3", "n4"):
        story.down(node)
    story.down("n5", heals=False)
    story.down("n6", fails=True)
    (one,) = reckoned(history_of(story, tmp_path / "h"), story.clock + 30 * DAY).remedies
    assert (one.cause, one.runbook, one.rung, one.action) == ("link-down", "bounce", "bounce", "link.bounce")
    assert (one.tried, one.helped, one.still_there, one.failed, one.nodes) == (6, 4, 1, 1, 6)
    assert (one.lower, one.upper) == (0.3, 0.9032)
    assert one.says == "unclear"
    assert one.took_s is not None
    assert 3 < one.took_s < 10
    assert (one.day.healed, one.day.back, one.week.back) == (4, 0, 0)


def test_a_fault_that_comes_back_counts_within_its_time(tmp_path: Path) -> None:
    """After an hour, after two days, and not yet: what has not come back counts only when the time is over."""
    story = Tries()
    story.down("n1")
    story.down("n1", later=5 * HOUR)
    story.down("n2", later=DAY)
    story.down("n2", later=2 * DAY)
    model = history_of(story, tmp_path / "h")
    (one,) = reckoned(model, story.clock + HOUR).remedies
    assert (one.tried, one.helped) == (4, 4)
    assert (one.day.back, one.day.healed) == (
        1,
        3,
    )  # the first; its second and n2's first stayed away for a day
    assert (one.week.back, one.week.healed) == (2, 2)
    (later,) = reckoned(model, story.clock + 30 * DAY).remedies
    assert (later.week.back, later.week.healed) == (2, 4)


def test_what_stopped_helping_is_proposed_to_be_left_out(tmp_path: Path) -> None:
    """Not of one node that fails again and again: of three."""
    story = Tries()
    for _ in range(10):
        story.down("n1", heals=False, later=2 * DAY)
    model = history_of(story, tmp_path / "one")
    assert reckoned(model, story.clock + DAY).remedies[0].says == "too_few"
    assert reckoned(model, story.clock + DAY).proposals == []
    for node in ("n2", "n3"):
        story.down(node, heals=False, later=2 * DAY)
    found = reckoned(history_of(story, tmp_path / "three"), story.clock + DAY)
    assert found.remedies[0].says == "does_not_help"
    (proposal,) = found.proposals
    assert proposal.text.startswith(
        "leave bounce of bounce out against link-down: it helped 0 of 12 times on 3 nodes"
    )


def test_what_gpuward_took_back_is_shown(tmp_path: Path) -> None:
    """With its reason; a person's modes are not."""
    back = ModeOverride(runbook="bounce", nodes="*", mode=Mode.APPROVE, who=GPUWARD, why="3 of 4", since=5.0)
    person = ModeOverride(runbook="bounce", nodes="*", mode=Mode.APPROVE, who="ann")
    found = reckoned(history_of(Tries(), tmp_path / "h"), DAY, [back, person])
    assert [(one.runbook, one.why) for one in found.taken_back] == [("bounce", "3 of 4")]


@settings(max_examples=25, deadline=None)
@given(
    st.lists(st.tuples(st.sampled_from(["n1", "n2"]), st.booleans(), st.booleans()), max_size=6), st.randoms()
)
def test_made_again_from_the_log_it_is_the_same(
    tmp_path_factory: pytest.TempPathFactory, faults: list[tuple[str, bool, bool]], chance: random.Random
) -> None:
    """Written input by input, in batches as they come, or at once: what was tried, and what came back, is the same."""
    story = Tries()
    for node, heals, fails in faults:
        story.down(node, heals=heals, fails=fails)
    whole = history_of(story, tmp_path_factory.mktemp("h") / "whole")
    pieces = ReadModel(tmp_path_factory.mktemp("h") / "pieces")
    pieces.begin("log-1")
    notes, seq = list(enumerate(story.time.notes, 1)), 0
    while seq < len(notes):
        until = seq + chance.randint(1, 40)
        part = notes[seq:until]
        seen = {note.incident for _, note in notes[:until]}
        pieces.write(
            until,
            part,
            [one for one in story.time.incidents.values() if one.id in seen],
            [
                one
                for one in story.time.runs.values()
                if one.incident in seen and 0 < one.ended_at <= part[-1][1].at
            ],
        )
        seq = until
    pieces.write(len(notes), [], story.time.incidents.values(), story.time.runs.values())
    assert pieces.tried_since(0.0, 1000) == whole.tried_since(0.0, 1000)
    again = whole.tried_since(0.0, 1000)
    whole.write(len(notes), notes, story.time.incidents.values(), story.time.runs.values())  # all of it twice
    assert whole.tried_since(0.0, 1000) == again


def test_a_file_of_an_earlier_version_is_filled(tmp_path: Path) -> None:
    """What the history has of runs is counted from the first start on."""
    story = Tries()
    story.down("n1")
    story.down("n1", later=5 * HOUR)
    model = history_of(story, tmp_path / "h")
    before = model.tried_since(0.0, 10)
    assert before[-1]["back_at"] is not None
    for table in ("tried", "came", "boots"):
        model._db.execute(f"DROP TABLE {table}")
    model._db.execute("DELETE FROM meta WHERE key = 'outcomes'")
    model.close()
    assert ReadModel(tmp_path / "h").tried_since(0.0, 10) == before


def inventory(node: str, component: str, model: str, boot: str = "b1") -> Event:
    """A node tells what a card is."""
    return Event(
        id=f"{node}:{component}:{boot}", node=node, kind="node.inventory.gpu", component=component,
        severity=Severity.INFO, at="", age_s=0.0, boot=boot, count=1, data={"model": model},
    )  # fmt: skip


def test_each_model_has_its_own_figures(tmp_path: Path) -> None:
    """By what the node was made of when the rung began."""
    story = Tries()
    story.down("n1")
    story.down("n2", heals=False)
    model = ReadModel(tmp_path / "h")
    model.begin("log-1")
    told = [
        (1, 1.0, inventory("n1", "gpu/0000:3b:00", "H100")),
        (2, 1.0, inventory("n2", "gpu/0000:3b:00", "A100")),
        (3, story.clock + 10 * DAY, inventory("n2", "gpu/0000:3b:00", "H200")),
    ]
    notes = list(enumerate(story.time.notes, 1))
    model.write(len(notes), notes, story.time.incidents.values(), story.time.runs.values(), told)
    (one,) = reckoned(model, story.clock + 30 * DAY).remedies
    assert [(of.model, of.helped, of.tried) for of in one.models] == [("A100", 0, 1), ("H100", 1, 1)]


def observed(story: Tries, model: ReadModel, boots: Sequence[float] = ()) -> list[PlannedCase]:
    """The cases of `bounce`, the oldest first."""
    found = []
    for run in reversed(model.runs_since(0.0, 1000)):
        incident = model.incident(run["incident"])
        if incident is None or not cases.planned(run) or run["runbook"]["name"] != "bounce":
            continue
        until = incident["closed_at"] or story.time.now
        said = model.said_about(incident["id"], run["node"], run["started_at"], until)
        near = [at for at in boots if run["started_at"] <= at <= until]
        stopped = model.stopped(run["id"], incident["id"])
        found.append(cases.case(run, [run], incident, near, said, stopped, story.time.now))
    return found


def test_what_would_have_been_done_and_what_people_did(tmp_path: Path) -> None:
    """A node that is started anew is the same; one that ends alone was needless; a close is another way."""
    story = Tries(Mode.OBSERVE)
    story.down("n1")
    boots = [story.clock + 600]
    story.down("n2")
    story.clock += 3 * HOUR
    story.event(story.clock, "link.state", "link/eth0", "n3", up=False)
    story.run(story.clock + 60)
    (third,) = [one for one in story.incidents("link-down") if one.node == "n3"]
    story.say(story.clock + 120, "close", id=third.id, why="mended")
    story.run(story.clock + 600)
    # As the live brain keeps them: with the name of who gave the command that led to them.
    story.time.notes = [
        one.by("ann") if one.caused_by.startswith("said-") else one for one in story.time.notes
    ]
    one, two, three = observed(story, history_of(story, tmp_path / "h"), boots)
    assert (one.how, one.did, one.rung) == ("same", "the node started anew after 10 minutes", "bounce")
    assert (two.how, two.did) == ("itself", "")
    assert two.after_s == pytest.approx(HOUR, abs=5)
    assert (three.how, three.did) == ("people", "closed it after 119 seconds")
    found = readiness.ready(BOUNCE, Mode.OBSERVE, "", [three, two, one])
    assert (found.planned, found.same, found.itself, found.people, found.verdict) == (3, 1, 1, 1, "too_few")
    assert found.text == (
        "It would have begun `bounce` 3 times, on 3 nodes; 1 of them people did themselves after 10 minutes: the same; "
        "1 ended by itself after 60 minutes: needless; 1 people saw to in another way after 119 seconds. "
        "Too few to say: at least 5 that are over, on 3 nodes."
    )


def test_a_hold_that_would_have_stopped_it_is_told(tmp_path: Path) -> None:
    """Also in observe mode, where nothing is stopped."""
    story = Tries(Mode.OBSERVE)
    story.say(10, "hold", scope="node/n1", why="testing")
    story.down("n1")
    (one,) = observed(story, history_of(story, tmp_path / "h"))
    assert one.stopped == ["hold"]
    assert readiness.ready(BOUNCE, Mode.OBSERVE, "", [one]).stopped == {"hold": 1}


def test_what_people_agree_to_is_evidence_for_auto(tmp_path: Path) -> None:
    """Six of six agreed to, and each healed."""
    story = Tries(Mode.APPROVE)
    for number in range(6):
        story.clock += 3 * HOUR
        node = f"n{number}"
        story.event(story.clock, "link.state", "link/eth0", node, up=False)
        story.run(story.clock + 30)
        (incident,) = [one for one in story.incidents("link-down") if one.node == node]
        story.say(story.clock + 60, "approve", id=incident.id)
        story.run(story.clock + HOUR)
    found = observed(story, history_of(story, tmp_path / "h"))
    shown = readiness.ready(BOUNCE, Mode.APPROVE, "", found)
    assert (shown.same, shown.approved, shown.healed, shown.verdict) == (6, 6, 6, "ready")
    assert "to 6 of them people agreed, and it healed 6" in shown.text
    assert "`gpuward mode bounce auto`" in shown.text
    assert readiness.ready(BOUNCE, Mode.APPROVE, "it harmed", found).verdict == "taken_back"
    limited = replace(BOUNCE, at_most=Mode.APPROVE)
    assert readiness.ready(limited, Mode.APPROVE, "", found).verdict == "limited"


def test_what_ends_by_itself_speaks_against_auto(tmp_path: Path) -> None:
    """Six faults that nobody saw to."""
    story = Tries(Mode.OBSERVE)
    for number in range(6):
        story.down(f"n{number}")
    found = observed(story, history_of(story, tmp_path / "h"))
    assert {one.how for one in found} == {"itself"}
    assert readiness.ready(BOUNCE, Mode.OBSERVE, "", found).verdict == "needless"


def test_boots_are_those_of_others(tmp_path: Path) -> None:
    """The first boot that is heard is none; an old one that is told late is none; one behind a step of ours is ours."""
    model = ReadModel(tmp_path / "h")
    model.begin("log-1")
    told = [
        (n, at, inventory("n1", GPU, "H100", boot))
        for n, at, boot in ((1, 5.0, "a"), (2, 90.0, "b"), (3, 95.0, "a"))
    ]
    model.write(3, told=told)
    assert model.boots_of("n1", 0.0, 1000.0) == [90.0]
    assert model.boots_of("n1", 0.0, 80.0) == []
    step = {"action": "node.reboot", "outcome": "ok", "at": 30.0}
    assert cases.by_us(90.0, [{"steps": [step]}])
    assert not cases.by_us(90.0, [{"steps": [step | {"outcome": "refused"}]}])
    assert not cases.by_us(20.0, [{"steps": [step]}])
    assert not cases.by_us(90.0, [{"steps": [step | {"action": "link.bounce"}]}])


def test_one_node_takes_no_room_from_others(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of each node the newest are kept."""
    monkeypatch.setattr("brain.adapters.outcomes.KEPT_OF_NODE", 2)
    story = Tries()
    story.down("n2")
    for _ in range(4):
        story.down("n1", later=2 * DAY)
    kept = history_of(story, tmp_path / "h").tried_since(0.0, 100)
    assert [one["node"] for one in kept] == ["n1", "n1", "n2"]
