"""Nodes that fall ill at once share a cause, however few of the cell they are; agents that have just started show none."""

from typing import Any

import pytest

from brain.adapters.snapshot import dump, parse
from brain.core.engine import Engine
from brain.core.inputs import NodeState
from brain.core.pack.actions import ACTIONS
from brain.core.pack.spec import Mode, ModeSetting, Paging, Priority, Settings
from tests.brain.world import Story, pack
from tests.shipped import shipped_pack

NODES = 400


def site(**settings: Any) -> Story:
    """400 nodes that have been heard for long; nothing is known of where they are, and no remedy helps."""
    story = Story(pack(**settings), heals=False)
    for number in range(NODES):
        story.time.feed(NodeState(id=f"h{number}", node=f"n{number}", alive=True), 1)
    story.run(2)
    return story


def ill(story: Story, count: int, every_s: float, *, late: int = 0, started: bool = False) -> list[Any]:
    """So many nodes lose a link, one after the other. `late`: so many of them tell it ten minutes later. The cell's incidents."""
    for number in range(count):
        at = 1000 + number * every_s
        age_s = 600.0 if number < late else 0.0
        if started:
            story.event(at + age_s - 5, "agent.started", "node", f"n{number}")
        story.event(at + age_s, "link.state", "link/eth0", f"n{number}", age_s=age_s, up=False)
    story.run(2500)
    return [one for one in story.incidents() if one.scope == "cell"]


@pytest.mark.parametrize(
    ("count", "every_s", "shared"),
    [
        pytest.param(8, 4, True, id="eight within half a minute"),
        pytest.param(20, 0, True, id="twenty in one moment"),
        pytest.param(7, 0, False, id="seven in one moment"),
        pytest.param(20, 5, False, id="twenty in two minutes, never eight of them within half a minute"),
    ],
)
def test_what_is_at_once(count: int, every_s: float, shared: bool) -> None:
    """Eight of 400 are no large share: their closeness makes the cause."""
    assert bool(ill(site(), count, every_s)) is shared


def test_it_is_by_when_the_facts_occurred() -> None:
    """Five of nine tell it ten minutes later, for their uplink was full."""
    (incident,) = ill(site(), 9, 1, late=5)
    assert len(incident.affected) == 9


def test_agents_that_have_just_started_tell_what_they_find() -> None:
    """What twelve of them say at their first look has been so for nobody knows how long."""
    assert not ill(site(), 12, 1, started=True)


@pytest.mark.parametrize("every_s", [4, 10, 100], ids="every {} s".format)
def test_agents_that_start_again_and_again_are_at_their_first_look(every_s: int) -> None:
    """A new agent that comes down soon after each start tells nothing of when it began either."""
    story = site()
    for number in range(12):
        at = 1000 + 2 * number
        facts: list[tuple[float, str, str, dict[str, Any]]]
        facts = [(at + every_s * again, "agent.started", "node", {}) for again in range(4)]
        facts.append((at + 1, "link.state", "link/eth0", {"up": False}))
        for when, kind, component, data in sorted(facts, key=lambda fact: fact[0]):
            story.event(when, kind, component, f"n{number}", **data)
    story.run(2500)
    assert not [one for one in story.incidents() if one.scope == "cell"]


@pytest.mark.parametrize("settings", [{"shared_at_once_s": 0.0}, {"shared_nodes": 30}], ids=str)
def test_a_site_may_want_it_otherwise(settings: dict[str, Any]) -> None:
    """Never, or with more nodes."""
    assert not ill(site(**settings), 12, 1)


def test_few_nodes_are_never_enough() -> None:
    """A site that takes three nodes and a large share for a shared cause does not mean three of 400."""
    assert not ill(site(shared_nodes=3), 5, 0)
    assert ill(site(shared_nodes=3), 8, 0)


def test_it_is_as_urgent_as_it_is_large() -> None:
    """A few nodes are P1; when it has grown to a tenth of the cell it is P0, and people hear that."""
    story = site()
    (incident,) = ill(story, 10, 0)
    assert (incident.severity, incident.page) == (Priority.P1, Paging.OPEN)
    for number in range(10, 45):
        story.event(2600 + number, "link.state", "link/eth0", f"n{number}", up=False)
    story.run(2700)
    (incident,) = [one for one in story.incidents() if one.scope == "cell"]
    assert incident.severity == Priority.P0
    assert any("raised from P1 to P0" in page.text for page in story.time.pages)


def test_it_lasts_while_half_of_those_that_it_takes_are_ill() -> None:
    """Four of eight keep it up after minutes without news; three do not. A restart changes nothing."""
    story = site()
    ill(story, 8, 0)
    story.engine = Engine(parse(dump(story.engine.state)), actions=ACTIONS)
    story.time.engine = story.engine
    for number in range(4):
        story.event(3000, "link.state", "link/eth0", f"n{number}", up=True)
    story.run(4000)
    assert [one.state for one in story.incidents() if one.scope == "cell"] == ["open"]
    story.event(4001, "link.state", "link/eth0", "n4", up=True)
    story.run(4200)
    assert [one.state for one in story.incidents() if one.scope == "cell"] == ["closed"]


@pytest.mark.parametrize("again", [False, True], ids=["single faults", "and a second burst"])
def test_single_faults_that_come_later_do_not_keep_it_up(again: bool) -> None:
    """In a large cell some node is always ill. When the burst is mended these are judged one by one, unless they came at once."""
    story = site()
    ill(story, 8, 0)
    late = [f"n{number}" for number in range(20, 28)]
    for number, node in enumerate(late):
        story.event(2600 + (number if again else 210 * number), "link.state", "link/eth0", node, up=False)
    for number in range(5):
        story.event(4300, "link.state", "link/eth0", f"n{number}", up=True)
    story.run(4500)
    assert [one.state for one in story.incidents() if one.scope == "cell"] == ["open" if again else "closed"]
    alone = {one.node for one in story.incidents() if one.node and one.state not in ("explained", "closed")}
    assert alone == (set() if again else {*late, "n5", "n6", "n7"})


def test_what_grows_on_lasts_with_those_that_it_took_later() -> None:
    """The first eight are well again while it goes on from node to node: twelve more within minutes are the same cause."""
    story = site()
    for number in range(20):
        at = 1000 + max(0, number - 7) * 60
        story.event(at, "link.state", "link/eth0", f"n{number}", up=False)
    for number in range(8):
        story.event(1900, "link.state", "link/eth0", f"n{number}", up=True)
    story.run(4000)
    assert [one.state for one in story.incidents() if one.scope == "cell"] == ["open"]


def test_a_burst_within_a_large_cause_outlasts_it() -> None:
    """A tenth of the cell is ill when eight more fall ill at once. When only these are left, they still are one cause (law 6)."""
    story = site()
    ill(story, 45, 0)
    for number in range(100, 108):
        story.event(3000, "link.state", "link/eth0", f"n{number}", up=False)
    for number in range(45):
        story.event(3500, "link.state", "link/eth0", f"n{number}", up=True)
    story.run(4500)
    assert [one.state for one in story.incidents() if one.scope == "cell"] == ["open"]
    assert not [one for one in story.incidents() if one.node and one.state != "explained"]


def test_what_a_large_cause_leaves_behind_is_judged_one_by_one() -> None:
    """Forty-five nodes at once; the cause is mended, and six of them do not come back by themselves."""
    story = site()
    ill(story, 45, 0)
    for number in range(39):
        story.event(3000, "link.state", "link/eth0", f"n{number}", up=True)
    story.run(3500)
    assert [one.state for one in story.incidents() if one.scope == "cell"] == ["closed"]


class Ports(Story):
    """What is shipped, on 400 nodes that have been heard for long."""

    def __init__(self) -> None:
        super().__init__(shipped_pack(Settings(modes=(ModeSetting(mode=Mode.AUTO),))), heals=False)
        for number in range(NODES):
            self.time.feed(NodeState(id=f"h{number}", node=f"n{number}", alive=True), 1)
        self.run(2)

    def port(self, at: float, number: int, state: str) -> None:
        """The state of a node's port."""
        self.event(
            at, "ib.port_state", "port/mlx5_0.1", f"n{number}", state=state, before="", phys_state="Polling"
        )


def test_a_remedy_that_is_faster_than_the_burst_does_not_hide_it() -> None:
    """The first of nine ports is up again before the last one has been down for half a minute: one fabric."""
    story = Ports()
    for number in range(9):
        story.port(1000 + 3 * number, number, "DOWN")
    story.port(1036, 0, "ACTIVE")
    story.port(1040, 1, "ACTIVE")
    story.run(1500)
    assert [one.cause for one in story.incidents() if one.scope == "cell"] == ["fabric-suspected"]
    treated = {node for node, action in story.actions() if action == "ib.port_reset"}
    assert treated <= {"n0", "n1", "n2"}  # they came before the last one was known


@pytest.mark.parametrize("restarts", [False, True])
def test_who_falls_ill_hours_later_is_told_and_healed(restarts: bool) -> None:
    """Eight that wait for their parts, or that lie, do not stop the others of the cell."""
    story = site()
    assert len(ill(story, 8, 0)) == 1
    if restarts:
        story.engine.state = parse(dump(story.engine.state))
    for number, later in enumerate((4 * 3600, 9 * 3600)):
        story.event(later, "link.state", "link/eth0", f"n{300 + number}", up=False)
        story.run(later + 600)
        own = [one for one in story.incidents() if one.node == f"n{300 + number}"]
        assert [one.state.value for one in own] == ["needs_human"], "its remedy was tried, and did not help"
        assert own[0].pages.sent
    assert {node for node, action in story.actions() if action == "link.bounce"} == {"n300", "n301"}


def test_one_of_the_eight_is_not_told_alone() -> None:
    """Nor is one that falls ill within minutes of them."""
    story = site()
    ill(story, 8, 0)
    story.event(2600, "link.state", "link/eth0", "n3", up=False)
    story.run(4000)
    assert not story.actions()
    later = site()
    ill(later, 8, 0)
    assert not later.actions()


@pytest.mark.parametrize("count", [7, 9])
def test_another_part_of_nodes_that_show_it_already(count: int) -> None:
    """Each has had one bad cable for hours: nine that lose another port within seconds are one cause, seven are not."""
    story = site()
    for number in range(9):
        story.event(1000 + 2000 * number, "link.state", "link/eth0", f"n{number}", up=False)
    story.run(30_000)
    assert not [one for one in story.incidents() if one.scope == "cell"]
    story.engine = story.time.engine = Engine(parse(dump(story.engine.state)), actions=ACTIONS)
    for number in range(count):
        story.event(30_000 + number, "link.state", "link/eth1", f"n{number}", up=False)
    story.run(31_000)
    assert len([one for one in story.incidents() if one.scope == "cell"]) == (count == 9)


def test_nodes_that_fall_ill_at_once_long_after_the_first_ones_are_news() -> None:
    """Who has acknowledged eight nodes hears of twelve others hours later, once; not of what comes within minutes."""
    story = site()
    (incident,) = ill(story, 8, 0)
    story.say(2510, "ack", id=incident.id)
    for number in range(20, 28):
        story.event(2530, "link.state", "link/eth0", f"n{number}", up=False)
    story.run(2600)
    told = [page for page in story.time.pages if "more nodes fell ill at once" in page.text]
    assert len(told) == 1
    assert "8 more nodes fell ill at once, 26 minutes after the others: n20, n21" in told[0].text
    for number in range(30, 42):
        story.event(2700 + number, "link.state", "link/eth0", f"n{number}", up=False)
    for number in range(50, 62):
        story.event(4500 + number, "link.state", "link/eth0", f"n{number}", up=False)
    story.run(4700)
    told = [page for page in story.time.pages if "more nodes fell ill at once" in page.text]
    assert len(told) == 2
    assert "n50" in told[1].text
