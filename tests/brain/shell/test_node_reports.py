"""What the brain tells of nodes by itself: two agents that speak under one name."""

from dataclasses import dataclass, field

from agent.contract.messages import Beat
from brain.core.inputs import Input, Reported
from brain.leader.node_reports import IN_TURN_S, TOLD_AGAIN_S, NodeReports


@dataclass
class Heard:
    """Reports by a clock that the test moves; a sweep follows each beat, as each second."""

    now_s: float = 1000.0
    told: list[Input] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.reports = NodeReports(self.told.append, lambda: self.now_s)
        self.reports.begin("1")

    def beats(self, *sessions: str, boot: str = "") -> None:
        """A beat of each session, one each second."""
        for session in sessions:
            self.now_s += 1.0
            self.reports.beat(
                Beat(
                    node="gpu-15",
                    session=session,
                    boot=boot or f"boot of {session}",
                    mono_s=self.now_s,
                    version="1",
                    spooled=0,
                    dropped=0,
                )
            )
            self.reports.sweep()

    def passes(self, seconds: float) -> None:
        self.now_s += seconds
        self.reports.sweep()

    def reported(self) -> list[dict[str, object]]:
        assert all(isinstance(one, Reported) and one.kind == "node.two_agents" for one in self.told)
        return [dict(one.data) for one in self.told if isinstance(one, Reported)]


def test_two_that_speak_in_turn_are_told_once() -> None:
    """With their sessions, and that they are two machines; when one is silent, that it is over."""
    heard = Heard()
    heard.beats("a", "b", "a", "b", "a", "b", "a", "b")
    assert heard.reported() == [{"active": True, "sessions": "a, b", "boots": 2}]
    heard.beats(*"b" * 70)
    assert [one["active"] for one in heard.reported()] == [True, False]
    heard.beats("a", "b", "a", "b")
    assert [one["active"] for one in heard.reported()] == [True, False, True]


def test_a_new_leader_ends_what_the_former_has_told() -> None:
    """The clone was stopped while nobody led, or just before: one agent alone speaks, and after a minute that is told. It is not
    told of a node that says nothing, nor while two still speak.
    """
    heard = Heard()
    heard.reports = NodeReports(heard.told.append, lambda: heard.now_s, lambda _: ["gpu-15", "gpu-16"])
    heard.reports.begin("2")
    heard.beats(*"b" * 50)
    assert heard.reported() == []
    heard.beats(*"b" * 20)
    assert heard.reported() == [{"active": False, "sessions": "b", "boots": 1}]

    heard.told.clear()
    heard.reports.begin("3")
    heard.beats(*"ab" * 60)
    assert heard.reported() == []


def test_two_on_one_machine() -> None:
    """Their boot ids are one."""
    heard = Heard()
    heard.beats("a", "b", "a", "b", "a", boot="one")
    assert [one["boots"] for one in heard.reported()] == [1]


def test_restarts_are_no_second_agent() -> None:
    """Each run follows the one before; a single beat of that one may come late."""
    heard = Heard()
    heard.beats("a", "a", "b", "a", "b", "b", "c", "d", "d", "e", "f", "g", "h")
    heard.passes(IN_TURN_S + 1)
    heard.beats("i", "h", "i")
    assert heard.reported() == []


def test_as_long_as_it_lasts_it_is_told_again() -> None:
    """The symptom would end by its time to live."""
    heard = Heard()
    heard.beats(*"ab" * int(TOLD_AGAIN_S))
    assert [one["active"] for one in heard.reported()] == [True, True]


def test_another_leader_begins_anew() -> None:
    """What was heard before was another brain's to tell."""
    heard = Heard()
    heard.beats("a", "b", "a", "b")
    heard.reports.begin("2")
    heard.beats("a", "b", "a", "b")
    assert heard.reported() == []
    heard.beats("a")
    assert len(heard.reported()) == 1
