"""From a line in the kernel log to what is done about it, with the rules and runbooks that gpuward ships."""

import functools
from dataclasses import replace
from typing import Any

import pytest

from agent.contract.messages import Severity
from agent.contract.xid_facts import XidReader
from agent.contract.xid_table import XIDS
from brain.core.pack.spec import Mode, ModeSetting, Pack, Settings
from tests.brain.world import GPU, Story
from tests.shipped import shipped_pack

HEAD = "NVRM: Xid (PCI:0000:3b:00): "
WANTS = HEAD + "154, GPU recovery action changed from 0x0 (None) to "
EVIDENCE, DRAIN, RESUME = "evidence.collect", "scheduler.drain", "scheduler.resume"
TESTED = ["gpu.links_check", "gpu.diagnose", "node.accept"]
IN_BAND = [EVIDENCE, DRAIN, "gpu.reset", *TESTED, RESUME]
REBOOTED = [EVIDENCE, DRAIN, "node.reboot", "gpu.links_check", "port.check", *TESTED[1:], RESUME]
REPLACED = [EVIDENCE, DRAIN]
FATAL_ERROR: dict[str, Any] = {"class": "fatal"}  # of a pcie.error


@functools.cache
def shipped() -> Pack:
    pack = shipped_pack(Settings(modes=(ModeSetting(mode=Mode.AUTO),)))
    return replace(pack, runbooks=tuple(replace(runbook, every_s=0) for runbook in pack.runbooks))


def told(*lines: str, **more: Any) -> Story:
    """A node logs these lines, a tenth of a second apart; every step that follows succeeds."""
    story = Story(shipped())
    for index, line in enumerate(lines):
        (unsent,) = XidReader().read(line)
        data = {**unsent.data, **more}
        given = story.event(10 + index / 10, unsent.kind, unsent.component, severity=unsent.severity, **data)
        assert given.severity is unsent.severity
    return story.run(4000)


def outcome(story: Story) -> tuple[list[str], list[str]]:
    """Causes of the incidents that were not explained by others, and the actions performed."""
    causes = [one.cause for one in story.incidents() if one.state.value != "explained"]
    return causes, [action for _, action in story.actions()]


@pytest.mark.parametrize(
    ("lines", "actions"),
    [
        ((WANTS + "0x1 (GPU Reset Required)",), IN_BAND),
        ((WANTS + "0x2 (Node Reboot Required)",), REBOOTED),
        ((WANTS + "0x4 (Drain and Reset)",), IN_BAND),
        ((WANTS + "0x6 (Bus Reset)",), REBOOTED),
        ((WANTS + "0x7 (System Reboot)",), REBOOTED),
        ((WANTS + "0x5 (Recover IMEX Domain)",), [EVIDENCE, DRAIN]),
        (
            (
                HEAD + "95, pid=7, name=a, Uncontained: FBHUB (0x1). RST: Yes, D-RST: No",
                WANTS + "0x2 (Node Reboot Required)",
            ),
            REBOOTED,
        ),
    ],
    ids=["reset", "reboot", "drain and reset", "bus reset", "system reboot", "IMEX", "95, then reboot"],
)
def test_xid_154_says_what_is_done(lines: tuple[str, ...], actions: list[str]) -> None:
    """The driver's own wish decides: no reset where it asks for a reboot, nor where a reset in band cannot help."""
    assert outcome(told(*lines)) == (["gpu-fatal-xid"], actions)


@pytest.mark.parametrize("before_s", [0.3, 60.0], ids=["at once", "a minute before"])
def test_the_error_on_the_bus_that_took_a_gpu_away_is_over_with_it(before_s: float) -> None:
    """The port tells of it first. A fault of its own would keep the node drained after the GPU has come back."""
    story = Story(shipped())
    story.event(70 - before_s, "pcie.error", GPU, severity=Severity.FATAL, **FATAL_ERROR)
    story.event(70, "gpu.xid", GPU, code=79, severity=Severity.FATAL)
    story.run(6000)
    causes, actions = outcome(story)
    assert causes == ["gpu-lost"]
    assert actions[-len(REBOOTED) + 2 :] == REBOOTED[2:]
    assert {one.state.value for one in story.incidents()} == {"closed", "explained"}


def test_the_error_on_the_bus_that_broke_a_card_is_over_with_it() -> None:
    """As of a GPU: the card is reset, tested, and given back."""
    story = Story(shipped())
    card = "nic/0000:5e:00.0"
    story.event(9.5, "pcie.error", card, severity=Severity.FATAL, **FATAL_ERROR)
    story.event(10, "nic.driver", card, severity=Severity.FATAL, what="health_compromised")
    causes, actions = outcome(story.run(6000))
    assert causes == ["nic-broken"]
    assert actions == [EVIDENCE, DRAIN, "nic.reset", "port.check", "node.accept", RESUME]
    assert {one.state.value for one in story.incidents()} == {"closed", "explained"}


def test_a_recovery_action_of_a_newer_driver_leads_to_no_action() -> None:
    """Safety law 5: people are told, in whichever way it was seen."""
    assert outcome(told(WANTS + "0x8 (Something New)")) == (["gpu-unknown-xid"], [])
    story = Story(shipped())
    story.event(10, "gpu.recovery_action", GPU, action=8, name="unknown")
    assert outcome(story.run(600)) == (["gpu-unknown-xid"], [])


ROW_SPENT = HEAD + "64, Row Remapper Error: (0x0000000001234000) - All reserved rows for bank are remapped"
ROW_MARKED = HEAD + "63, pid=1896, Row Remapper: New row marked for remapping, reset gpu to activate."
DOUBLE_BIT = HEAD + "48, pid=7, name=a, An uncorrectable double bit error (DBE) has been detected on GPU"
ON_LINK_4 = HEAD + "74, NVLink: fatal error detected on link 4({}, 0x0, 0x0, {}, 0x0, 0x0, 0x0)"
IDLE = "scheduler.idle"


@pytest.mark.parametrize(
    ("lines", "cause", "actions"),
    [
        ((ROW_MARKED,), "gpu-memory-reset", [EVIDENCE, IDLE, DRAIN, "gpu.reset", *TESTED, RESUME]),
        ((ROW_SPENT,), "gpu-memory-replace", REPLACED),
        ((ROW_MARKED, ROW_SPENT), "gpu-memory-replace", REPLACED),
        ((DOUBLE_BIT, ROW_SPENT, WANTS + "0x1 (GPU Reset Required)"), "gpu-memory-replace", REPLACED),
        ((DOUBLE_BIT, HEAD + "171, Uncorrectable DRAM error"), "gpu-fatal-xid", IN_BAND),
        ((HEAD + "172, Uncorrectable SRAM error",), "gpu-fatal-xid", IN_BAND),
        ((HEAD + "54, External power connector is not attached",), "gpu-power-connector", [EVIDENCE, DRAIN]),
        ((HEAD + "92, High single-bit ECC error rate",), "gpu-ecc", []),
        ((HEAD + "122, SPI PMU RPC read failure",), "gpu-firmware-flash", [EVIDENCE, DRAIN]),
        ((HEAD + "123, SPI PMU RPC write failure",), "gpu-firmware-flash", [EVIDENCE, DRAIN]),
        *(
            ((HEAD + f"{code}, what it says",), "gpu-hardware-error", [EVIDENCE, DRAIN])
            for code in (167, 168, 169, 173, 175)
        ),
        ((HEAD + "175, memory subsystem", WANTS + "0x1 (GPU Reset Required)"), "gpu-fatal-xid", IN_BAND),
        ((HEAD + "145, what nobody can read",), "gpu-unknown-xid", []),
        ((HEAD + "154, what nobody can read",), "gpu-unknown-xid", []),
        ((ON_LINK_4.format("0x10", "0x0"),), "gpu-nvlink-errors", [EVIDENCE]),
        ((ON_LINK_4.format("0x0", "0x40000"),), "gpu-nvlink-down", IN_BAND),
    ],
)  # fmt: skip
def test_what_an_xid_leads_to(lines: tuple[str, ...], cause: str, actions: list[str]) -> None:
    """One incident, and the vendor's remedy: a spent row is never reset and sent back to its jobs."""
    assert outcome(told(*lines)) == ([cause], actions)


@pytest.mark.parametrize(
    "code", [code for code, (_, _, severity) in XIDS.items() if severity in ("error", "fatal")]
)
def test_no_grave_code_of_the_catalogue_is_passed_over(code: int) -> None:
    """A known error is never milder than an unknown one, also where its line has no details that decide what is done."""
    causes, _ = outcome(told(f"{HEAD}{code}, what a driver says"))
    assert len(causes) == 1, f"{code}: a symptom in rules/gpu*.yaml"


def test_a_link_that_errs_again_is_reset_with_all_others() -> None:
    """XID 74: once it is only watched; as often as its registers allow, all GPUs of the drained node are reset."""
    story = told(ON_LINK_4.format("0x10", "0x0"), repeats=3, persists=True)
    assert outcome(story) == (["gpu-nvlink-down"], IN_BAND)
    (reset,) = (one.step for one in story.performed if one.step.action == "gpu.reset")
    assert reset.params == {"gpu": "node"}


@pytest.mark.parametrize(
    "line",
    [
        HEAD + "13, pid=41, name=a, Graphics SM Warp Exception on (GPC 1, TPC 3, SM 0): Out Of Range Address",
        HEAD + "31, pid=42, name=b, Ch 00000008, intr 00000000. MMU Fault",
    ],
)
def test_what_recurs_at_one_place_is_diagnosed_when_the_node_is_idle(line: str) -> None:
    """A program that fails once is its owner's; the third at one place is the GPU's, and that can wait."""
    assert outcome(told(line)) == ([], [])
    story = told(line, repeats=3)
    assert outcome(story) == (["gpu-suspected"], [EVIDENCE, IDLE, DRAIN, "gpu.diagnose", RESUME])
    (incident,) = story.incidents()
    assert incident.state.value == "closed"


def test_a_lowered_power_limit_is_an_open_incident_until_the_node_is_returned() -> None:
    """The heat is gone and its incident with it; the debt stays, and whoever returns the node pays it."""
    story = Story(shipped())
    slowed: dict[str, Any] = {
        "reasons": "hw_slowdown,hw_thermal",
        "thermal": True,
        "hardware": True,
        "power_brake": False,
    }
    capped: dict[str, Any] = {"limit_w": 490.0, "before_w": 700.0}
    story.event(10, "gpu.throttle", GPU, active=True, lasted_s=2.0, **slowed)
    story.run(104)  # its rule waits for others that the same air would warm
    assert outcome(story)[1] == [EVIDENCE, "gpu.power_limit"]
    story.event(105, "gpu.power_capped", GPU, active=True, **capped)
    story.event(120, "gpu.throttle", GPU, active=False, lasted_s=80.0, **slowed)
    story.run(3600)
    assert [one.state.value for one in story.incidents("gpu-thermal")] == ["closed"]
    (debt,) = story.incidents("gpu-power-capped")
    assert debt.state.value == "open"
    story.say(3700, "return", node="n1")
    story.run(3710)
    assert outcome(story)[1][2:] == ["gpu.links_check", "port.check", "gpu.power_restore", RESUME]
    story.event(3711, "gpu.power_capped", GPU, active=False, **capped)
    story.run(4000)
    (debt,) = story.incidents("gpu-power-capped")
    assert debt.state.value == "closed"


def test_the_drivers_own_slowdown_lowers_nothing() -> None:
    """Near the temperature limit it is normal: it is listed, and nobody is paged."""
    story = Story(shipped())
    story.event(
        10,
        "gpu.throttle",
        GPU,
        active=True,
        reasons="sw_thermal",
        thermal=True,
        hardware=False,
        power_brake=False,
        lasted_s=2.0,
    )
    assert outcome(story.run(600)) == (["gpu-warm"], [])
    assert story.time.pages == []


def test_a_good_bit_error_rate_ends_no_count_of_errors() -> None:
    """A link that had to recover is told by another fact than its rate of errors, and each ends by its own."""
    story = Story(shipped())
    gpu = "gpu/0000:3b:00"
    story.event(10, "gpu.nvlink_errors", gpu, counter="recovery", delta=1, value=1, link=3)
    story.event(20, "gpu.nvlink_ber", gpu, active=False, link=-1, effective_ber=0.0)
    story.run(600)
    assert [one.state.value for one in story.incidents()] == ["needs_human"]
    story.run(1000)  # a quarter of an hour without a further error
    assert [one.state.value for one in story.incidents()] == ["closed"]
