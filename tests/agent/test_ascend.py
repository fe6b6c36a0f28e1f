"""Ascend NPUs: what npu-smi and hccn_tool print, and what the agent makes of what changes there."""

import shutil
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.collectors import collectors
from agent.collectors.base import CollectorSetup
from agent.collectors.samples import Gpu, GpuHealth, Sample
from agent.collectors.samples_node import NpuFaults, ToolState
from agent.config import AgentConfig
from agent.contract.messages import Severity, UnsentEvent
from agent.contract.npu_fault_table import LEVELS
from agent.host import Host
from agent.shared import npu_smi
from agent.sources.ascend import AscendSource, AscendSourceOptions
from agent.sources.base import SourceSetup
from agent.wiring import npu_numbers
from tests.agent.following import once
from tests.agent.uplink_kit import Clock, FakeHost

MACHINES = Path(__file__).parents[1] / "fixtures/machines"
NODE, BAD = MACHINES / "ascend-910b-node", MACHINES / "ascend-910b-in-trouble"
NPU = "0000:82:00"  # number 3


class Npus:
    """A copy of a recorded node, whose tools print what a test writes, with the agent's source and collectors."""

    def __init__(self, folder: Path) -> None:
        self.root = folder / "node"
        shutil.copytree(NODE, self.root, symlinks=True)
        self.clock = Clock(mono_s=1000.0)
        self.source = AscendSource(FakeHost(self.clock, self.root), AscendSourceOptions())
        self.collectors = collectors(CollectorSetup())

    async def turn(self, *, whole: bool = False) -> list[UnsentEvent]:
        """What is reported of the next turn."""
        self.clock.mono_s += 30
        samples: list[Sample] = []
        await self.source.turn(samples.append, whole=whole)
        return [
            unsent
            for sample in samples
            for collector in self.collectors
            if isinstance(sample, collector.wants) and collector.name != "inventory"
            for unsent in collector.feed(sample, self.clock.mono_s)
        ]

    def prints(self, command: str, text: str) -> None:
        """What a command prints from now on; empty: it fails."""
        (self.root / "recorded" / command).write_text(text)

    def replace(self, command: str, old: str, new: str) -> None:
        """As `prints`."""
        text = (self.root / "recorded" / command).read_text()
        assert old in text
        self.prints(command, text.replace(old, new))


@pytest.fixture
async def npus(tmp_path: Path) -> Npus:
    """Eight healthy NPUs, looked at once."""
    made = Npus(tmp_path)
    assert await made.turn(whole=True) + await made.turn() == []
    return made


async def test_an_npu_has_what_the_tools_print() -> None:
    """The BMC's graphics, of the same vendor, is none."""
    emitted = await once(AscendSource(Host(root=NODE), AscendSourceOptions()))
    gpus = {sample.bdf: sample for sample in emitted if isinstance(sample, Gpu)}
    assert len(gpus) == 8
    busy, idle = gpus["0000:c1:00"], gpus["0000:42:00"]
    assert (busy.utilization, busy.temperature_c, busy.power_w, busy.memory_used_mb) == (99, 58, 310.4, 61022)
    assert [(one.pid, one.name, one.job, one.memory_mb) for one in busy.processes] == [
        (30117, "python3", "5150", 57612)
    ]
    assert (idle.utilization, idle.processes, idle.by, idle.answers) == (0, (), "npu-smi", True)
    health = next(one for one in emitted if isinstance(one, GpuHealth) and one.bdf == "0000:02:00")
    assert health.values["ecc.volatile.corrected.dram"] == 4
    assert health.values["ecc.aggregate.corrected.dram"] == 31
    assert (health.values["retired.pending"], health.values["link.roce.0.state"]) == (0, 1)


async def test_a_healthy_day_gives_no_event(npus: Npus) -> None:
    """Jobs come and go."""
    for hour in range(24):
        text = (NODE / "recorded/npu-smi info").read_text()
        npus.prints(
            "npu-smi info", text.replace("310.4 ", "97.2  ").replace("| 99  ", "| 0   ") if hour % 2 else text
        )
        for _ in range(10):
            assert await npus.turn() == []


async def test_a_fault_code_comes_and_goes(npus: Npus) -> None:
    """Each code by what its maker's scheduler does about it; an unknown one is unknown."""
    npus.replace("npu-smi info", "3     910B3               | OK   ", "3     910B3               | Alarm")
    npus.prints(
        "npu-smi info -t health -i 3 -c 0",
        "Health Status : Alarm\nError Code : 80C98001\nError Information : node type=AIC\nError Code : 8fff0001, 0x80E18402\n",
    )
    told = await npus.turn()
    assert [(one.kind, one.component, one.data["code"], one.data["level"], one.severity) for one in told] == [
        ("gpu.fault", f"gpu/{NPU}", "80C98001", "restart_npu", Severity.ERROR),
        ("gpu.fault", f"gpu/{NPU}", "8FFF0001", "unknown", Severity.UNKNOWN),
        ("gpu.fault", f"gpu/{NPU}", "80E18402", "separate_npu", Severity.FATAL),
    ]
    assert await npus.turn() == []
    npus.prints("npu-smi info -t health -i 3 -c 0", "")
    assert await npus.turn() == [], "a tool that fails is no all-clear"
    npus.replace("npu-smi info", "3     910B3               | Alarm", "3     910B3               | OK   ")
    told = await npus.turn()
    assert {(one.data["code"], one.data["active"], one.severity) for one in told} == {
        (code, False, Severity.INFO) for code in ("80C98001", "8FFF0001", "80E18402")
    }


async def test_one_that_is_not_well_without_a_code(npus: Npus) -> None:
    """It is told so, once."""
    npus.replace("npu-smi info", "3     910B3               | OK   ", "3     910B3               | Alarm")
    npus.prints("npu-smi info -t health -i 3 -c 0", "Health Status : Alarm\nError Code : NA\n")
    (told,) = await npus.turn()
    assert (told.data["code"], told.data["level"], told.severity) == ("none", "unknown", Severity.UNKNOWN)
    assert await npus.turn() == []


async def test_memory_errors_pages_and_the_network_port(npus: Npus) -> None:
    """One NPU's counters in each turn: all of them in eight."""
    npus.replace(
        "npu-smi info -t ecc -i 3 -c 0",
        "HBM Double Bit Error Count               : 0",
        "HBM Double Bit Error Count               : 2",
    )
    npus.replace(
        "npu-smi info -t ecc -i 4 -c 0",
        "Double Bit Next-Isolated Pages Count : 0",
        "Double Bit Next-Isolated Pages Count : 1",
    )
    npus.prints("hccn_tool -i 5 -link -g", "link status: DOWN\n")
    told = [one for _ in range(8) for one in await npus.turn()]
    assert {one.kind: one.component for one in told} == {
        "gpu.ecc": f"gpu/{NPU}",
        "gpu.retired_pages": "gpu/0000:01:00",
        "gpu.link_state": "gpu/0000:02:00",
    }
    ecc = next(one for one in told if one.kind == "gpu.ecc")
    assert (ecc.data["corrected"], ecc.data["delta"], ecc.severity) == (False, 2, Severity.ERROR)
    assert next(one for one in told if one.kind == "gpu.retired_pages").data["pending"] is True
    assert next(one for one in told if one.kind == "gpu.link_state").data["link_type"] == "roce"


async def test_one_that_npu_smi_no_longer_shows(npus: Npus) -> None:
    """Not before it had time for a reset by Huawei's own scheduler."""
    text = (
        (BAD / "recorded/npu-smi info")
        .read_text()
        .replace("Alarm ", "OK    ")
        .replace("Critical ", "OK       ")
        .replace("Warning ", "OK      ")
    )
    npus.prints("npu-smi info", text)
    told = [one for _ in range(5) for one in await npus.turn()]
    assert told == []
    (lost,) = await npus.turn()
    assert (lost.kind, lost.component, lost.data["reason"], lost.data["by"]) == (
        "gpu.lost",
        f"gpu/{NPU}",
        "not_found",
        "npu-smi",
    )


async def test_one_that_is_off_the_bus_is_lost_at_once(npus: Npus) -> None:
    """By its configuration space."""
    (npus.root / f"sys/bus/pci/devices/{NPU}.0/config").write_bytes(b"\xff" * 64)
    assert [(one.kind, one.data["reason"]) for one in await npus.turn()] == [("gpu.lost", "lost")]


async def test_a_tool_that_says_nothing_of_use_makes_the_source_fail(npus: Npus) -> None:
    """Told as agent.source_failed; no NPU is taken for lost."""
    npus.prints("npu-smi info", "dcmi module initialize failed. ret is -8005\n")
    assert await npus.turn() + await npus.turn() == []
    with pytest.raises(OSError, match="shows no NPU, though the PCI bus has 8"):
        await npus.turn()
    with pytest.raises(OSError, match="npu-smi"):
        await npus.source.look(lambda _: None)


async def test_a_tool_that_hangs_is_killed_and_told(tmp_path: Path) -> None:
    """Also what it has started; when it answers again, that is told too."""
    script, mark = tmp_path / "npu-smi", tmp_path / "well"
    script.write_text(f'#!/bin/sh\n[ -e {mark} ] || {{ sleep 600 & wait; }}\necho "nothing"\n')
    script.chmod(0o755)
    options = AscendSourceOptions(npu_smi=script, hccn_tool=tmp_path / "none")
    source = AscendSource(Host(), options, deadline_s=0.5)
    samples: list[Sample] = []
    await source.turn(samples.append)
    await source.turn(samples.append)
    mark.touch()
    await source.turn(samples.append)
    states = [one for one in samples if isinstance(one, ToolState)]
    assert [(one.tool, one.state) for one in states] == [
        ("npu-smi", "hung"),
        ("npu-smi", "hung"),
        ("npu-smi", "answers"),
    ]
    (collector,) = (one for one in collectors(CollectorSetup()) if one.name == "npu_fault")
    told = [unsent for state in states for unsent in collector.feed(state, state.mono_s)]
    assert [(one.kind, one.component) for one in told] == [
        ("gpu.tool_hung", "node"),
        ("gpu.tool_answers", "node"),
    ]


async def test_a_tool_that_is_not_there(tmp_path: Path) -> None:
    """The source says what cannot be started."""
    source = AscendSource(Host(), AscendSourceOptions(npu_smi=tmp_path / "none"))
    with pytest.raises(OSError, match="none cannot be started"):
        await source.turn(lambda _: None)


def test_nothing_is_asked_where_there_is_no_npu() -> None:
    """Nor where the operator does not want it."""
    for root in (MACHINES / "mi300x-node", MACHINES / "h100-node", MACHINES / "cpu-node"):
        assert AscendSource.of(SourceSetup(host=Host(root=root), config=AgentConfig())) is None
    off = AgentConfig(plugins={"ascend_interval_s": 0.0})
    assert AscendSource.of(SourceSetup(host=Host(root=NODE), config=off)) is None


async def test_an_npu_has_the_number_by_which_people_find_it(npus: Npus) -> None:
    """That of npu-smi and of the driver, not its place on the bus: by that another card would be exchanged."""
    samples: list[Sample] = []
    await npus.source.turn(samples.append, whole=True)
    numbers = {one.bdf: one.index for one in samples if isinstance(one, Gpu)}
    driver = {address[:-2]: number for number, address in npu_numbers(Host(root=NODE)).items()}
    shown = {one.bdf: one.card for one in npu_smi.info((NODE / "recorded/npu-smi info").read_text())}
    assert numbers == driver == shown
    npus.replace("npu-smi info", "3     910B3               | OK   ", "3     910B3               | Alarm")
    npus.prints("npu-smi info -t health -i 3 -c 0", "Error Code : 80E18402\n")
    (told,) = await npus.turn()
    assert told.evidence == f"NPU 3 {NPU}: fault 80E18402 (separate_npu)"


async def test_an_npu_that_no_tool_has_shown_has_the_drivers_number(tmp_path: Path) -> None:
    """Or none: a made-up one would be another NPU's."""
    npus = Npus(tmp_path)
    npus.prints("npu-smi info", "")
    (npus.root / "sys/bus/pci/devices/0000:41:00.0/dev_id").unlink()
    samples: list[Sample] = []
    await npus.source.turn(samples.append)
    numbers = {one.bdf: one.index for one in samples if isinstance(one, Gpu)}
    assert (numbers[NPU], numbers["0000:41:00"]) == (3, -1)


def test_the_drivers_numbers_are_addresses_here() -> None:
    """So that its lines are about an NPU."""
    assert npu_numbers(Host(root=NODE))[3] == f"{NPU}.0"
    assert npu_numbers(Host(root=MACHINES / "h100-node")) == {}


def test_both_forms_of_the_table() -> None:
    """Of a card with two chips, and a version that prints the physical number."""
    text = """\
| NPU   Name                | Health        | Power(W)    Temp(C)           Hugepages-Usage(page)|
| Chip  Phy-ID              | Bus-Id        | AICore(%)   Memory-Usage(MB)  HBM-Usage(MB)        |
+===========================+===============+====================================================+
| 7     Ascend910           | OK            | 169.7       41                0    / 0             |
| 0     14                  | 0000:9D:00.0  | 3           0    / 0          3422 / 65536         |
+------------------------------------------------------------------------------------------------+
| 7     Ascend910           | Alarm         | -           40                0    / 0             |
| 1     15                  | 0000:9F:00.0  | 0           0    / 0          59499/ 65536         |
"""
    first, second = npu_smi.info(text)
    assert (first.card, first.chip, first.device, first.bdf, first.health) == (7, 0, 14, "0000:9d:00", "OK")
    assert (first.power_w, first.temperature_c, first.busy, first.memory_used_mb) == (169.7, 41, 3, 3422)
    assert (second.chip, second.device, second.health, second.power_w, second.memory_used_mb) == (
        1,
        15,
        "Alarm",
        None,
        59499,
    )


@given(st.text(alphabet="|0123456789 :ABCDEFOKabcHealthECr.-/\n\t*+=", max_size=600))
def test_no_text_breaks_the_parsers(text: str) -> None:
    """What a tool prints is foreign."""
    npu_smi.info(text)
    npu_smi.health(text)
    npu_smi.ecc(text)
    npu_smi.link(text)


def test_codes_and_numbers_are_bounded() -> None:
    """However many a tool prints."""
    flood = "".join(f"Error Code : {code:08X}\n" for code in range(1000))
    said = npu_smi.health(flood)
    assert said is not None
    assert len(said[0]) == 64
    assert npu_smi.ecc(f"HBM Double Bit Error Count : {'9' * 50}\n") == {}
    assert npu_smi.info("| 0 x | OK | 1.0 2 0 |\n| 0 | 0000:C1:00.0 | 0 0 / 0 1 / 2 |\n" * 500) != []
    assert len(npu_smi.info("| 0 x | OK | 1.0 2 0 |\n| 0 | 0000:C1:00.0 | 0 0 / 0 1 / 2 |\n" * 500)) == 64


def test_the_table_of_codes() -> None:
    """Eight capital digits each, in one level."""
    assert len(LEVELS) > 280
    assert all(len(code) == 8 and code == code.upper() and int(code, 16) >= 0 for code in LEVELS)
    assert LEVELS["80E18402"] == "separate_npu"
    assert NpuFaults(bdf=NPU, health="OK").codes == ()


async def test_a_command_is_a_list() -> None:
    """Never a shell's text: what an NPU is called cannot become an option of another."""
    asked: list[Sequence[str]] = []

    async def ask(_: str, args: Sequence[str]) -> str | None:
        asked.append(args)
        return (NODE / "recorded/npu-smi info").read_text() if args == ("info",) else None

    await AscendSource(Host(root=NODE), AscendSourceOptions(), ask=ask).once(lambda _: None)
    assert ("info", "-t", "ecc", "-i", "3", "-c", "0") in asked
