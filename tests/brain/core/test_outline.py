"""The plan of a run as it is shown: the ladder as it would run in this situation."""

import re

import pytest

from agent.contract.messages import Scalar, Severity, UnsentEvent
from brain.core.engine import Engine
from brain.core.inputs import EventSeen, PackLoaded
from brain.core.pack.actions import ACTIONS
from brain.core.pack.spec import Mode, ModeSetting, Settings
from brain.core.rehearsal.examples import event_of
from brain.core.rehearsal.timeline import Timeline
from tests.shipped import shipped_pack

GPU = "gpu/0000:3b:00"
_DEAD, _WAITS = "drain: scheduler.drain(fault=dead)", "drain and wait: scheduler.drain(fault=degraded)"
_CYCLE = "power cycle: bmc.power_cycle()"
_RESET, _REBOOT, _PAGE = f"reset: gpu.reset(gpu={GPU})", "reboot: node.reboot()", "oncall: page"


def plan_of(event: UnsentEvent, mode: Mode = Mode.OBSERVE) -> list[str]:
    """The plan of the run that the event leads to."""
    timeline = Timeline(Engine(actions=ACTIONS))
    settings = Settings(modes=(ModeSetting(mode=mode),))
    timeline.feed(PackLoaded(id="pack", pack=shipped_pack(settings)), 0.0)
    timeline.feed(EventSeen(event=event_of(event, "n1", order=1)), 10.0)
    timeline.run(20.0)
    (plan,) = [note.data["plan"] for note in timeline.notes if note.kind == "run.started"]
    assert isinstance(plan, list)
    return [str(line) for line in plan]


def wants(action: int, name: str) -> UnsentEvent:
    """NVML's word of the recovery that the driver wants."""
    data: dict[str, Scalar] = {"action": action, "name": name}
    return UnsentEvent(
        kind="gpu.recovery_action", component=GPU, severity=Severity.ERROR, data=data, evidence="x"
    )


@pytest.mark.parametrize(
    ("action", "name", "remedies"),
    [
        (1, "reset", [_DEAD, _RESET, _REBOOT, _CYCLE]),
        (2, "reboot", [_DEAD, _REBOOT, _CYCLE]),
        (3, "drain_p2p", [_WAITS, _RESET, _REBOOT, _CYCLE]),
        (4, "drain_and_reset", [_WAITS, _RESET, _REBOOT, _CYCLE]),
        (5, "recover_imex_domain", [_DEAD]),
        (6, "bus_reset", [_DEAD, _REBOOT, _CYCLE]),
        (7, "system_reboot", [_DEAD, _REBOOT, _CYCLE]),
    ],
)
def test_rungs_that_do_not_fit_the_situation_are_left_out_of_the_plan(
    action: int, name: str, remedies: list[str]
) -> None:
    """So are the tests of what they would have done. The others keep the runbook's numbers, as steps have them."""
    plan = [line for line in plan_of(wants(action, name)) if ": left out, " not in line]
    ladder = [line.partition(". ")[2] for line in plan if not line.startswith("back")]
    assert [line.partition(" — ")[0] for line in ladder[1:-1]] == remedies
    assert ladder[-1].startswith("imex: page" if name == "recover_imex_domain" else _PAGE)
    back = [line for line in plan if line.startswith("back")]
    assert any("links: gpu.links_check(gpu=" in line for line in back) is (_RESET in remedies)
    assert any("ports: port.check()" in line for line in back) is (_REBOOT in remedies)
    assert plan[-1].startswith("back 6. resume: scheduler.resume()")


def test_no_number_is_missing_in_a_plan() -> None:
    """What is left out says so, in its place."""
    plan = plan_of(wants(2, "reboot"))
    numbers = [
        [int(number) for number in re.findall(r"(?:^|back |, )(\d+)\. ", line.partition(": ")[0] + ": ")]
        for line in plan
    ]
    ladder = [
        number
        for line, found in zip(plan, numbers, strict=True)
        if not line.startswith("back")
        for number in found
    ]
    back = [
        number
        for line, found in zip(plan, numbers, strict=True)
        if line.startswith("back")
        for number in found
    ]
    assert ladder == list(range(1, len(ladder) + 1))
    assert back == list(range(1, len(back) + 1))
    assert "3. drain and wait, 4. reset: left out, they do not fit what is known as the run begins" in plan
    assert "back 1. links: left out, it tests what this plan does not do" in plan


def test_a_plan_says_in_words_what_a_page_will_say() -> None:
    """Nothing has happened yet: `$drained` has no value, and its name means nothing to people."""
    lost = UnsentEvent(
        kind="gpu.lost", component=GPU, severity=Severity.FATAL, data={"reason": "lost"}, evidence="x"
    )
    (page,) = [line for line in plan_of(lost) if "oncall: page" in line]
    assert (
        "[what was done] [whether the node is drained] [whether the node is switched off] [whether there is evidence]"
        in page
    )
    assert "$" not in page


@pytest.mark.parametrize(("mode", "told"), [(Mode.OBSERVE, True), (Mode.APPROVE, False), (Mode.AUTO, False)])
def test_the_gates_answer_only_where_nobody_asks_them_later(mode: Mode, told: bool) -> None:
    """A run that goes on notes each answer when it is given; what a gate said at the start may not hold any more."""
    assert any("gates: " in line for line in plan_of(wants(1, "reset"), mode)) is told
