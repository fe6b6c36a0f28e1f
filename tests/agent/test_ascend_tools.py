"""Ascend's tools when they are as ill as what they ask: errors that look like answers, hangs, processes that do not die."""

import os
import shutil
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from agent.collectors.base import CollectorSetup
from agent.collectors.npu_fault import NpuFaultCollector
from agent.collectors.samples import Gpu, Sample
from agent.collectors.samples_node import NpuFaults, ToolState
from agent.contract.messages import UnsentEvent
from agent.host import Host
from agent.shared import npu_smi
from agent.sources.ascend import AscendSource, AscendSourceOptions

NODE = Path(__file__).parents[1] / "fixtures/machines/ascend-910b-node"
NPU = "0000:82:00"  # number 3
# As npu-smi prints them while its driver is busy or restarts; some versions end with status 0 then.
ERRORS = (
    "dcmi model initialized failed, because the device is used. ret is -8020\n",
    "Failed to get health. Error code: 8\n",
    "\n",
    "Health Status : Alarm\n",
)
ILL = "Health Status : Alarm\nError Code : 80E18402\nError Information : node type=HBM\n"


class LiveHost(Host):
    """A recorded machine whose tools are run."""

    @property
    def live(self) -> bool:
        """See Host."""
        return True


class Smi:
    """An npu-smi of shell, in a folder, and the source that asks it."""

    def __init__(self, folder: Path, *, ill: tuple[int, ...], health: str) -> None:
        """`ill`: numbers of the NPUs that are not well; `health`: shell, what npu-smi does when it is asked why."""
        self.folder, root = folder, folder / "node"
        shutil.copytree(NODE, root, symlinks=True)
        self.show(ill)
        script = folder / "npu-smi"
        script.write_text(
            f'#!/bin/sh\necho "$*" >> {folder}/asked\ncase "$*" in\n"info") cat {folder}/info ;;\n*health*) {health} ;;\nesac\n'
        )
        script.chmod(0o755)
        options = AscendSourceOptions(npu_smi=script, hccn_tool=folder / "none")
        self.source = AscendSource(LiveHost(root=root), options, deadline_s=0.5)
        self.collector = NpuFaultCollector()

    def show(self, ill: tuple[int, ...]) -> None:
        """What `npu-smi info` prints from now on."""
        text = (NODE / "recorded/npu-smi info").read_text()
        for number in ill:
            old = f"| {number}     910B3               | OK   "
            assert old in text
            text = text.replace(old, f"| {number}     910B3               | Alarm")
        (self.folder / "info").write_text(text)

    async def turn(self) -> tuple[list[Sample], list[UnsentEvent]]:
        """What a turn sees, and what is told of it."""
        samples: list[Sample] = []
        await self.source.turn(samples.append)
        told = [
            one
            for sample in samples
            if isinstance(sample, NpuFaults | ToolState)
            for one in self.collector.feed(sample, sample.mono_s)
        ]
        return samples, told

    def asked(self) -> list[str]:
        """What it was asked since the last call."""
        file = self.folder / "asked"
        lines = file.read_text().splitlines() if file.exists() else []
        file.unlink(missing_ok=True)
        return lines


@pytest.mark.parametrize("error", ERRORS)
async def test_an_error_that_looks_like_an_answer_is_no_all_clear(tmp_path: Path, error: str) -> None:
    """Else a node with a broken NPU would be given back to jobs because its driver was busy for a minute."""
    answer = tmp_path / "answer"
    answer.write_text(ILL)
    smi = Smi(tmp_path, ill=(3,), health=f"cat {answer}")
    _, told = await smi.turn()
    assert [(one.data["code"], one.data["active"]) for one in told] == [("80E18402", True)]
    answer.write_text(error)
    for _ in range(3):
        assert (await smi.turn())[1] == []
    smi.show(())
    _, told = await smi.turn()
    assert [(one.data["code"], one.data["active"]) for one in told] == [("80E18402", False)]


async def test_one_that_is_not_well_is_told_also_where_nobody_says_why(tmp_path: Path) -> None:
    """Once, and by its code as soon as that is known."""
    answer = tmp_path / "answer"
    answer.write_text(ERRORS[0])
    smi = Smi(tmp_path, ill=(3,), health=f"cat {answer}")
    assert [(one.data["code"], one.data["level"]) for one in (await smi.turn())[1]] == [("none", "unknown")]
    assert (await smi.turn())[1] == []
    answer.write_text(ILL)
    told = (await smi.turn())[1]
    assert [(one.data["code"], one.data["active"]) for one in told] == [("80E18402", True), ("none", False)]


async def test_a_question_that_hangs_in_each_turn_is_one_hang(tmp_path: Path) -> None:
    """What else is asked is answered meanwhile, which is no end of it; and three NPUs at which it hangs cost one deadline."""
    smi = Smi(tmp_path, ill=(1, 3, 6), health="sleep 600")
    told: list[UnsentEvent] = []
    for _ in range(3):
        smi.asked()
        samples, now = await smi.turn()
        told += now
        assert len([one for one in samples if isinstance(one, Gpu) and one.answers]) == 8
        assert len([line for line in smi.asked() if "health" in line]) == 1
    assert [one.kind for one in told if one.kind != "gpu.fault"] == ["gpu.tool_hung"]
    smi.show(())
    for _ in range(9):
        told += (await smi.turn())[1]
    assert [one.kind for one in told if one.kind != "gpu.fault"] == ["gpu.tool_hung", "gpu.tool_answers"]


@pytest.fixture
def undying(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Path]:
    """As a process that hangs in the kernel: no signal reaches it. A folder, where `pids` names those to end in the end."""
    with monkeypatch.context() as patch:
        patch.setattr(os, "killpg", lambda *_: None)
        patch.setattr(subprocess.Popen, "kill", lambda _: None)
        patch.setattr("agent.shared.tool._DEATH_S", 0.1)
        yield tmp_path
    for pid in (tmp_path / "pids").read_text().split():
        os.kill(int(pid), signal.SIGKILL)


async def test_one_process_that_does_not_die_is_left_and_not_one_more_each_minute(undying: Path) -> None:
    """A driver that hangs has hundreds of them in a day otherwise, and the agent two open files for each."""
    smi = Smi(undying, ill=(3,), health=f"echo $$ >> {undying}/pids; exec sleep 600")
    told: list[UnsentEvent] = []
    for _ in range(4):
        told += (await smi.turn())[1]
    assert len((undying / "pids").read_text().split()) == 1
    assert [one.kind for one in told if one.kind != "gpu.fault"] == ["gpu.tool_hung"]


def test_a_figure_that_is_no_number_is_not_known() -> None:
    """A card with two chips has one sensor of power; a chip that does not answer has none of all these."""
    text = """\
| 4     310P3               | OK            | NA          48                15    / 15           |
| 0     8                   | 0000:85:00.0  | NA          0    / 0          934  / 44280         |
| 5     910B3               | Critical      | nan         -40               0    / 0             |
| 0     9                   | 0000:86:00.0  | N/A         0    / 0          0    / 65536         |
"""
    first, second = npu_smi.info(text)
    assert (first.bdf, first.power_w, first.temperature_c, first.busy) == ("0000:85:00", None, 48, None)
    assert (second.health, second.power_w, second.temperature_c, second.busy) == ("Critical", None, -40, None)


def test_what_ended_while_no_agent_ran_is_told_by_the_next_one() -> None:
    """An NPU that was replaced, or reset by a reboot, would else be ill for a week; what is still there is told again."""

    def told(collector: NpuFaultCollector, *codes: str) -> list[tuple[object, object]]:
        seen = NpuFaults(bdf=NPU, health="Alarm" if codes else "OK", codes=codes)
        return [(one.data["code"], one.data["active"]) for one in collector.feed(seen, 0.0)]

    first = NpuFaultCollector()
    assert told(first, "80E18402", "80C98001") == [("80E18402", True), ("80C98001", True)]
    setup = CollectorSetup(remembered={NpuFaultCollector.remembers: first.remembered()})
    second = NpuFaultCollector.of(setup)
    assert second.remembered() == first.remembered(), "before it has looked"
    assert told(second, "80E18402") == [("80E18402", True), ("80C98001", False)]
    assert told(second, "80E18402") == []
    third = NpuFaultCollector.of(
        CollectorSetup(remembered={NpuFaultCollector.remembers: second.remembered()})
    )
    assert told(third) == [("80E18402", False)]
    assert third.remembered() == {}
    odd = {NPU: 7, "x" * 99: ["80E18402"], "0000:01:00": [None, "80E18402", "y" * 99]}
    kept = NpuFaultCollector.of(CollectorSetup(remembered={NpuFaultCollector.remembers: odd})).remembered()
    assert kept == {"0000:01:00": ["80E18402"]}
