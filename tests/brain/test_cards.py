"""A card's past follows it into another chassis, by its serial number (decision 70)."""

from typing import Any

import pytest

from brain.core.faults import cards
from brain.core.state import CardFault
from tests.brain.world import GPU, Story, pack

DAY = 86_400.0
CARD = "1653023018213"


def has(story: Story, at: float, node: str, serial: str, component: str = GPU, **more: Any) -> None:
    """A node says which card it has in a slot."""
    story.event(at, cards.KIND, component, node, serial=serial, **more)


def loses(story: Story, at: float, node: str, component: str = GPU) -> str:
    """A GPU falls off the bus and comes back. Why its incident opened."""
    story.event(at, "gpu.off_bus", component, node)
    story.run(at + 5)
    (found,) = [one for one in story.incidents("gpu-lost") if one.opened_at >= at]
    story.event(at + 10, "gpu.returned", component, node)
    story.run(at + 600)
    return str(found.because)


def moved(*, days: float = 3.0, serial: str = CARD) -> str:
    """What people read when a card is ill in the node to which it was moved."""
    story = Story(pack())
    has(story, 1, "n1", CARD)
    loses(story, 1000, "n1")
    loses(story, 5000, "n1")
    has(story, 10_000, "n1", "1653023018999")
    has(story, 10_000, "n2", serial)
    return loses(story, 5000 + days * DAY, "n2")


def test_people_read_what_the_card_had_before() -> None:
    """Two faults in n1, and one three days later in n2, into which it was moved."""
    assert moved() == (
        f"because of gpu-lost; the card {CARD} had 2 faults (gpu-lost) at gpu/n1/0000:3b:00, the last one 3 days ago: "
        "the fault may have moved with it"
    )


@pytest.mark.parametrize(
    "more",
    [
        pytest.param({"days": 30.0}, id="a month ago"),
        pytest.param({"serial": "1653023018000"}, id="another card"),
        pytest.param({"serial": ""}, id="a card without a number"),
        pytest.param({"serial": "a b"}, id="what is no number"),
    ],
)
def test_nothing_is_said(more: dict[str, Any]) -> None:
    """Of what is long over, and of what is not known."""
    assert moved(**more) == "because of gpu-lost"


def test_a_card_in_its_place_has_no_past_elsewhere() -> None:
    """Its faults there are told by other rules; the one that replaces it has none."""
    story = Story(pack())
    has(story, 1, "n1", CARD)
    loses(story, 1000, "n1")
    assert loses(story, 5000, "n1") == "because of gpu-lost"
    has(story, 10_000, "n1", "1653023018999")
    assert loses(story, 20_000, "n1") == "because of gpu-lost"
    assert story.engine.state.cards == {"n1": f"{GPU}=1653023018999"}


def test_a_card_without_a_serial_number_goes_by_its_uuid() -> None:
    """As those that are sold to people at home."""
    story = Story(pack())
    has(story, 1, "n1", "", uuid="GPU-5c1b2f7e")
    loses(story, 1000, "n1")
    has(story, 2000, "n1", "", uuid="")
    has(story, 3000, "n2", "", uuid="GPU-5c1b2f7e")
    assert "the card GPU-5c1b2f7e had 1 fault" in loses(story, 9000, "n2")
    assert story.engine.state.cards == {"n2": f"{GPU}=GPU-5c1b2f7e"}


def test_what_is_remembered_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """Slots of a node, faults of a card, and cards; a node may say what it likes."""
    monkeypatch.setattr(cards, "MAX_CARDS", 2)
    story = Story(pack())
    for slot in range(40):
        has(story, 1 + slot, "n1", f"serial-{slot}", f"gpu/0000:{slot:02x}:00")
    has(story, 50, "n1", "serial-x", "gpu/with=a-sign")
    story.run(60)
    assert len(story.engine.state.cards["n1"].split()) == cards.MAX_SLOTS
    assert "serial-x" not in story.engine.state.cards["n1"]
    for slot in range(3):
        loses(story, 1000 + 2000 * slot, "n1", f"gpu/0000:{slot:02x}:00")
    known = story.engine.state.card_faults
    assert list(known) == ["serial-1", "serial-2"]
    known["serial-1"] = [
        CardFault(at=2000.0 + n, cause="x", place="gpu/n7/1") for n in range(cards.MAX_FAULTS)
    ]
    assert f"had {cards.MAX_FAULTS} faults (x) at gpu/n7/1" in loses(story, 9000, "n1", "gpu/0000:01:00")
    assert len(known["serial-1"]) == cards.MAX_FAULTS
    story.say(20_000, "forget", node="n1")
    story.run(20_001)


def test_a_node_that_is_forgotten_leaves_the_past_of_its_cards() -> None:
    """They may be in another one by now."""
    story = Story(pack())
    has(story, 1, "n1", CARD)
    loses(story, 1000, "n1")
    cards.forget_node(story.engine.look(), "n1")
    assert story.engine.state.cards == {}
    has(story, 5000, "n2", CARD)
    assert CARD in loses(story, 9000, "n2")
