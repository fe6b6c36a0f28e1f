"""Rules are built and proved in a process of their own: what it answers, and what happens when it does not."""

import asyncio
import contextlib
import logging
import os
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from brain.adapters import pack_build
from brain.adapters.pack_build import Wanted
from brain.adapters.pack_process import PackProcess
from brain.core.pack.spec import Mode, ModeSetting, Settings
from tests.shipped import small_pack

ROOT = Path(__file__).resolve().parents[3]
WITHIN_S = 30.0


def wanted_of(folder: Path, *, spoil: Callable[[str], str] = str) -> Wanted:
    """A copy of one file of our rules, changed, with all runbooks, and a site."""
    small_pack(folder)
    file = folder / "rules" / "bond.yaml"
    file.write_text(spoil(file.read_text(encoding="utf-8")), encoding="utf-8")
    topology = folder / "topology.yaml"
    topology.write_text("n1: {leaf: l1, rack: r1}\nn2: {leaf: l1, rack: r2}\n", encoding="utf-8")
    return Wanted(
        rules_dir=folder / "rules",
        runbooks_dir=folder / "runbooks",
        topology=topology,
        settings=Settings(modes=(ModeSetting(mode=Mode.AUTO),), utc_offsets=((0.0, 3600.0),)),
    )


def _wrong_type(text: str) -> str:
    return text.replace("resolve_delay_s:", "quiet_s: x\n    resolve_delay_s:", 1)


def _wrong_example(text: str) -> str:
    assert "nothing: true" in text
    return text.replace("nothing: true", "incident: bond-degraded", 1)


def _old_name(text: str) -> str:
    return text.replace("resolve_delay_s:", "quiet_s:", 1)


@pytest.mark.parametrize("spoil", [str, _old_name, _wrong_type, _wrong_example])
async def test_it_answers_what_the_brain_would_find_itself(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, spoil: Callable[[str], str]
) -> None:
    """The same pack with the same version, warnings and errors, and without the brain's help."""
    wanted = wanted_of(tmp_path, spoil=spoil)
    answer = await PackProcess().build(wanted)
    assert answer == pack_build.build(wanted)
    assert not caplog.records
    assert bool(answer.pack) != bool(answer.errors)
    assert bool(answer.warnings) == (spoil is _old_name)
    if answer.pack is not None:
        assert set(answer.pack.places) == {"n1", "n2"}
        assert answer.pack.settings == wanted.settings


@pytest.mark.parametrize(
    ("command", "why"),
    [
        (["/no/such/python"], "cannot be started"),
        ([sys.executable, "-c", "import os; os.kill(os.getpid(), 9)"], "status -9"),
        ([sys.executable, "-c", "raise MemoryError('none left')"], "status 1 MemoryError: none left"),
        ([sys.executable, "-c", "import sys; sys.stdin.read(); print('no JSON')"], "has given no answer"),
        ([sys.executable, "-c", "print('{}')"], ""),  # does not listen
        ([sys.executable, "-c", "import time; time.sleep(3600)"], "has not answered within 1 s"),
    ],
)
async def test_rules_are_proved_though_their_process_fails(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, command: list[str], why: str
) -> None:
    """Within the brain, and its log says why."""
    wanted = wanted_of(tmp_path)
    limit_s = 1.0 if "3600" in command[-1] else WITHIN_S
    built = await PackProcess(command, limit_s).build(wanted)
    if why:
        assert built == pack_build.build(wanted)
        assert built.pack is not None
        (record,) = caplog.records
        assert record.levelno == logging.WARNING
        assert why in record.getMessage()
    else:
        assert built == pack_build.Build(), "an answer, though of one that knows nothing"


async def test_the_event_loop_goes_on_while_the_brain_proves_them() -> None:
    """All that we ship, which takes seconds."""
    turns = 0

    async def turn() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0.005)

    turning = asyncio.create_task(turn())
    wanted = Wanted(
        rules_dir=ROOT / "rules", runbooks_dir=ROOT / "runbooks", topology=None, settings=Settings()
    )
    assert (await PackProcess(["/no/such/python"], WITHIN_S).build(wanted)).pack is not None
    turning.cancel()
    await asyncio.wait({turning})
    assert turns > 10


def _blocked(folder: Path) -> Wanted:
    """What never ends: a file that is a pipe to which nobody writes."""
    wanted = wanted_of(folder)
    os.mkfifo(wanted.rules_dir / "pipe.yaml")
    return wanted


def _children() -> set[int]:
    return {int(pid) for pid in Path(f"/proc/self/task/{os.getpid()}/children").read_text().split()}


async def _until(true: Callable[[], object]) -> None:
    async with asyncio.timeout(WITHIN_S):
        while not true():
            await asyncio.sleep(0.01)


async def test_cancelled_it_leaves_no_process_behind(tmp_path: Path) -> None:
    """A connection is lost, or the brain stops, while rules are tried."""
    before = _children()
    building = asyncio.create_task(PackProcess().build(_blocked(tmp_path)))
    await _until(lambda: _children() - before)
    building.cancel()
    await asyncio.wait({building})
    assert _children() == before


def _alive(pid: int) -> bool:
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    return False


async def test_it_ends_when_the_brain_is_killed(tmp_path: Path) -> None:
    """SIGKILL, which no brain can answer."""
    wanted = _blocked(tmp_path)
    (tmp_path / "question").write_bytes(pack_build.question(wanted))
    brain = await asyncio.create_subprocess_exec(
        sys.executable,
        "-c",
        "import asyncio, pathlib, sys\n"
        "from brain.adapters import pack_build, pack_process\n"
        "wanted = pack_build.asked(pathlib.Path(sys.argv[1]).read_bytes())\n"
        "asyncio.run(pack_process.PackProcess().build(wanted))\n",
        str(tmp_path / "question"),
        cwd=ROOT,
    )
    children = Path(f"/proc/{brain.pid}/task/{brain.pid}/children")
    await _until(lambda: children.read_text().split())
    (child,) = map(int, children.read_text().split())
    writer = await _read_by_somebody(wanted.rules_dir / "pipe.yaml")
    began = time.monotonic()
    brain.send_signal(signal.SIGKILL)
    await brain.wait()
    await _until(lambda: not _alive(child))
    os.close(writer)
    assert time.monotonic() - began < WITHIN_S


async def _read_by_somebody(pipe: Path) -> int:
    """Waits until somebody reads the pipe: has read what it is asked, then. The end for writing: the reader waits on."""
    opened: list[int] = []

    def read() -> bool:
        with contextlib.suppress(OSError):
            opened.append(os.open(pipe, os.O_WRONLY | os.O_NONBLOCK))
        return bool(opened)

    await _until(read)
    return opened[0]
