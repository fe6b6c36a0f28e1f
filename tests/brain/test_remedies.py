"""From a line in the kernel log to what is done about it, with the rules and runbooks that gpuward ships."""

import functools
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from agent.contract.xid_facts import XidReader
from brain.adapters import pack as packs
from brain.core.pack.spec import Mode, ModeSetting, Pack, Settings
from tests.brain.world import GPU, Story

ROOT = Path(__file__).resolve().parents[2]
HEAD = "NVRM: Xid (PCI:0000:3b:00): "
WANTS = HEAD + "154, GPU recovery action changed from 0x0 (None) to "
EVIDENCE, DRAIN, RESUME = "evidence.collect", "scheduler.drain", "scheduler.resume"
IN_BAND = [EVIDENCE, DRAIN, "gpu.reset", RESUME]
REBOOTED = [EVIDENCE, DRAIN, "node.reboot", RESUME]
REPLACED = [EVIDENCE, DRAIN]


@functools.cache
def shipped() -> Pack:
    pack = packs.load(ROOT / "rules", ROOT / "runbooks", Settings(modes=(ModeSetting(mode=Mode.AUTO),)), {})
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


def test_a_recovery_action_of_a_newer_driver_leads_to_no_action() -> None:
    """Safety law 5: people are told, in whichever way it was seen."""
    assert outcome(told(WANTS + "0x8 (Something New)")) == (["gpu-unknown-xid"], [])
    story = Story(shipped())
    story.event(10, "gpu.recovery_action", GPU, action=8, name="unknown")
    assert outcome(story.run(600)) == (["gpu-unknown-xid"], [])
