"""Timers and liveness, with clocks that the test controls."""

from dataclasses import dataclass

import orjson
from hypothesis import given
from hypothesis import strategies as st

from agent.contract.messages import Beat, encode_beat
from brain.adapters.liveness import Beats, Liveness
from brain.adapters.log import LogClock
from brain.adapters.timers import REPEAT_S, Timers
from brain.core.state import Node


@dataclass
class Clock:
    """A clock that the test sets."""

    now: float = 1000.0

    def __call__(self) -> float:
        return self.now


def test_a_timer_fires_once_when_it_is_due_and_again_only_if_the_engine_did_not_handle_it() -> None:
    """The second message has another id: the server would drop a repeated one."""
    clock, state = Clock(), {"a": 1010.0, "b": 1020.0}
    timers = Timers(clock)
    timers.reset(state)
    assert timers.due(state) == []
    clock.now = 1010.0
    assert [(one.id, one.due) for one in timers.due(state)] == [("t:a:1010.0", 1010.0)]
    assert timers.due(state) == []
    clock.now += REPEAT_S
    assert [one.id for one in timers.due(state)] == ["t:a:1010.0:1"]
    del state["a"]  # the engine has handled it
    clock.now = 1050.0
    assert [one.id for one in timers.due(state)] == ["t:b:1020.0"]


def test_a_timer_that_was_reset_fires_at_its_new_time_only() -> None:
    """The old entry does not fire."""
    clock, state = Clock(), {"a": 1010.0}
    timers = Timers(clock)
    timers.reset(state)
    state["a"] = 1030.0
    timers.set("a", 1030.0)
    clock.now = 1020.0
    assert timers.due(state) == []
    clock.now = 1030.0
    assert [one.due for one in timers.due(state)] == [1030.0]


def test_timers_that_are_reset_with_each_event_do_not_pile_up() -> None:
    """A hundred thousand renewals of one timer keep a bounded heap."""
    clock, state = Clock(), {"a": 0.0}
    timers = Timers(clock)
    for number in range(100_000):
        state["a"] = 2000.0 + number
        timers.set("a", state["a"])
        if number % 1000 == 0:
            timers.due(state)
            assert len(timers._heap) <= 2100


@given(st.lists(st.tuples(st.floats(0, 10), st.floats(-5, 5)), max_size=60))
def test_the_logs_clock_never_runs_backwards(steps: list[tuple[float, float]]) -> None:
    """Whatever timestamps the server gives, and however late they arrive, from the first one on."""
    clock = Clock()
    log = LogClock(clock, lambda: 5000.0)
    log.calibrate(clock.now + 4000.0)
    last = log.now()
    for pause, shift in steps:
        clock.now += pause
        log.calibrate(clock.now + 4000.0 + shift)
        assert log.now() >= last
        last = log.now()


def test_the_logs_clock_follows_the_server_and_not_this_machine() -> None:
    """A wall clock that is an hour off does not matter once a message has arrived."""
    clock = Clock()
    log = LogClock(clock, lambda: 1000.0)
    log.calibrate(clock.now + 3600.0)
    clock.now += 5
    assert log.now() == clock.now + 3600.0


def beat(beats: Beats, node: str) -> None:
    """A beat arrives."""
    body = orjson.dumps(
        encode_beat(Beat(node=node, session="s", boot="b", mono_s=5.0, version="1", spooled=0, dropped=0))
    )
    assert beats.take(node, body)


def test_a_brain_that_was_cut_off_does_not_call_the_fleet_unreachable() -> None:
    """After a start, a lost connection or a suspension it first receives beats for the whole interval."""
    clock = Clock()
    beats = Beats(clock)
    live = Liveness(beats, 15, clock)
    nodes = {name: Node(name=name) for name in ("n1", "n2")}

    def sweep(seconds: int) -> list[tuple[str, bool]]:
        reported = []
        for _ in range(seconds):
            clock.now += 1
            beat(beats, "n1")
            reported += [(one.node, one.alive) for one in live.sweep(nodes, 1)]
        return reported

    assert sweep(15) == []
    assert sweep(2) == [("n2", False)], "n2 sent no beat"
    nodes["n2"].alive = False
    assert sweep(30) == [], "reported once"
    clock.now += 300  # the process was suspended: SIGSTOP, a hung disk
    assert [one.node for one in live.sweep(nodes, 1)] == []
    assert sweep(14) == []
    beat(beats, "n2")
    assert [(one.node, one.alive) for one in live.sweep(nodes, 1)] == [("n2", True)]


def test_a_node_that_only_beats_becomes_known() -> None:
    """A message that is no valid beat is only counted."""
    clock = Clock()
    beats = Beats(clock)
    live = Liveness(beats, 15, clock)
    beat(beats, "n9")
    assert [(one.node, one.alive) for one in live.sweep({}, 1)] == [("n9", True)]
    for body in (b"", b"{}", b"\xff", orjson.dumps({"v": 1, "node": "other"})):
        assert not beats.take("n1", body)
    assert beats.malformed == 4
    assert beats.session("n1") is None
    clock.now += 3
    assert beats.session("n9") == ("s", 8.0)


def test_a_wall_clock_that_is_ahead_is_forgotten_with_the_first_message() -> None:
    """Else every timer would be published early until the log has caught up."""
    mono = 50.0
    log = LogClock(lambda: mono, lambda: 9000.0)
    assert log.now() == 9000.0
    log.calibrate(1000.0)
    assert log.now() == 1000.0


def test_a_beat_that_has_waited_tells_of_no_wrong_clock() -> None:
    """In a storm it lies for seconds before the brain takes it: that is no fault of the node's clock."""
    beats = Beats(Clock(), lambda: 5020.0)
    beat = Beat(
        node="n1", session="s", boot="b", mono_s=1.0, version="1", spooled=0, dropped=0, wall_s=5000.5
    )
    body = orjson.dumps(encode_beat(beat))
    beats.take("n1", body, 19.5)
    assert beats.newest["n1"].ahead_s == 0.0
    beats.take("n1", body, -1.0)
    assert beats.newest["n1"].ahead_s == -19.5
