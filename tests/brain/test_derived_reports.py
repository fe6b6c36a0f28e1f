"""What our own runs cause: a node that is unreachable while it reboots, facts from before a reboot, inspections."""

from dataclasses import replace

import pytest

from agent.contract.commands import Outcome
from brain.core.inputs import NodeState
from brain.core.pack.spec import Match, Mode, Pack, Priority, Rule, Runbook, Rung, Symptom, Verify
from tests.brain.test_return_to_service import World
from tests.brain.world import GPU, KNOWN, pack

REBOOT = Rung(name="reboot", do="node.reboot", verify=Verify(within_s=200, for_s=5, reset_on_act=("*",)))
ISOLATE = Rung(name="isolate", do="node.isolate")


def lost(*rungs: Rung, mode: Mode = Mode.AUTO) -> Pack:
    """A GPU off the bus leads to these rungs, an unreachable node to a restart by its BMC."""
    plain = pack(mode, ask_jobs=False)
    silent = Symptom(
        name="silence", scope="node", summary="silent", on=(Match(kind="node.unreachable"),),
        clear=(Match(kind="node.returned"),), ttl_s=86400,
    )  # fmt: skip
    wake = Rule(
        name="silence", scope="node", when={"symptom": "silence"}, severity=Priority.P1, because="no beat",
        knowledge=KNOWN, examples=(), runbook="wake", hold_off_s=1, resolve_delay_s=5,
    )  # fmt: skip
    books = (
        Runbook(
            name="mend",
            summary="mend",
            rungs=rungs,
            return_to_service=(Rung(name="resume", do="scheduler.resume"),),
        ),
        Runbook(
            name="wake",
            summary="wake",
            rungs=(Rung(name="restart", do="bmc.restart", verify=Verify(within_s=60, for_s=1)),),
        ),
    )
    rules = tuple(
        replace(rule, runbook="mend") if "off_bus" in str(rule.when) else rule
        for rule in plain.rules
        if "silent" not in str(rule.when)
    )
    symptoms = tuple(one for one in plain.symptoms if one.on and one.on[0].kind != "node.unreachable")
    return replace(
        plain, symptoms=(*symptoms, silent), rules=(*rules, wake), runbooks=(*plain.runbooks, *books)
    )


def broken(story: World) -> None:
    """A GPU falls off the bus."""
    story.event(0.5, "agent.started", "node")
    story.event(1, "gpu.xid", GPU, code=79)


def silence(story: World, since: float, until: float) -> None:
    """The node is unreachable; `until` 0: for ever."""
    story.time.feed(NodeState(id=f"s{since}", node="n1", alive=False, silent_s=15), since)
    if until:
        story.time.feed(NodeState(id=f"b{until}", node="n1", alive=True), until)


def test_a_node_that_we_reboot_is_unreachable_and_nobody_is_paged() -> None:
    """The incident waits for our step and closes without a page. The verification waits for the node."""
    story = World(lost(REBOOT), heals=False)
    broken(story)
    silence(story, 6, 60)
    story.run(58)
    assert not [one for one in story.incidents("silence") if one.pages.sent]
    assert story.run_state == "verifying", "an unreachable node proves nothing"
    story.run(90)
    assert [action for _, action in story.actions()] == ["node.reboot", "scheduler.resume"]
    assert not [page for page in story.time.pages if "silence" in page.text]


def test_a_node_that_does_not_come_back_from_our_reboot_is_a_fault() -> None:
    """When the verification has failed, the unreachable node is an incident of its own."""
    story = World(lost(REBOOT), heals=False)
    broken(story)
    silence(story, 6, 0)
    story.run(400)
    assert any("n1 is not heard" in note for note in story.notes("run.not_verified"))
    assert "bmc.restart" in [action for _, action in story.actions()]


def test_a_fault_that_is_reported_again_after_the_reboot_fails_the_verification_at_once() -> None:
    """The agent of the new boot finds the same fault."""
    story = World(lost(REBOOT), heals=False)
    broken(story)
    story.run(6)
    story.event(7, "gpu.lost", GPU, reason="not_found")
    story.run(9)
    assert story.run_state == "exhausted"


def test_a_node_that_we_switched_off_is_not_switched_on_by_us() -> None:
    """While the incident of an isolated node is open, that the node is unreachable is no fault."""
    story = World(lost(ISOLATE), heals=False)
    broken(story)
    silence(story, 20, 0)
    story.run(500)
    assert [action for _, action in story.actions()] == ["node.isolate"]
    (incident,) = story.incidents("silence")
    assert incident.state == "settling"
    (mended,) = [one for one in story.time.incidents.values() if one is not incident]
    assert story.notes("incident.waits") == [
        f"{mended.id} has switched n1 off: it is judged when that incident is over"
    ]
    story.say(501, "close", id=mended.id)
    story.run(560)
    assert "bmc.restart" in [action for _, action in story.actions()], "then it is a fault"


INSPECT = Runbook(
    name="inspect",
    summary="look",
    rungs=(
        Rung(name="drain", do="scheduler.drain", params={"then": "undo"}, on_failure="quit"),
        Rung(name="diagnose", do="gpu.diagnose", params={"level": 1}, on_failure="stop", on_refusal="next"),
        Rung(name="links", do="evidence.collect", params={"component": "node"}),
    ),
    return_to_service=(Rung(name="resume", do="scheduler.resume"),),
    request=True,
)


@pytest.mark.parametrize(
    ("answers", "done", "state"),
    [
        ({"scheduler.drain": Outcome.FAILED}, ["scheduler.drain"], "succeeded"),
        (
            {"gpu.diagnose": Outcome.REFUSED},
            ["scheduler.drain", "gpu.diagnose", "evidence.collect", "scheduler.resume"],
            "succeeded",
        ),
        ({"gpu.diagnose": Outcome.FAILED}, ["scheduler.drain", "gpu.diagnose"], "exhausted"),
    ],
)
def test_an_inspection_does_not_fail_on_a_busy_node_or_on_what_the_node_lacks(
    answers: dict[str, Outcome], done: list[str], state: str
) -> None:
    """Busy: the run ends, nobody is paged. No DCGM: the rest, then back into service. A finding: it stays drained."""
    plain = pack()
    story = World(replace(plain, runbooks=(*plain.runbooks, INSPECT)), answers)
    story.event(0.5, "agent.started", "node")
    story.say(1, "start", runbook="inspect", node="n1")
    story.run(30)
    assert [action for _, action in story.actions()] == done
    assert story.run_state == state
    assert bool(story.time.pages) == (state == "exhausted")


def test_a_schedule_rests_in_observe_mode() -> None:
    """A new site gets no incidents for inspections that may not be done."""
    plain = pack(Mode.OBSERVE)
    story = World(replace(plain, runbooks=(*plain.runbooks, replace(INSPECT, every_s=3600))))
    story.event(0.5, "agent.started", "node")
    story.run(10_000)
    assert not story.incidents("request-inspect")


def test_a_name_may_be_part_of_a_text() -> None:
    """`link/$name`: a field of the situation becomes part of a component."""
    plain = pack()
    book = Runbook(
        name="bounce",
        summary="by name",
        rungs=(
            Rung(
                name="bounce",
                do="link.bounce",
                params={"link": "link/$name"},
                verify=Verify(within_s=10, for_s=3),
            ),
        ),
    )
    books = tuple(book if one.name == "bounce" else one for one in plain.runbooks)
    story = World(replace(plain, runbooks=books))
    story.event(1, "link.state", "link/eth1", up=False)
    story.run(20)
    assert [perform.step.params for perform in story.performed] == [{"link": "link/eth1"}]
