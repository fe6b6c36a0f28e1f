"""DCGM's health check: what dcgmi prints, what the agent makes of it, and what it does when DCGM cannot be asked."""

import asyncio
import time
from pathlib import Path

import pytest

from agent import config_file
from agent.collectors.dcgm import DcgmCollector
from agent.collectors.samples import Sample
from agent.config import AgentConfig
from agent.contract import kinds
from agent.contract.dcgm_errors import UNKNOWN
from agent.contract.errors import ConfigError
from agent.contract.messages import Severity, UnsentEvent
from agent.host import Host
from agent.sources.base import SourceSetup
from agent.sources.dcgm import DcgmSource, DcgmSourceOptions
from tests.agent import dcgm_kit as kit
from tests.agent.dcgm_kit import Fails, FakeDcgmi
from tests.agent.uplink_kit import Clock, FakeHost

GPU = "gpu/0000:9a:00"  # number 3


class LiveHost(FakeHost):
    """Tools are run."""

    @property
    def live(self) -> bool:
        """See Host."""
        return True


class Watched:
    """The agent's source and collector beside the fake program."""

    def __init__(self, folder: Path, *, deadline_s: float = 30.0, **options: object) -> None:
        self.dcgmi = FakeDcgmi(folder / "dcgm")
        self.clock = Clock(mono_s=1000.0)
        chosen = DcgmSourceOptions(dcgm_interval_s=30.0, **options)  # type: ignore[arg-type]  # of several types
        self.source = DcgmSource(
            LiveHost(self.clock, folder), chosen, dcgmi=str(self.dcgmi.path), deadline_s=deadline_s
        )
        self.collector = DcgmCollector()
        self.why = ""

    async def turn(self, after_s: float = 30.0) -> list[UnsentEvent]:
        """What is reported of the next turn."""
        self.clock.mono_s += after_s
        samples: list[Sample] = []
        self.why = await self.source.turn(samples.append)
        return [
            kinds.check(unsent)
            for sample in samples
            for unsent in self.collector.feed(sample, self.clock.mono_s)
        ]


def told(events: list[UnsentEvent]) -> list[tuple[str, str, bool, Severity]]:
    """Component, error, active, severity."""
    return [(one.component, str(one.data["error"]), bool(one.data["active"]), one.severity) for one in events]


async def test_a_healthy_day_gives_no_event(tmp_path: Path) -> None:
    """Jobs come and go, at the power limit, which DCGM warns of; one process in each turn, or two."""
    watched = Watched(tmp_path)
    full = kit.report([Fails(message=kit.MESSAGES["CLOCKS_EVENT_POWER"][0], system="Power system")])
    for hour in range(24):
        watched.dcgmi.prints("health.g", full if hour % 2 else kit.report())
        assert await watched.turn(3600.0) == []
        assert watched.why == ""
    assert watched.dcgmi.calls() == ["-v", *["health -g g -c -j"] * 24]


async def test_an_error_begins_is_told_each_hour_and_ends(tmp_path: Path) -> None:
    """Of the GPU at the address that DCGM's number has now."""
    watched = Watched(tmp_path)
    assert await watched.turn() == []
    watched.dcgmi.prints("health.g", kit.report([Fails(message=kit.INFOROM, system="InfoROM system")]))
    (event,) = await watched.turn()
    assert told([event]) == [(GPU, "CORRUPT_INFOROM", True, Severity.WARNING)]
    assert (event.data["code"], event.data["system"], event.data["told_by"], event.data["entity"]) == (
        9,
        "inforom",
        "",
        "GPU 3",
    )
    assert event.evidence.startswith("DCGM: A corrupt InfoROM")
    assert [await watched.turn() for _ in range(119)] == [[]] * 119
    assert told(await watched.turn()) == [(GPU, "CORRUPT_INFOROM", True, Severity.WARNING)]
    watched.dcgmi.prints("health.g", kit.report())
    assert [await watched.turn() for _ in range(4)] == [[]] * 4, "DCGM looks at its last minute only"
    assert told(await watched.turn()) == [(GPU, "CORRUPT_INFOROM", False, Severity.INFO)]
    assert await watched.turn() == []


async def test_what_gpuward_tells_itself_is_no_fault_of_its_own(tmp_path: Path) -> None:
    """It stands in the GPU's history, with the kind that tells it."""
    watched = Watched(tmp_path)
    watched.dcgmi.prints(
        "health.g",
        kit.report(
            [
                Fails(message=kit.MESSAGES["VOLATILE_DBE_DETECTED"][0], failed=True),
                Fails(message=kit.MESSAGES["XID_ERROR"][0], system="Internal error", failed=True),
            ]
        ),
    )
    events = await watched.turn()
    assert {(one.data["error"], one.data["told_by"], one.severity) for one in events} == {
        ("VOLATILE_DBE_DETECTED", "gpu.ecc", Severity.INFO),
        ("XID_ERROR", "gpu.xid", Severity.INFO),
    }
    assert [one.data.get("xid") for one in events if one.data["error"] == "XID_ERROR"] == [48]


async def test_what_becomes_a_failure_is_told_again(tmp_path: Path) -> None:
    """At once."""
    watched = Watched(tmp_path)
    for failed, severity in ((False, Severity.WARNING), (True, Severity.ERROR)):
        watched.dcgmi.prints("health.g", kit.report([Fails(message="Something new.", failed=failed)]))
        assert told(await watched.turn()) == [(GPU, UNKNOWN, True, severity)]


async def test_gpus_are_found_anew_when_dcgm_has_other_numbers(tmp_path: Path) -> None:
    """After a restart of its engine without a GPU; one that it does not show is the node's."""
    watched = Watched(tmp_path)
    watched.dcgmi.prints("health.g", kit.report([Fails(message=kit.INFOROM, number=1)]))
    assert told(await watched.turn())[0][0] == "gpu/0000:3b:00"
    watched.dcgmi.prints("health.g", kit.NO_ENGINE)
    assert await watched.turn() == []
    watched.dcgmi.prints("discovery", kit.discovery(kit.BUSES[1:]))
    watched.dcgmi.prints("health.g", kit.report([Fails(message=kit.INFOROM, number=1)]))
    assert told(await watched.turn())[0][0] == "gpu/0000:5d:00"
    watched.dcgmi.prints("health.g", kit.report([Fails(message=kit.INFOROM, number=7)]))
    (event,) = await watched.turn()
    assert (event.component, event.data["entity"]) == ("node", "GPU 7")
    watched.dcgmi.prints("discovery", kit.discovery(kit.BUSES[2:]))
    watched.dcgmi.prints("health.g", kit.report([Fails(message=kit.INFOROM, number=0)]))
    assert told(await watched.turn())[0][0] == "gpu/0000:5d:00", "asked again, as another one is ill"
    asked = watched.dcgmi.calls().count("discovery -l")
    await watched.turn()
    assert watched.dcgmi.calls().count("discovery -l") == asked


async def test_nvswitches_and_processors_are_the_nodes(tmp_path: Path) -> None:
    """By DCGM's own numbers; another group is asked where the site says so."""
    watched = Watched(tmp_path, dcgm_groups=("g", "s"), dcgm_host="localhost:5555")
    (message, failed) = kit.MESSAGES["NVSWITCH_FATAL_ERROR"]
    watched.dcgmi.prints(
        "health.s",
        kit.report(
            [Fails(message=message, failed=failed, group="Switch", number=2, system="Internal error")]
        ),
    )
    message, failed = kit.MESSAGES["FIELD_THRESHOLD"]
    watched.dcgmi.prints(
        "health.g",
        kit.report([Fails(message=message, failed=failed, group="CPU", number=0, system="Thermal system")]),
    )
    assert [(one.component, one.data["entity"], one.data["told_by"]) for one in await watched.turn()] == [
        ("node", "CPU 0", ""),
        ("node", "Switch 2", "nvswitch.sxid"),
    ]
    assert watched.dcgmi.calls() == ["-v", *(f"health --host localhost:5555 -g {one} -c -j" for one in "gs")]


TROUBLE = {
    kit.NO_ENGINE: "start nvidia-dcgm.service",
    kit.NO_WATCHES: "dcgm_set_watches = true",
    kit.NO_GROUP: "correct dcgm_groups",
    "Error: Unable to check health watches. Return: Out of memory error\n": "Out of memory error",
    "PARSE ERROR: Argument: -j\n": "gave no answer that gpuward knows: PARSE ERROR",
    "": "gave no answer",
}


@pytest.mark.parametrize("printed", TROUBLE)
async def test_dcgm_that_cannot_be_asked_is_told_with_what_to_do(tmp_path: Path, printed: str) -> None:
    """Only when it lasts: a reset of a GPU stops DCGM. What was wrong before is not over meanwhile."""
    watched = Watched(tmp_path)
    watched.dcgmi.prints("health.g", kit.report([Fails(message=kit.INFOROM)]))
    assert len(await watched.turn()) == 1
    watched.dcgmi.prints("health.g", printed)
    for _ in range(10):
        assert await watched.turn() == []
        assert TROUBLE[printed] in watched.why
    watched.clock.mono_s += 60.0
    with pytest.raises(OSError, match=r"dcgm|DCGM"):
        await watched.source.run(lambda _: None)
    with pytest.raises(OSError, match=r"dcgm|DCGM"):
        await watched.source.look(lambda _: None)
    watched.dcgmi.prints("health.g", kit.report([Fails(message=kit.INFOROM)]))
    assert await watched.turn() == []
    assert watched.why == ""


async def test_short_trouble_is_not_told(tmp_path: Path) -> None:
    """`run` goes on."""
    watched = Watched(tmp_path)
    watched.dcgmi.prints("health.g", kit.NO_ENGINE)
    await watched.turn()
    watched.clock.mono_s += 120.0
    watched.dcgmi.prints("health.g", kit.report())
    await watched.turn()
    watched.dcgmi.prints("health.g", kit.NO_ENGINE)
    watched.clock.mono_s += 200.0
    await watched.turn()
    assert watched.why
    watched.clock.mono_s += 200.0
    with pytest.raises(TimeoutError):  # it goes on, as the trouble was over in between
        async with asyncio.timeout(2.0):
            await watched.source.run(lambda _: None)


@pytest.mark.parametrize(("version", "known"), [("2.4.7", False), ("3.1.8", True), ("4.5.1", True)])
async def test_dcgm_that_is_too_old_is_named(tmp_path: Path, version: str, known: bool) -> None:
    """Before DCGM 3 the entity in its JSON is not the GPU."""
    watched = Watched(tmp_path)
    watched.dcgmi.prints(
        "version", f"Version : {version}\nBuild ID : 1\n\nHostengine build info:\nVersion : {version}\n"
    )
    await watched.turn()
    assert watched.why == ("" if known else "this is DCGM 2: dcgm_interval_s needs 3 or newer; upgrade it")
    assert ("health -g g -c -j" in watched.dcgmi.calls()) is known


async def test_watches_are_set_only_where_the_site_lets_the_agent(tmp_path: Path) -> None:
    """And only for a group that has none."""
    for name, lets in (("no", False), ("yes", True)):
        watched = Watched(tmp_path / name, dcgm_set_watches=lets)
        watched.dcgmi.prints("health.g", kit.NO_WATCHES)
        watched.dcgmi.prints("watched.g", kit.report())
        await watched.turn()
        await watched.turn()
        assert (watched.why == "") is lets
        assert watched.dcgmi.calls().count("health -g g -s a") == int(lets)


async def test_a_dcgmi_that_hangs_is_killed_and_asked_again(tmp_path: Path) -> None:
    """With all that it has started; the agent goes on."""
    watched = Watched(tmp_path)
    assert await watched.turn() == []
    hung = Watched(tmp_path, deadline_s=0.3)
    hung.dcgmi.hangs(True)
    began_s = time.monotonic()
    assert await hung.turn() == []
    assert time.monotonic() - began_s < 25.0
    assert "did not end within 0.3 s" in hung.why
    watched.dcgmi.hangs(False)
    assert await watched.turn() == []
    assert watched.why == ""


async def test_a_missing_dcgmi_is_told_with_what_to_do(tmp_path: Path) -> None:
    """Not a fault of the node."""
    watched = Watched(tmp_path)
    watched.dcgmi.path.unlink()
    await watched.turn()
    assert watched.why.endswith("install DCGM, say where dcgmi is, or set dcgm_interval_s = 0")


def test_it_is_off_until_it_is_asked_for(tmp_path: Path) -> None:
    """By default no dcgmi is started."""
    host = Host(root=tmp_path)
    assert DcgmSource.of(SourceSetup(host=host, config=AgentConfig())) is None
    on = SourceSetup(host=host, config=AgentConfig(plugins={"dcgm_interval_s": 30.0}))
    assert DcgmSource.of(on) is not None


@pytest.mark.parametrize(
    "line",
    [
        "dcgm_interval_s = 90",
        'dcgm_groups = ["-v"]',
        "dcgm_groups = []",
        'dcgm_groups = ["g; reboot"]',
        'dcgm_host = "--clear"',
        'dcgm_host = "a b"',
    ],
)
def test_options_that_dcgmi_would_misread_are_refused(tmp_path: Path, line: str) -> None:
    """By file, line and key."""
    file = tmp_path / "agent.toml"
    file.write_text(line + "\n")
    with pytest.raises(ConfigError, match=line.split()[0]):
        config_file.load(file)
