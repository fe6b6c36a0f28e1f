"""An operator closes a shared cause: what is left when it is over is as if each of its faults had been closed."""

from dataclasses import replace

from brain.core.pack.spec import Place
from brain.core.state import IncidentState, RunState
from brain.core.why import why_not
from brain.core.why.why_not import MatchOutcome
from tests.brain.world import Story, pack

NODES = [f"n{number}" for number in range(20)]
CLOSED_AT = 100.0


def closed() -> Story:
    """Ten of twenty nodes lose a link at once; ann closes their shared incident. All but n0 and n1 have theirs again at 200."""
    given = pack()
    lasting = tuple(replace(one, ttl_s=86_400) if one.name == "link_down" else one for one in given.symptoms)
    story = Story(replace(given, symptoms=lasting))
    for node in NODES:
        story.event(1, "agent.started", "node", node)
    for node in NODES[:10]:
        story.event(10, "link.state", "link/eth1", node, up=False)
    story.run(50)
    (shared,) = [one for one in story.incidents("shared-link-down-cell") if one.state is IncidentState.OPEN]
    story.say(CLOSED_AT, "close", id=shared.id)
    for node in NODES[2:10]:
        story.event(200, "link.state", "link/eth1", node, up=True)
    return story


def opened(story: Story) -> list[str]:
    """The nodes that have an incident of their own."""
    return [one.node for one in story.incidents("link-down") if one.state not in ("explained", "closed")]


def test_what_nothing_new_is_told_of_stays_closed() -> None:
    """Nobody gets one page for each node that is left."""
    story = closed().run(2000)
    assert (
        "shared_link_down_cell@cell" not in story.engine.state.symptoms
        or not story.engine.state.symptoms["shared_link_down_cell@cell"].active
    )
    assert opened(story) == []
    assert list(story.engine.state.dismissed.values()) == [CLOSED_AT, CLOSED_AT]
    assert story.actions() == []


def test_what_is_left_an_hour_after_the_others_is_told() -> None:
    """Ann has closed the cause of ten links and not two: who is there still is healed and told as any other."""
    story = closed().run(5000)
    begun = {one.node: one.opened_at for one in story.incidents("link-down") if one.opened_at > CLOSED_AT}
    assert list(begun) == ["n0", "n1"]
    assert min(begun.values()) >= 200 + 3600
    assert {node for node, _ in story.actions()} == {"n0", "n1"}


def test_what_ends_within_the_hour_is_not_told() -> None:
    """Also not when it comes back: that is a new fault, told at once."""
    story = closed()
    story.event(3000, "link.state", "link/eth1", "n0", up=True)
    story.event(3000, "link.state", "link/eth1", "n1", up=True)
    story.run(10_000)
    assert opened(story) == []


def test_a_newer_fact_of_one_of_them_opens_its_incident() -> None:
    """It was told again and again, and nobody heard of it: its shared cause was over, and it had no incident."""
    story = closed().run(2000)
    story.event(2000, "link.state", "link/eth1", "n0", up=False)
    story.run(2003)
    assert opened(story) == ["n0"]


def test_what_was_told_since_it_was_closed_opens_when_the_shared_cause_is_over() -> None:
    """n1's link was told to be down once more, while its shared cause stood for it."""
    story = closed()
    story.event(150, "link.state", "link/eth1", "n1", up=False)
    story.run(199)
    assert opened(story) == []
    story.run(2000)
    assert [one.node for one in story.incidents("link-down") if one.opened_at > CLOSED_AT] == ["n1"]


def test_what_ends_is_dismissed_no_longer() -> None:
    """When it comes back it is a new fault."""
    story = closed().run(2000)
    for node in NODES[:2]:
        story.event(2000, "link.state", "link/eth1", node, up=True)
    story.event(2010, "link.state", "link/eth1", "n0", up=False)
    story.run(2013)
    assert story.engine.state.dismissed == {}
    assert opened(story) == ["n0"]


def test_a_closed_place_explains_no_newer_nodes_elsewhere() -> None:
    """Ann closes the cause of one leaf switch; half an hour later nodes elsewhere make it many of the cell: people hear of those.

    They were held for the sake of a shared cause (law 6) of which nobody had an incident.
    """
    places = {f"n{number}": Place(leaf=f"l{number // 8}") for number in range(40)}
    story = Story(pack(places=places), heals=False)
    for node in places:
        story.event(1, "agent.started", "node", node)
    for number in range(6):
        story.event(10, "link.state", "link/eth1", f"n{number}", up=False)
    story.run(50)
    (leaf,) = [one for one in story.incidents() if one.state is IncidentState.OPEN]
    assert leaf.scope == "leaf/l0"
    story.say(CLOSED_AT, "close", id=leaf.id)
    for number in (8, 20):
        story.event(1800 + number / 100, "link.state", "link/eth1", f"n{number}", up=False)
    story.run(3000)
    (cell,) = [one for one in story.incidents() if one.opened_at > 1800 and one.scope == "cell"]
    assert cell.state is IncidentState.OPEN
    assert cell.pages.first_at
    assert not [run for run in story.engine.state.runs.values() if run.state is RunState.HELD]
    assert opened(story) == []


def test_why_not_says_when_what_is_left_is_told() -> None:
    """Whoever asks why n0 has no incident hears that the cause is over, and when it has one."""
    story = closed().run(2000)
    found = why_not.of(story.engine.look(), "link-down", "link/n0/eth1")
    assert found.outcome is MatchOutcome.DISMISSED
    assert "an operator closed what explained it, which is over" in found.text[0]
    assert found.text[1].startswith("it is told in ")
    assert found.until == story.engine.state.timers["left:link-down@link/n0/eth1"]


def test_why_not_says_how_long_after_its_cause_a_node_fell_ill() -> None:
    """A late member of a shared cause is explained by it, and people hear how late it was."""
    story = Story(pack(), heals=False)
    for node in NODES:
        story.event(1, "agent.started", "node", node)
    for number, node in enumerate(NODES[:11]):
        story.event(10 if number < 10 else 610, "link.state", "link/eth1", node, up=False)
    story.run(700)
    found = why_not.of(story.engine.look(), "link-down", "link/n10/eth1")
    assert found.outcome is MatchOutcome.EXPLAINED
    assert found.text[1:] == ("it began 10 minutes after that",)


def test_one_node_beside_a_closed_place_is_told_and_healed() -> None:
    """Ann closes the cause of seven nodes of a leaf switch; a node of the next leaf switch of their row fails 20 minutes later.
    The row has eight by then, but seven are what she has closed: the node has an incident and a remedy of its own.
    """
    places = {f"n{number}": Place(leaf=f"l{number // 8}", row=f"w{number // 16}") for number in range(160)}
    story = Story(pack(places=places))
    for node in places:
        story.event(1, "agent.started", "node", node)
    for number in range(7):
        story.event(10, "link.state", "link/eth1", f"n{number}", up=False)
    story.run(50)
    (leaf,) = [one for one in story.incidents() if one.state is IncidentState.OPEN]
    assert leaf.scope == "leaf/l0"
    story.say(CLOSED_AT, "close", id=leaf.id)
    story.event(1200, "link.state", "link/eth1", "n9", up=False)
    story.run(2500)
    since = [one.scope for one in story.incidents() if one.opened_at > CLOSED_AT]
    assert since == ["link/n9/eth1"]
    assert {node for node, _ in story.actions()} == {"n9"}
