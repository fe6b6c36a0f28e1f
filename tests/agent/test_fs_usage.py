"""fs.usage on real trees: what is largest, and what must not be counted or waited for."""

import asyncio
import os
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from agent.actions.fs_usage import FsUsage
from agent.contract.errors import ActionError, Refused
from agent.contract.messages import MAX_TEXT
from agent.filesystems import usage_child
from agent.host import Host

KIB = 1024


def fill(path: Path, kib: int) -> None:
    """A file with so many KiB in blocks."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"x" * kib * KIB)


@pytest.fixture(name="tree")
def _tree(tmp_path: Path) -> Path:
    """Two large directories, one of them by its child's child, and one that only points elsewhere."""
    fill(tmp_path / "data/home/ann/deep/down/file", 400)
    fill(tmp_path / "data/home/bob/file", 100)
    fill(tmp_path / "data/scratch/file", 300)
    fill(tmp_path / "elsewhere/huge", 2000)
    (tmp_path / "data/link").symlink_to(tmp_path / "elsewhere")
    return tmp_path / "data"


def test_the_largest_come_first_and_hold_what_lies_below_them(tree: Path) -> None:
    """As `du` counts: blocks, with everything below; links are not followed; deeper levels are counted, not named."""
    found = usage_child.usage(str(tree), 2, 60)
    names = [os.path.relpath(path, tree) for _, path in found["largest"]]
    assert names == ["home", "home/ann", "scratch", "home/bob"]
    assert found["whole"]
    assert found["files"] == 4, "three files and the link itself"
    shown = subprocess.run(["du", "-sB1", str(tree)], capture_output=True, text=True, check=True).stdout
    # du counts the folder itself as well.
    assert found["bytes"] == int(shown.split()[0]) - tree.stat().st_blocks * 512


def test_only_ten_are_kept_and_they_are_the_largest(tmp_path: Path) -> None:
    """However many there are."""
    for number in range(30):
        fill(tmp_path / f"d{number:02}/file", 8 + 4 * ((number * 7) % 30))
    found = usage_child.usage(str(tmp_path), 1, 60)
    sizes = [size for size, _ in found["largest"]]
    assert len(sizes) == 10
    assert sizes == sorted(sizes, reverse=True)
    assert Path(found["largest"][0][1]).name == f"d{next(n for n in range(30) if n * 7 % 30 == 29):02}"


def test_when_the_time_is_over_it_says_what_it_has(tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """And that this is not all."""
    monkeypatch.setattr(usage_child, "_LOOK_EVERY", 1)
    found = usage_child.usage(str(tree), 2, -1)
    assert found["whole"] is False


def at(mount: Path, root: Path, **more: float) -> FsUsage:
    """The action on this machine, for which `mount` is a watched file system."""
    return FsUsage(Listing(mount), (str(mount),), **more)


class Listing(Host):
    """This machine, with another table of mounts."""

    def __init__(self, mount: Path) -> None:
        super().__init__()
        object.__setattr__(self, "mount", mount)

    def read(self, absolute: str, default: str = "") -> str:
        """The table names the tree."""
        if absolute.endswith("/mounts"):
            return f"/dev/x {self.mount} xfs rw 0 0\nproc /proc proc rw 0 0"  # type: ignore[attr-defined]
        return super().read(absolute, default)


async def test_the_result_is_one_line_for_people(tree: Path, tmp_path: Path) -> None:
    """With the total; long names are cut in the middle; never longer than an event's text."""
    action = at(tree, tmp_path)
    params: dict[str, str | float] = {"mount": str(tree), "depth": 1}
    assert await action.plan(params) == [f"count what lies below {tree}, 1 levels deep, for at most 90 s"]
    done = await action.run(params)
    assert done.text.startswith(f"{tree}: 8")
    assert "in 4 files; largest: home 5" in done.text
    assert ", scratch 30" in done.text
    for number in range(12):
        fill(tree / f"{number:02}-{'n' * 100}/file", 500)
    text = (await action.run({"mount": str(tree)})).text
    assert len(text) <= MAX_TEXT
    assert "n…n" in text


async def test_what_is_refused(tree: Path, tmp_path: Path) -> None:
    """Only mounts that are watched; not a folder of one, nor /proc; and no odd depth."""
    action = at(tree, tmp_path)
    bad: list[dict[str, str | float]] = [
        {"mount": str(tree / "home")},
        {"mount": "/proc"},
        {"mount": str(tree), "depth": 9},
    ]
    for params in bad:
        for ask in (action.plan, action.run):
            with pytest.raises(Refused):
                await ask(params)
    with pytest.raises(Refused, match="recorded"):
        await FsUsage(Host(root=tmp_path), ()).run({"mount": "/"})


async def test_a_mount_that_is_gone(tmp_path: Path) -> None:
    """The table names it, and nothing is there."""
    with pytest.raises(ActionError, match="cannot be read: FileNotFoundError"):
        await at(tmp_path / "gone", tmp_path).run({"mount": str(tmp_path / "gone")})


async def test_a_file_system_that_hangs_does_not_hang_the_agent(
    tree: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The child is given up in time, and when the command is cancelled: no process is left."""
    hanging = tmp_path / "hangs.py"
    hanging.write_text(
        f"import os, time\nopen({str(tmp_path / 'pid')!r}, 'w').write(str(os.getpid()))\ntime.sleep(99)\n"
    )
    monkeypatch.setattr("agent.actions.fs_usage._CHILD", hanging)
    monkeypatch.setattr("agent.actions.fs_usage.GRACE_S", 0.0)
    with pytest.raises(ActionError, match="hangs"):
        await at(tree, tmp_path, limit_s=2).run({"mount": str(tree)})
    assert not alive(tmp_path)
    (tmp_path / "pid").unlink()
    task = asyncio.create_task(at(tree, tmp_path).run({"mount": str(tree)}))
    deadline = time.monotonic() + 60
    while not ((tmp_path / "pid").exists() and (tmp_path / "pid").read_text()):
        assert time.monotonic() < deadline
        await asyncio.sleep(0.01)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert not alive(tmp_path)


def alive(folder: Path) -> bool:
    """Does the process of hangs.py run?"""
    try:
        os.kill(int((folder / "pid").read_text()), 0)
    except ProcessLookupError:
        return False
    return True


@pytest.fixture(name="other")
def _other(tree: Path) -> Iterator[Path]:
    """Another file system below the tree."""
    (tree / "other").mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "tmpfs", str(tree / "other")], check=True)
    try:
        fill(tree / "other/huge", 4000)
        yield tree / "other"
    finally:
        subprocess.run(["umount", str(tree / "other")], check=True)


@pytest.mark.root
def test_another_file_system_below_is_not_counted(tree: Path, other: Path) -> None:
    """A full disk is not explained by what lies on another one."""
    found = usage_child.usage(str(tree), 2, 60)
    assert str(other) not in [path for _, path in found["largest"]]
    assert found["bytes"] < 1000 * KIB
