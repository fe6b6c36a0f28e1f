"""A cause that grows from place to place: people are called when it is clear which one it is, not for what it leaves behind."""

from brain.core.faults.growing import AWAKE_S, HELD_BACK_S
from brain.core.incidents import OVER
from brain.core.pack.spec import Place
from brain.core.paging import alerts
from brain.core.state import IncidentState
from tests.brain.world import Story, pack

BEGAN = 100.0
PLACES = {f"n{number:03}": Place(leaf=f"l{number // 8}", row=f"w{number // 64}") for number in range(256)}
NODES = list(PLACES)


def cell() -> Story:
    """256 nodes: leaf switches of 8, rows of 64."""
    story = Story(pack(places=PLACES), heals=False)
    for node in NODES:
        story.event(1, "agent.started", "node", node)
    return story


def down(story: Story, nodes: list[str], every_s: float, at: float = BEGAN, *, up: bool = False) -> None:
    """One after the other loses its link, or has it again."""
    for number, node in enumerate(nodes):
        story.event(at + number * every_s, "link.state", "link/eth1", node, up=up)


def opened(story: Story) -> list[str]:
    """The places of which people were told, in order: by an alert, or as news of the one that a first node has begun, which goes
    on as the place's (decision 69).
    """
    ids = [note.data["page"] for note in story.time.notes if note.kind == "page.sent"]
    return [
        page.subject.scope
        for page in story.time.pages
        if (page.what == "open" or (page.what == "update" and ", which explains " in page.text))
        and page.id in ids
        and not page.subject.node
    ]


def test_a_place_that_falls_ill_at_once_waits_for_nothing() -> None:
    """All nodes of a leaf switch within a second: it does not grow."""
    story = cell()
    down(story, NODES[:8], 0.1)
    story.run(BEGAN + 10)
    assert opened(story) == ["leaf/l0"]


def test_a_place_that_grows_waits_until_it_does_not() -> None:
    """A node of one leaf switch every five seconds; the page comes when three such pauses have gone by without one."""
    story = cell()
    down(story, NODES[:6], 5.0)
    last = BEGAN + 25
    story.run(last + 14)
    assert opened(story) == []
    story.run(last + 25)
    assert opened(story) == ["leaf/l0"]


def test_one_page_for_what_grows_through_a_row() -> None:
    """The leaf switches of a row one after the other, a node every two seconds: one page, of the row."""
    story = cell()
    down(story, NODES[:64], 2.0)
    story.run(BEGAN + 300)
    assert opened(story) == ["row/w0"]


def test_nobody_waits_for_ever_for_a_cause_that_creeps() -> None:
    """A node every half minute, first of one leaf, then of others: people hear of the leaf two minutes after it was known."""
    story = cell()
    down(story, [*NODES[:8], *NODES[8:64:4]], 30.0)
    (leaf,) = [one for one in story.run(BEGAN + 110).incidents() if one.scope == "leaf/l0"]
    assert leaf.state is IncidentState.SETTLING
    story.run(leaf.opened_at + HELD_BACK_S - 1)
    assert opened(story) == []
    story.run(leaf.opened_at + HELD_BACK_S + 6)
    assert opened(story) == ["leaf/l0"]


def test_who_is_awake_already_hears_of_the_next_place_later() -> None:
    """People were called for the first leaf switch: the second waits for four minutes in place of two."""
    story = cell()
    down(story, NODES[:8], 0.1)
    story.run(BEGAN + 10)
    down(story, NODES[64:72], 40.0, BEGAN + 1000)
    story.run(BEGAN + 1200)
    (second,) = [one for one in story.incidents() if one.scope == "leaf/l8"]
    story.run(second.opened_at + AWAKE_S - 1)
    assert opened(story) == ["leaf/l0"]
    story.run(second.opened_at + AWAKE_S + 6)
    assert opened(story) == ["leaf/l0", "leaf/l8"]


def test_what_a_cause_leaves_behind_calls_nobody() -> None:
    """The row is well again but for its last leaf switch, which is well a minute later: nobody is called for that leaf."""
    story = cell()
    down(story, NODES[:64], 0.5)
    story.run(BEGAN + 100)
    assert opened(story) == ["row/w0"]
    down(story, NODES[:57], 0.1, BEGAN + 1000, up=True)
    down(story, NODES[57:64], 0.1, BEGAN + 1090, up=True)
    story.run(BEGAN + 2000)
    assert opened(story) == ["row/w0"]
    assert {one.state.value for one in story.incidents()} == {"closed", "explained"}


def test_what_stays_of_a_cause_is_told_all_the_same() -> None:
    """The last leaf switch of the row does not come back: people hear of it within minutes."""
    story = cell()
    down(story, NODES[:64], 0.5)
    down(story, NODES[:57], 0.1, BEGAN + 1000, up=True)
    story.run(BEGAN + 1500)
    assert opened(story) == ["row/w0", "leaf/l7"]


def test_who_has_passed_its_alert_on_has_one_of_its_own_when_it_comes_back() -> None:
    """A leaf switch that was ill before takes over the alert of a node, and within its hold-off the row takes over that of the
    leaf. When leaf and row come back, each has an alert, and each of those ends.
    """
    story = cell()
    down(story, NODES[:8], 0.1)
    down(story, NODES[:8], 0.1, 1000, up=True)
    down(story, NODES[:1], 0.1, 2000)
    down(story, NODES[1:64], 0.02, 2100)
    down(story, NODES[:64], 0.02, 3000, up=True)
    down(story, NODES[:8], 0.1, 4000)
    story.run(4100)
    down(story, NODES[64:65], 0.1, 4100)
    down(story, NODES[8:64], 0.02, 4200)
    story.run(4300)
    live = [one for one in story.incidents() if one.state not in OVER]
    assert {"row/w0"} <= {one.scope for one in live} <= {"leaf/l0", "row/w0", f"link/{NODES[64]}/eth1"}
    holders = {one.id: alerts.holder(story.engine.state, alerts.key(one)) for one in live}
    assert {id_: held.id for id_, held in holders.items() if held} == {one.id: one.id for one in live}
    down(story, NODES[:65], 0.02, 6000, up=True)
    story.run(12_000)
    told: dict[str, list[str]] = {}
    for page in story.time.pages:
        told.setdefault(page.id.rpartition(".p")[0], []).append(page.what)
    assert {alert: of[-1] for alert, of in told.items()} == dict.fromkeys(told, "resolve")
    ids = [note.data["page"] for note in story.time.notes if note.kind == "page.sent"]
    assert len(ids) == len(set(ids))
