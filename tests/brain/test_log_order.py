"""Stories about the log's order and time: events before the first rules, and a clock that is stepped back."""

from brain.core.engine import Engine
from brain.core.inputs import EventSeen, Leader, PackLoaded
from brain.core.pack.actions import ACTIONS
from brain.core.pack.spec import Mode
from brain.core.rehearsal.timeline import Timeline
from tests.brain.world import GPU, Story, pack


def test_events_that_came_before_the_first_rules_are_judged_when_the_rules_come() -> None:
    """A new site: agents run before the brain has its first rules, and a failed service is reported only once."""
    engine = Engine(actions=ACTIONS)
    time = Timeline(engine)
    early = Story()
    event = early.event(0, "service.state", "service/x.service", active="failed")
    time.feed(EventSeen(event=event), 5)
    time.feed(Leader(id="l", epoch=1, brain="b"), 6)
    time.feed(PackLoaded(id="p", pack=pack(Mode.OBSERVE)), 8)
    time.run(20)
    (incident,) = time.incidents.values()
    assert (incident.cause, incident.evidence[0].at) == ("service-failed", 5)


def test_time_that_runs_backwards_counts_as_standing_still() -> None:
    """The broker's clock is stepped back by an hour: nothing is undone, and new events count from the last time."""
    story = Story()
    story.event(5000, "link.state", "link/eth1", up=False)
    story.run(5000.5)
    story.engine.handle(EventSeen(event=Story().event(0, "gpu.lost", GPU, "n2", reason="lost")), 1400)
    assert story.engine.state.now == 5000
    assert [i.opened_at for i in story.engine.state.incidents.values() if i.node == "n2"] == [5000]
    story.run(5200)
    assert ("n1", "link.bounce") in story.actions()
