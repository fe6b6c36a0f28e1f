"""The agent's own NVML child lets go of the driver while an action works on it."""

import asyncio
import contextlib
from collections.abc import Callable
from pathlib import Path

import pytest

from agent.collectors.samples import Gpu, Sample
from agent.contract.errors import Unreachable
from agent.host import Host
from agent.nvml.pause import NvmlPause
from agent.sources.nvml import NvmlSource
from tests.agent.nvml_kit import QUICK, ended
from tests.fixtures import nvml_fake


async def test_no_child_runs_during_a_pause(tmp_path: Path) -> None:
    """It is gone when the pause begins, comes back after the last of two, and the GPUs are sampled on."""
    library = nvml_fake.build(tmp_path / "lib")
    fake = nvml_fake.FakeNvml(tmp_path / "nvml", library)
    pause, samples = NvmlPause(), list[Sample]()
    source = NvmlSource(Host(), timing=QUICK, env=fake.env, bus=Host(root=tmp_path), pause=pause)
    task = asyncio.create_task(source.run(samples.append))
    try:
        await until(lambda: any(isinstance(one, Gpu) for one in samples))
        assert len(children(fake.folder)) == 1
        async with pause.paused(), pause.paused():
            assert children(fake.folder) == []
        before = len(samples)
        await until(lambda: len(samples) > before + 2)
        assert len(children(fake.folder)) == 1
        assert all(not one.lost for one in samples if isinstance(one, Gpu)), "a pause is no loss"
    finally:
        await ended(task)
    assert children(fake.folder) == []
    async with pause.paused():  # no source runs: none has to let go
        pass


async def test_what_the_work_raises_comes_out() -> None:
    """A source that breaks is opened again by its supervisor, as without a pause."""

    async def broken() -> None:
        raise OSError("the child ended")

    with pytest.raises(OSError, match="the child ended"):
        await NvmlPause().run_between_pauses(broken)


async def test_a_source_that_does_not_let_go(monkeypatch: pytest.MonkeyPatch) -> None:
    """The action is refused with nothing done, and the source goes on."""
    monkeypatch.setattr("agent.nvml.pause.LET_GO_S", 0.1)
    pause, free, rounds = NvmlPause(), asyncio.Event(), []

    async def stubborn() -> None:
        rounds.append(1)
        while not free.is_set():
            with contextlib.suppress(asyncio.CancelledError):
                await free.wait()
        await asyncio.sleep(60)

    task = asyncio.create_task(pause.run_between_pauses(stubborn))
    await until(lambda: rounds != [])
    with pytest.raises(Unreachable, match="did not let go"):
        async with pause.paused():
            pass
    free.set()
    await until(lambda: len(rounds) == 2)
    await ended(task)


def children(folder: Path) -> list[int]:
    """Processes that have this machine's NVML."""
    found = []
    for name in Host().listdir("/proc"):
        with contextlib.suppress(OSError):
            environ = Path(f"/proc/{name}/environ").read_bytes() if name.isdigit() else b""
            if f"FAKE_NVML_DIR={folder}\0".encode() in environ:
                found.append(int(name))
    return found


async def until(holds: Callable[[], bool]) -> None:
    async with asyncio.timeout(60):
        while not holds():
            await asyncio.sleep(0.01)
