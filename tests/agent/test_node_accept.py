"""node.accept: small real programs that measure, miss a floor, crash, hang, flood, or are not there."""

import asyncio
import json
import tarfile
import textwrap
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from agent.acceptance import check, programs
from agent.actions.base import Done, NotPassed
from agent.actions.bundle_folder import BundleFolder
from agent.actions.node_accept import NodeAccept
from agent.contract.errors import Refused, Unreachable
from agent.contract.figures import Figure
from tests.agent.gpu_kit import GpuNode
from tests.fixtures import nvml_fake

BUS = r"Avg bus bandwidth\s*:\s*(?P<bus_gb_per_s>[0-9.]+)"
BURN = r"errors:(?: 0 -)* +(?P<errors>-?\d+)"
RIGHT: dict[str, Any] = {"argv": ["/bin/true"], "limit_s": 60}
NCCL = "echo '# Out of bounds values : 0 OK'; echo '# Avg bus bandwidth    : 371.25'"


class Site:
    """A node whose agent lists acceptance programs, which are scripts of the test."""

    def __init__(self, folder: Path) -> None:
        self.node = GpuNode(folder, nvml_fake.build(folder / "lib"))
        self.folder = folder
        self.listed: dict[str, dict[str, Any]] = {}

    def program(self, name: str, script: str, **more: Any) -> None:
        path = self.folder / name
        path.write_text("#!/bin/sh\n" + textwrap.dedent(script))
        path.chmod(0o755)
        self.listed[name] = {"argv": [str(path), "-g", "8"], "limit_s": 60, "quick": True} | more

    @property
    def action(self) -> NodeAccept:
        config = replace(self.node.kit.config, acceptance=self.listed)
        bundles = BundleFolder(self.node.kit.host, self.folder / "evidence")
        return NodeAccept(replace(self.node.kit, config=config), bundles)

    async def fails(self, suite: str = "quick") -> Done:
        with pytest.raises(NotPassed) as caught:
            await self.action.run({"suite": suite})
        return caught.value.done

    def bundle(self, done: Done) -> dict[str, str]:
        """Name -> content of what the bundle has."""
        found = {}
        with tarfile.open(self.folder / "evidence" / done.evidence) as bundle:
            for member in bundle:
                file = bundle.extractfile(member)
                assert file is not None
                found[member.name] = file.read().decode()
        return found


@pytest.fixture
def site(tmp_path: Path) -> Site:
    return Site(tmp_path)


async def test_figures_are_read_held_to_their_floors_and_kept(site: Site) -> None:
    """A regular expression reads one program, JSON lines another one; what they printed is in the bundle."""
    site.program("all_reduce", NCCL, figures=BUS, floors={"bus_gb_per_s": 150})
    site.program(
        "ib_loopback",
        """echo 'connecting'; echo '{"gbit_per_s": 388, "latency_us": 1.9, "note": "x"}'; echo "$@" >&2""",
        figures="json", floors={"gbit_per_s": 350}, ceilings={"latency_us": 3}, gpus=False,
    )  # fmt: skip
    done = await site.action.run({})
    assert done.text == (
        "acceptance: all_reduce passed (all_reduce.bus_gb_per_s 371.25); "
        "ib_loopback passed (ib_loopback.gbit_per_s 388, ib_loopback.latency_us 1.9)"
    )
    assert done.figures == (
        Figure(name="all_reduce.bus_gb_per_s", value=371.25),
        Figure(name="ib_loopback.gbit_per_s", value=388),
        Figure(name="ib_loopback.latency_us", value=1.9, lower_is_better=True),
    )
    assert (done.alike, done.untested) == ("2 NVIDIA H100", ())
    kept = site.bundle(done)
    assert list(kept) == ["summary.txt", "all_reduce.out", "ib_loopback.out", "ib_loopback.err"]
    assert kept["ib_loopback.err"] == "-g 8\n"
    assert done.evidence_bytes > 0


@pytest.mark.parametrize(
    ("script", "says"),
    [
        ("echo 'Avg bus bandwidth : 149.9'", "p bus_gb_per_s is 149.9, below its floor of 150"),
        ("echo 'Avg bus bandwidth : 300'; echo 'Avg bus bandwidth : 90'", "bus_gb_per_s is 90, below"),
        ("echo 'Avg bus bandwidth : nan'", "bus_gb_per_s is not in what it printed"),
        ("exit 0", "bus_gb_per_s is not in what it printed"),
        (f"{NCCL}; echo 'wrong result on rank 3' >&2; exit 3", "ended with status 3: wrong result on rank 3"),
        (f"{NCCL}; kill -SEGV $$", "ended with signal 11"),
        ("exec /bin/sleep 600", "did not end within 1 s"),
    ],
)
async def test_what_is_a_failure(site: Site, script: str, says: str) -> None:
    """Floor missed (the worst counts), figure absent, error status, crash, hang. The next program is run all the same."""
    limit_s = 1 if "sleep" in script else 60
    site.program("p", script, limit_s=limit_s, figures=BUS, floors={"bus_gb_per_s": 150})
    site.program("last", "echo ran")
    done = await site.fails()
    assert says in done.text
    kept = site.bundle(done)
    assert kept["last.out"] == "ran\n"
    assert "last passed" in kept["summary.txt"]


@pytest.mark.parametrize(
    ("says", "errors"),
    [
        ("10.0%  proc'd: 104 (61311 Gflop/s) - 99 (61200 Gflop/s)   errors: 0 - 0   temps: 44 C - 45 C", 0),
        (
            "10.0%  proc'd: 104 (61311 Gflop/s) - 99 (61200 Gflop/s)   errors: 0 - 7  (WARNING!)  temps: 44 C",
            7,
        ),
        ("20.0%  proc'd: 104 (61311 Gflop/s)   errors: 0   temps: 44 C\r30.0%  errors: 3  (WARNING!)\n", 3),
    ],
)
def test_the_documented_pattern_for_gpu_burn(says: str, errors: int) -> None:
    """As gpu-burn prints its progress: the worst GPU counts, at the worst time."""
    (burn,) = programs({"burn": RIGHT | {"figures": BURN, "ceilings": {"errors": 0}}})
    assert [figure.value for figure in burn.read(says)] == [errors]
    assert BURN in (Path(__file__).resolve().parents[2] / "docs/acceptance.md").read_text()


async def test_a_ceiling(site: Site) -> None:
    """gpu-burn prints its errors again and again: the most count."""
    burn = 'for errors in 0 0 7 0; do echo "errors: $errors"; done'
    site.program("burn", burn, figures=r"errors: (?P<errors>\d+)", ceilings={"errors": 0})
    assert "burn errors is 7, above its ceiling of 0" in (await site.fails()).text


async def test_what_is_not_installed_is_not_a_failure(site: Site) -> None:
    """The result says precisely what was not tested; the others are."""
    site.program("all_reduce", NCCL, figures=BUS)
    site.listed["nvbandwidth"] = {"argv": ["/opt/nvbandwidth"], "limit_s": 60, "quick": True}
    done = await site.action.run({})
    assert done.text == "acceptance: all_reduce passed (all_reduce.bus_gb_per_s 371.25)"
    assert done.untested == ("nvbandwidth: /opt/nvbandwidth is not installed",)


async def test_a_site_without_programs(site: Site) -> None:
    """Nothing is tested, and nothing fails."""
    done = await site.action.run({})
    assert (done.text, done.evidence) == ("no acceptance program was run", "")
    assert done.untested == ("bandwidth and all-reduce: `acceptance` of agent.toml has no quick program",)


async def test_the_quick_suite_and_the_full_one(site: Site) -> None:
    """Quick programs run before each return to service; the burn-in only for a new or repaired node."""
    site.program("all_reduce", NCCL)
    site.program("burn", "echo burnt", quick=False, limit_s=1800)
    assert len(await site.action.plan({})) == 1
    assert await site.action.plan({"suite": "full"}) == [
        f"run {site.folder}/all_reduce -g 8, at most 60 s",
        f"run {site.folder}/burn -g 8, at most 1800 s",
    ]
    assert "burn passed" in (await site.action.run({"suite": "full"})).text
    with pytest.raises(Refused, match="suite must be quick or full, not 'all'"):
        await site.action.run({"suite": "all"})


async def test_a_flood_is_cut_and_the_program_is_not_held_up(site: Site) -> None:
    """200 MB of output: the bundle stays small, the agent does not grow."""
    site.program("flood", "head -c 200000000 /dev/zero | tr '\\0' 'x'; exit 0")
    done = await site.action.run({})
    assert "flood passed" in done.text
    assert done.evidence_bytes < 100_000
    assert len(site.bundle(done)["flood.out"]) == 1024 * 1024


async def test_cancelled_it_leaves_no_process(site: Site) -> None:
    """The whole process group ends, those that ignore SIGTERM too; no bundle is left half written."""
    site.program(
        "hang",
        f"""
        /bin/sleep 600 & echo $! > {site.folder}/child.part
        mv {site.folder}/child.part {site.folder}/child
        wait
        """,
    )  # fmt: skip
    work = asyncio.create_task(site.action.run({}))
    async with asyncio.timeout(60):
        while not (site.folder / "child").exists():
            assert not work.done()
            await asyncio.sleep(0.01)
    work.cancel()
    with pytest.raises(asyncio.CancelledError):
        await work
    child = int((site.folder / "child").read_text())
    async with asyncio.timeout(60):
        while Path(f"/proc/{child}").exists() and "Z" not in _state(child):
            await asyncio.sleep(0.01)
    assert not list((site.folder / "evidence").glob("*")) if (site.folder / "evidence").exists() else True


def _state(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2]
    except OSError:
        return "Z"


async def test_its_limits(site: Site) -> None:
    """No core dump, no huge file, and the first to be killed for memory. The environment is clean."""
    site.program("limits", "ulimit -c; ulimit -f; cat /proc/self/oom_score_adj; env | cut -d= -f1 | sort")
    lines = site.bundle(await site.action.run({}))["limits.out"].split()
    assert lines[0] == "0"
    assert int(lines[1]) <= 1024 * 1024 * 1024 // 512
    assert lines[2] == "1000"
    assert lines[3:] == ["HOME", "LANG", "LC_ALL", "PATH", "PWD"]


async def test_only_while_no_process_holds_a_gpu(site: Site) -> None:
    """Nothing was done, and it may be possible later. A program without GPUs runs."""
    site.program("all_reduce", NCCL)
    site.program("disk", "echo ok", gpus=False, quick=False)
    with site.node.held("/dev/nvidia0"):
        with pytest.raises(Unreachable, match="in use by python"):
            await site.action.run({})
        del site.listed["all_reduce"]
        assert "disk passed" in (await site.action.run({"suite": "full"})).text


@pytest.mark.parametrize(
    ("raw", "says"),
    [
        ({"Bad-Name": RIGHT}, "Bad-Name: a program's name has a-z"),
        ({"p": RIGHT | {"shell": True}}, "p: unknown key 'shell' (known: argv, limit_s,"),
        ({"p": {"limit_s": 60}}, "p.argv must be a list of texts"),
        ({"p": RIGHT | {"argv": "/bin/true -x"}}, "p.argv must be a list of texts"),
        ({"p": RIGHT | {"argv": ["true"]}}, "p.argv must begin with an absolute path, not 'true'"),
        ({"p": {"argv": ["/bin/true"]}}, "p.limit_s must be 1 to 3300 (s), not None"),
        ({"p": RIGHT | {"limit_s": 0}}, "p.limit_s must be 1 to"),
        ({"p": RIGHT | {"limit_s": float("nan")}}, "p.limit_s must be 1 to"),
        ({"p": RIGHT | {"quick": "yes"}}, "p.quick must be true or false"),
        ({"p": RIGHT | {"floors": [1]}}, "p.floors must be a table"),
        ({"p": RIGHT | {"floors": {"x": "1"}}}, "p.floors.x must be a number"),
        ({"p": RIGHT | {"floors": {"X y": 1}}}, "p.floors.X y must be a number"),
        ({"p": RIGHT | {"figures": 7}}, 'p.figures must be "json" or a regular expression'),
        ({"p": RIGHT | {"figures": "("}}, "p.figures is not a regular expression"),
        ({"p": RIGHT | {"figures": "[0-9]+"}}, "p.figures has no named group"),
        ({"p": RIGHT | {"figures": "(?P<X>1)"}}, "p.figures: the group 'X'"),
        ({"p": RIGHT | {"floors": {"x": 1}}}, "p: x has a limit, and `figures` has no group of that name"),
        ({"p": RIGHT | {"quick": True, "limit_s": 1501}}, "all quick programs together may take 1500 s"),
        ({"p": RIGHT | {"limit_s": 3000}, "q": RIGHT | {"limit_s": 301}}, "all programs together may take"),
    ],
)  # fmt: skip
def test_a_configuration_that_is_wrong(raw: dict[str, Any], says: str) -> None:
    """The message names the program and the key."""
    assert says in check("acceptance", raw)


def test_a_slow_pattern_does_not_hold_the_agent_up() -> None:
    """One that takes a time that grows with the square of the line sees only the line's beginning."""
    (slow,) = programs({"p": RIGHT | {"figures": r"\s*(?P<value>[0-9]+)y"}})
    assert slow.read(" " * 1_000_000 + "\n7y") == [Figure(name="p.value", value=7)]


def test_a_program_may_print_anything() -> None:
    """What is no number, or no object, is passed over."""
    (by_json,) = programs({"p": RIGHT | {"figures": "json", "floors": {"x": 1}}})
    lines = ["{", "[1]", '{"x": true}', '{"x": "many"}', '{"x": 1e999}', '{"x": NaN}', json.dumps({"x": [1]})]
    assert by_json.read("\n".join(lines)) == []
    assert [one.value for one in by_json.read('{"x": "3"}\n{"x": 2}')] == [2.0]
