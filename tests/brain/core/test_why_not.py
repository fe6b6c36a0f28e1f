"""Why a rule does not match, in words: what is missing, what it takes, and what became of a match that leads to nothing."""

from dataclasses import replace
from typing import Any

import pytest

from agent.contract.errors import ConfigError
from brain.core.inputs import NodeState
from brain.core.pack.spec import Match, Mode, Pack, Place, Symptom, Window
from brain.core.why import why_not
from brain.core.why.why_not import MatchOutcome, WhyNot
from tests.brain.world import GPU, RULES, SYMPTOMS, Story, pack, rule

LINK = "link/ib0"
UNIT = "service/job-1.service"


def asked(story: Story, name: str, scope: str) -> WhyNot:
    """The answer, now."""
    return why_not.of(story.engine.look(), name, scope)


def missing(story: Story, name: str, scope: str) -> list[str]:
    """What stands in the way."""
    return [one.text for one in asked(story, name, scope).conditions if one.in_the_way]


def with_more(*symptoms: Symptom, rules: tuple[Any, ...] = ()) -> Pack:
    """The small pack with further symptoms and rules."""
    return replace(pack(), symptoms=(*SYMPTOMS, *symptoms), rules=(*RULES, *rules))


HOT = Symptom(
    name="hot", scope="gpu", summary="hot", on=(Match(kind="gpu.temperature"),), carry={"gpu_temp": "celsius"}
)
TEMP = rule("too-hot", "gpu", {"symptom": "hot", "gpu_temp": {"gte": 85}})
COUNTED = Symptom(
    name="again",
    scope="node",
    summary="again",
    detect="count",
    at_least=3,
    within_s=60,
    on=(Match(kind="oom.kill"),),
)
AGAIN = rule("oom-again", "node", {"symptom": "again"})


@pytest.mark.parametrize(
    ("events", "at", "name", "scope", "texts"),
    [
        pytest.param(
            [], 60, "gpu-lost", f"gpu/n1/{GPU[4:]}", [f"off_bus is not active at gpu/n1/{GPU[4:]}"], id="nothing"
        ),
        pytest.param(
            [(1, "gpu.temperature", GPU, {"celsius": 71})], 13, "too-hot", "gpu/n1/0000:3b:00",
            ["gpu_temp is 71, told 12 seconds ago with hot at gpu/n1/0000:3b:00, and needs ≥ 85"], id="a field",
        ),
        pytest.param(
            [], 13, "too-hot", "gpu/n1/0000:3b:00",
            [
                "hot is not active at gpu/n1/0000:3b:00",
                "gpu_temp is not known: it comes with hot, which is not active there, and needs ≥ 85",
            ],
            id="a field that is missing",
        ),
        pytest.param(
            [(1, "oom.kill", "node", {}), (9, "oom.kill", "node", {})], 10, "oom-again", "node/n1",
            ["again at node/n1 is not active yet: 2 facts so far, it takes 3 within 60 seconds; the newest came 1 second ago"],
            id="a window that fills",
        ),
        pytest.param(
            [(1, "gpu.idle", GPU, {"unit": "u", "job": ""})], 21, "gpu-idle", "gpu/n1/0000:3b:00",
            [
                "gpu_idle at gpu/n1/0000:3b:00 is not active yet: it has lasted 20 seconds, and it takes 60 seconds",
                "job is not known: it comes with gpu_idle, which is not active there, and needs ''",
            ],
            id="not long enough",
        ),
        pytest.param(
            [(1, "gpu.idle", GPU, {"unit": "", "job": ""})], 70, "gpu-idle", "gpu/n1/0000:3b:00",
            ["unit is '', told 69 seconds ago with gpu_idle at gpu/n1/0000:3b:00, and must not be ''"],
            id="a field that must be something else",
        ),
        pytest.param(
            [(1, "link.state", LINK, {"up": False})], 3, "link-flapping", "link/n1/ib0",
            [
                "link_flaps at link/n1/ib0 is not active yet: 1 change so far, it takes 5 within 60 seconds; the newest "
                "came 2 seconds ago"
            ],
            id="changes",
        ),
        pytest.param(
            [(1, "ib.sm_lid", "node", {})], 3, "sm-failover", "fabric/default",
            ["sm_moved_widely is not active: 1 node of fabric/default shows sm_moved (n1), and it takes 3 within 30 seconds"],
            id="a shared cause",
        ),
        pytest.param(
            [(1, "ib.sm_lid", "node", {}), (40, "ib.sm_lid", "node", {})], 41, "sm-failover", "fabric/default",
            ["sm_moved_widely is not active: 1 node of fabric/default shows sm_moved (n1), and it takes 3 within 30 seconds"],
            id="a shared cause that the same node shows again",
        ),
        pytest.param(
            [], 3, "sm-failover", "fabric/default",
            ["sm_moved_widely is not active: 0 nodes of fabric/default show sm_moved, and it takes 3 within 30 seconds"],
            id="a shared cause that nobody shows",
        ),
    ],
)  # fmt: skip
def test_what_is_missing(
    events: list[tuple[float, str, str, dict[str, Any]]], at: float, name: str, scope: str, texts: list[str]
) -> None:
    """The first condition that is not met, with its value and age, and each other one that is needed beside it."""
    story = Story(with_more(HOT, COUNTED, rules=(TEMP, AGAIN)))
    for when, kind, component, data in events:
        story.event(when, kind, component, **data)
    story.time.feed(story_tick(), at)
    story.run(at)
    answer = asked(story, name, scope)
    assert answer.outcome is MatchOutcome.NOT_MET
    assert not answer.matches
    assert answer.text[0] == f"{name} does not match at {scope}"
    assert missing(story, name, scope) == texts


def story_tick() -> Any:
    """An input that only moves the time of the log."""
    return NodeState(id="tick", node="n1", alive=True)


def test_what_must_not_be() -> None:
    """A symptom below `not` stands in the way by being active; what would do as well is named for `any`."""
    warm = rule(
        "warm", "gpu", {"any": [{"symptom": "off_bus"}, {"symptom": "gpu_idle"}], "not": {"symptom": "hot"}}
    )
    story = Story(with_more(HOT, rules=(warm,)))
    story.event(1, "gpu.temperature", GPU, celsius=90)
    story.run(2)
    answer = asked(story, "warm", "gpu/n1/0000:3b:00")
    away = [one for one in answer.conditions if one.in_the_way]
    assert [one.test for one in away] == ["off_bus", "not hot"]
    assert away[0].instead == ("gpu_idle",)
    assert away[0].begins == "gpu.xid with code 79 or gpu.off_bus or gpu.lost"
    assert away[1].text.endswith("the rule matches only while it is not")
    assert away[1].begins == ""


def test_a_part_that_shows_only_what_is_around_it() -> None:
    """A node's symptom alone makes no rule of its parts match, and the answer says that."""
    part = rule("gpu-silent", "gpu", {"symptom": "silent"})
    story = Story(with_more(rules=(part,)))
    story.event(1, "node.unreachable")
    story.run(2)
    answer = asked(story, "gpu-silent", "gpu/n1/0000:3b:00")
    assert answer.outcome is MatchOutcome.NOT_OWN
    assert not answer.matches
    assert answer.text == (
        "gpu-silent does not match at gpu/n1/0000:3b:00: its conditions are met, but nothing of gpu/n1/0000:3b:00 itself is "
        "active",
    )


def test_a_match_that_is_held_off_open_and_dismissed() -> None:
    """From hold-off to an operator's word: what became of the match."""
    story = Story()
    story.event(1, "link.state", LINK, up=False)
    story.run(1.2)
    settling = asked(story, "link-down", "link/n1/ib0")
    (incident,) = story.incidents()
    assert (settling.outcome, settling.incident, settling.until) == (MatchOutcome.HELD_OFF, incident.id, 2.0)
    assert settling.matches
    story.heals = False
    story.run(3)
    assert asked(story, "link-down", "link/n1/ib0").outcome is MatchOutcome.OPEN
    story.say(4, "close", id=incident.id)
    story.run(5)
    closed = asked(story, "link-down", "link/n1/ib0")
    assert closed.outcome is MatchOutcome.DISMISSED
    assert "an operator closed its incident" in closed.text[0]


def test_a_match_that_another_incident_explains() -> None:
    """The wider cause is named, with its incident; and the shared rule itself says that it is open."""
    story = Story()
    for number in range(1, 5):
        story.event(1, "ib.sm_lid", node=f"n{number}")
    story.run(3)
    answer = asked(story, "sm-moved", "n2")
    (wide,) = story.incidents("sm-failover")
    assert (answer.outcome, answer.incident) == (MatchOutcome.EXPLAINED, wide.id)
    assert answer.text == (
        f"sm-moved matches at node/n2, and sm-failover at fabric/default explains it (incident {wide.id})",
    )
    assert asked(story, "sm-failover", "fabric/default").outcome in (MatchOutcome.OPEN, MatchOutcome.HELD_OFF)
    story.say(4, "close", id=wide.id)
    story.run(5)
    after = asked(story, "sm-moved", "node/n2")
    assert after.outcome is MatchOutcome.DISMISSED
    assert "the incident of sm-failover@fabric/default, which explains it," in after.text[0]


def test_which_gate_holds_it_and_until_when() -> None:
    """An operator's hold with an end, one without, a maintenance window, and observe mode."""
    for args, until, words in (
        ({"for_s": 600.0}, 600.5, "the hold ends in"),
        ({}, 0.0, "until somebody releases it: gpuward release hold-"),
    ):
        story = Story(heals=False)
        story.say(0.5, "hold", scope="node/n1", why="firmware", **args)
        story.event(1, "link.state", LINK, up=False)
        story.run(5)
        answer = asked(story, "link-down", "link/n1/ib0")
        assert (answer.gate, answer.mode, answer.runbook) == ("hold", "auto", "bounce")
        assert answer.gate_until == until
        assert answer.gate_again > 5
        assert any(words in line for line in answer.text), answer.text
        assert any("ann holds node/n1: firmware" in line for line in answer.text)
    window = Window(scope="node/n1", since=0, until=3600, why="new cables")
    story = Story(pack(maintenance=(window,)), heals=False)
    story.event(1, "link.state", LINK, up=False)
    story.run(5)
    answer = asked(story, "link-down", "link/n1/ib0")
    assert (answer.gate, answer.gate_until) == ("maintenance", 3600)
    story = Story(pack(mode=Mode.OBSERVE))
    story.event(1, "link.state", LINK, up=False)
    story.run(5)
    answer = asked(story, "link-down", "link/n1/ib0")
    assert answer.mode == "observe"
    assert any("observe mode" in line for line in answer.text)


def test_what_keeps_the_brain_from_knowing_more() -> None:
    """A node that is not heard, and one that never was."""
    story = Story(pack(places={"n7": Place(leaf="l1")}))
    story.time.feed(NodeState(id="gone", node="n1", alive=False, silent_s=20), 1)
    story.run(2)
    assert (
        asked(story, "gpu-lost", "gpu/n1/0000:3b:00").text[1]
        == "n1 is not heard now: what happens there is not known"
    )
    assert asked(story, "gpu-lost", "gpu/n7/0000:3b:00").text[1] == "n7 has never been heard"


@pytest.mark.parametrize(
    ("name", "scope", "hint"),
    [
        ("gpu-lots", "node/n1", "no rule 'gpu-lots': did you mean gpu-lost, gpu-idle, gpu-lost-by-job?"),
        ("gpu-lost", "gpu/n9/0000:3b:00", "no node 'n9' (have: n1)"),
        ("gpu-lost", "gpu/n1", "no scope 'gpu/n1': a gpu is named gpu/n1/NAME"),
        ("gpu-lost", "node/n1", "gpu-lost is about a gpu, and node/n1 is a node: say gpu/n1/NAME"),
        ("gpu-lost", "n1", "no scope 'n1': did you mean node/n1?"),
        ("sm-failover", "node/n1", "did you mean fabric/default?"),
        ("sm-failover", "fabric/nowhere", "no fabric 'nowhere' (have: default)"),
        ("gpu-lost", "all", "gpu-lost is about a gpu, and cell is a cell"),
        ("gpu-lost", "toaster/n1/x", "no scope 'toaster/n1/x': want all or TYPE/NAME"),
    ],
)
def test_what_there_is_not(name: str, scope: str, hint: str) -> None:
    """The error names what could be meant; what is looked for among many names is looked for outside the engine's turn."""
    story = Story()
    with pytest.raises(why_not.NotKnown) as told:
        asked(story, name, scope)
    assert isinstance(told.value, ConfigError)
    assert hint in told.value.hint()
