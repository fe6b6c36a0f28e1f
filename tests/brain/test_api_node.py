"""One node as the API shows it: what it told of itself, and the history of each card by its serial number."""

from pathlib import Path
from typing import Any

import pytest

from agent.contract.messages import Event, Severity
from brain.adapters import parts
from brain.adapters.readmodel import ReadModel
from brain.console.api.node_shapes import NodeDetailShape
from brain.console.api.status_shapes import NodeShape
from brain.console.node import facts, show
from brain.core.pack.spec import Place
from brain.core.state import NodeJobs
from brain.leader.history import HistoryWriter
from tests.brain.world import GPU, Story, pack

OTHER = "gpu/0000:5d:00"


def told(node: str, component: str = "node", **data: Any) -> Event:
    """An event of the inventory."""
    kind = parts.INVENTORY if component == "node" else f"{parts.INVENTORY}.{component.partition('/')[0]}"
    return Event(
        id=f"{node}:{component}:{sorted(data.items())}", node=node, kind=kind, component=component, severity=Severity.INFO,
        at="", age_s=0.0, boot="b", count=1, data=data, evidence="",
    )  # fmt: skip


@pytest.fixture
def model(tmp_path: Path) -> ReadModel:
    """An empty history."""
    made = ReadModel(tmp_path / "history")
    made.begin("log-1")
    return made


def write(model: ReadModel, story: Story, *events: tuple[float, Event]) -> None:
    """Everything of a story, and these events."""
    notes = list(enumerate(story.time.notes, 1))
    model.write(
        len(notes),
        notes,
        story.time.incidents.values(),
        story.time.runs.values(),
        [(number, at, event) for number, (at, event) in enumerate(events, 1)],
    )


def of(story: Story, model: ReadModel, name: str) -> NodeDetailShape | None:
    """The node."""
    node = story.engine.state.nodes.get(name)
    shown = NodeShape(
        name=name, alive=node.alive if node else False, boot="b", beat_age_s=None, version="", spooled=None, dropped=None,
        clock_ahead_s=None, chassis="", leaf="", rack="", pod="",
    )  # fmt: skip
    return show.node(facts.of(story.engine.state, shown), model)


def known(story: Story, model: ReadModel, name: str = "n1") -> NodeDetailShape:
    """The node, which is known."""
    found = of(story, model, name)
    assert found is not None
    return found


def test_a_node_tells_what_it_is_made_of(model: ReadModel) -> None:
    """And what it was before; the same told again is the same row, seen later."""
    story = Story()
    first = told("n1", driver="570.1", changed=False)
    write(
        model,
        story,
        (10.0, first),
        (20.0, told("n1", driver="570.1", changed=True)),
        (30.0, told("n1", driver="580.1", changed=True)),
        (30.0, told("n1", GPU, serial="S1", model="H100")),
        (30.0, told("n1", "nic/mlx5_0", guid="a088", firmware="28.39")),
    )
    found = known(story, model)
    assert found.inventory is not None
    assert found.inventory.told == {"driver": "580.1"}
    assert [(one.told["driver"], one.since, one.seen) for one in found.before] == [
        ("570.1", "1970-01-01T00:00:10.000Z", "1970-01-01T00:00:20.000Z")
    ]
    assert [(one.component, one.serial, one.word.value) for one in found.cards] == [
        (GPU, "S1", "well"),
        ("nic/mlx5_0", "a088", "well"),
    ]
    assert [place.node for place in found.cards[0].places] == ["n1"]


def test_a_card_that_was_moved_takes_its_history_along(model: ReadModel) -> None:
    """What happened in its old place while it was there is its history; what the next card does there is not."""
    story = Story(pack(reopens_s=0.0))  # the history is told of the cards, the engine is not
    story.event(100, "gpu.xid", GPU, code=79)
    story.run(200)
    story.event(210, "gpu.returned", GPU)
    story.run(400)
    story.event(500, "gpu.xid", GPU, code=79)
    story.run(600)
    old, new = sorted(story.incidents("gpu-lost"), key=lambda one: one.opened_at)
    write(
        model,
        story,
        (50.0, told("n1", GPU, serial="S1")),
        (450.0, told("n1", GPU, serial="S2")),
        (460.0, told("n2", OTHER, serial="S1")),
    )
    (moved,) = known(story, model, "n2").cards
    assert [one.id for one in moved.incidents] == [old.id]
    assert [(place.node, place.component) for place in moved.places] == [("n2", OTHER), ("n1", GPU)]
    card = show.card("S1", model)
    assert card is not None
    assert (card.node, card.component, card.there) == ("n2", OTHER, True)
    assert [one.id for one in card.incidents] == [old.id]
    assert {one.incident for one in card.runs} == {old.id}, "what was done about it goes with it as well"
    assert show.card("S3", model) is None
    (present,) = known(story, model).cards
    assert (present.serial, [one.id for one in present.incidents]) == ("S2", [new.id])
    assert present.word == "needs_human"


def test_a_node_that_claims_anothers_card_takes_nothing_from_it(model: ReadModel) -> None:
    """Its own page shows both places; the other's keeps all its incidents (law 15)."""
    story = Story()
    story.event(500, "gpu.xid", GPU, code=79)
    story.run(600)
    (incident,) = story.incidents()
    write(model, story, (50.0, told("n1", GPU, serial="S1")), (60.0, told("evil", GPU, serial="S1")))
    (card,) = known(story, model).cards
    assert [one.id for one in card.incidents] == [incident.id]
    assert [place.node for place in card.places] == ["evil", "n1"]


def test_a_node_that_claims_it_again_and_again_hides_nobody(model: ReadModel) -> None:
    """More often than places are kept of a card."""
    story = Story()
    story.event(500, "gpu.xid", GPU, code=79)
    story.run(600)
    lies = [(60.0 + n, told("evil", GPU, serial="S1", vbios=str(n))) for n in range(60)]
    write(model, story, (50.0, told("n1", GPU, serial="S1")), *lies)
    (card,) = known(story, model).cards
    assert [one.id for one in card.incidents] == [story.incidents()[0].id]
    assert {place.node for place in card.places} == {"evil", "n1"}


def test_what_people_did_and_what_nobody_knows_is_said(model: ReadModel) -> None:
    """Holds that concern it, also by its rack; and a sentence for each thing that is not known."""
    story = Story(pack(places={"n1": Place(rack="r1"), "n2": Place(rack="r2")}))
    story.event(10, "gpu.xid", GPU, code=79)
    story.run(20)
    story.say(21, "hold", scope="rack/r1", why="power")
    story.say(22, "hold", scope="node/n2", why="a look")
    story.say(23, "hold", scope="node/n1", why="a look")
    story.say(24, "ack", id=story.incidents()[0].id)
    story.run(30)
    write(model, story)
    found = known(story, model)
    assert [one.scope for one in found.holds] == ["rack/r1", "node/n1"]
    assert [one.text.split(":")[0] for one in found.said] == ["ann holds node/n1"]
    assert [one.state for one in found.runs] == ["exhausted"]
    assert (found.word, [one.cause for one in found.incidents], found.past) == (
        "needs_human",
        ["gpu-lost"],
        [],
    )
    assert found.jobs is None
    assert [one for one in found.not_known if "inventory" in one]
    assert [one for one in found.not_known if "scheduler" in one]
    story.engine.state.jobs["n1"] = NodeJobs(at=25.0, known=True, jobs=["4711"])
    assert known(story, model).jobs == ["4711"]
    unheard = known(story, model, "n2")
    assert (unheard.word, "never been heard" in unheard.not_known[0]) == ("unknown", True)
    assert of(story, model, "n3") is None


def test_a_node_that_tells_without_end_loses_its_own_rows(model: ReadModel) -> None:
    """And no other node's."""
    flood = [
        (float(number), told("n1", GPU, serial=f"S{number}")) for number in range(parts.KEPT_OF_NODE + 50)
    ]
    write(model, Story(), (1.0, told("n2", GPU, serial="S")), *flood)
    assert len(model.parts_of("n1")) == parts.KEPT_OF_NODE
    assert len(model.parts_of("n2")) == 1


def test_what_was_told_comes_from_the_log_once(model: ReadModel) -> None:
    """A log that is read again changes nothing; other events are no inventory."""
    from brain.console.feed import Feed
    from brain.core.inputs import EventSeen

    for _ in range(2):
        writer = HistoryWriter(model, Feed())
        writer.open("log-1")
        writer.collect(1, [], EventSeen(event=told("n1", GPU, serial="S1")), 10.0)
        writer.collect(2, [], EventSeen(event=Story().event(1, "gpu.xid", GPU, code=79)), 11.0)
        assert writer.flush()
    assert [(one["serial"], one["since"], one["seen"]) for one in model.parts_of("n1")] == [
        ("S1", 10.0, 10.0)
    ]
