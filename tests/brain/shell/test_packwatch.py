"""The running brain watches its rules: real files that change while it does."""

import asyncio
import contextlib
import os
from collections.abc import AsyncIterator, Callable, Sequence
from pathlib import Path

import pytest

from agent.shared import files
from brain import renamed
from brain.adapters import packwatch
from brain.adapters.pack_build import Build, Wanted
from brain.adapters.pack_process import PackProcess
from brain.adapters.packwatch import PackWatch
from brain.config import parse
from brain.core.pack.spec import Pack
from tests.shipped import small_pack

OLD = f"is called resolve_delay_s now: the old name is read until version {renamed.UNTIL}"


class Site:
    """A copy of one file of our rules with all runbooks, and what the watch reported of them, in order."""

    def __init__(self, folder: Path) -> None:
        small_pack(folder)
        config = parse({"rules": "rules", "runbooks": "runbooks"}, "site.toml", folder)
        self.file = folder / "rules" / "bond.yaml"
        self.watch = PackWatch(config, self._build)
        self.process = PackProcess()
        self.tried = 0  # builds
        self.calls: list[tuple[str, Sequence[str]]] = []

    async def _build(self, wanted: Wanted) -> Build:
        self.tried += 1
        return await self.process.build(wanted)

    def take(self, pack: Pack) -> None:
        """A usable pack."""
        self.calls.append(("take", [pack.version]))

    def write(self, old: str, new: str) -> None:
        """Replaces the first `old`. Atomically: the watch must not read half a file."""
        text = self.file.read_text(encoding="utf-8")
        assert old in text
        files.write(self.file, text.replace(old, new, 1).encode())

    async def next(self, kind: str) -> Sequence[str]:
        """Waits for a call of this kind that is the newest one, and clears the list."""
        async with asyncio.timeout(30):
            while not self.calls or self.calls[-1][0] != kind:
                await asyncio.sleep(0.01)
        calls, self.calls = self.calls, []
        return calls[-1][1]


@contextlib.asynccontextmanager
async def watched(folder: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Site]:
    """A site whose watch runs."""
    monkeypatch.setattr(packwatch, "POLL_S", 0.02)
    async with serving(Site(folder)) as site:
        yield site


@contextlib.asynccontextmanager
async def serving(site: Site) -> AsyncIterator[Site]:
    """One session of it."""
    task = asyncio.create_task(
        site.watch.serve(
            site.take,
            lambda errors: site.calls.append(("refuse", errors)),
            lambda warnings: site.calls.append(("warn", warnings)),
        )
    )
    try:
        yield site
    finally:
        task.cancel()
        await asyncio.wait({task})


async def test_a_pack_with_old_names_is_taken_with_a_warning_for_each(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The warnings come once, with file and line; a read that finds the same ones does not repeat them."""
    async with watched(tmp_path, monkeypatch) as site:
        (version,) = await site.next("take")
        site.write("resolve_delay_s:", "quiet_s:")
        async with asyncio.timeout(30):
            while len(site.calls) < 2:
                await asyncio.sleep(0.01)
        line = 1 + site.file.read_text(encoding="utf-8").partition("quiet_s:")[0].count("\n")
        (kind, (warning,)), taken = site.calls
        assert kind == "warn"
        assert warning.startswith(f"rules/bond.yaml:{line}: rules.")
        assert warning.endswith(f".quiet_s: {OLD}")
        assert taken == ("take", [version]), "another name, the same rules"

        site.calls.clear()
        site.watch.check_now()
        await site.next("take")
        site.write("resolve_delay_s:", "quiet_s:")
        async with asyncio.timeout(30):
            while len(site.calls) < 2:
                await asyncio.sleep(0.01)
        assert [kind for kind, _ in site.calls] == ["warn", "take"]
        assert len(site.calls[0][1]) == 2, "another old name: all of them again"


async def test_a_pack_that_cannot_be_used_is_refused_and_the_next_one_is_taken(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With the error's place; its old names are no matter then."""
    async with watched(tmp_path, monkeypatch) as site:
        await site.next("take")
        site.write("resolve_delay_s:", "quiet_s: x\n    resolve_delay_s:")
        (error,) = await site.next("refuse")
        assert error.startswith("rules/bond.yaml:")
        assert "quiet_s: unknown key" in error
        site.write("    quiet_s: x\n", "")
        await site.next("take")
        assert site.calls == []


async def test_a_new_leader_is_told_at_once_of_files_that_were_read_before(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of the pack, or of the errors; they are not read and tried once more, unless a person asks for it (SIGHUP)."""
    async with watched(tmp_path, monkeypatch) as site:
        first = await site.next("take")
        site.watch.report_again()
        assert await site.next("take") == first
        assert site.tried == 1
        site.watch.check_now()
        assert await site.next("take") == first
        assert site.tried == 2
        site.write("resolve_delay_s:", "quiet_s: x\n    resolve_delay_s:")
        errors = await site.next("refuse")
        site.watch.report_again()
        assert await site.next("refuse") == errors
        assert site.tried == 3, "no pack could be made of them, and they were not read again"


async def test_a_build_that_was_cut_off_is_done_by_the_next_session(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The connection is lost while changed rules are tried: whoever serves next takes them, not the old ones."""
    async with watched(tmp_path, monkeypatch) as site:
        first = await site.next("take")
        trying = asyncio.Event()

        async def slowly(wanted: Wanted) -> Build:
            trying.set()
            return await Site._build(site, wanted)

        site.watch._build = slowly
        site.write("severity: P2", "severity: P3")
        async with asyncio.timeout(30):
            await trying.wait()
    async with serving(site):
        site.watch.report_again()
        assert await site.next("take") != first


@pytest.mark.parametrize(
    ("spoil", "said"),
    [
        (lambda file: file.symlink_to(file.name), "more.yaml"),
        (lambda file: file.write_text("symptoms: {a: {ttl_s: " + "9" * 5000 + "}}\n"), ""),
        (lambda file: file.write_text("[" * 3000), ""),
    ],
)
async def test_no_file_ends_the_watch(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, spoil: Callable[[Path], object], said: str
) -> None:
    """A link to itself, a number of 5,000 digits, brackets without an end: refused, and taken again when it is gone."""
    async with watched(tmp_path, monkeypatch) as site:
        await site.next("take")
        file = site.file.with_name("more.yaml")
        spoil(file)
        assert said in "\n".join(await site.next("refuse"))
        file.unlink()
        await site.next("take")


async def test_an_editors_files_are_none_of_ours(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A lock (a link to nowhere) and a copy, hidden beside the file that is edited."""
    async with watched(tmp_path, monkeypatch) as site:
        first = await site.next("take")
        site.file.with_name(".#bond.yaml").symlink_to("ann@host.123:456")
        site.file.with_name(".bond.yaml").write_text("half of it")
        site.watch.check_now()
        assert await site.next("take") == first


async def test_a_change_that_looks_old_is_seen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In place, of the same size, with the time of before: as `cp -p` and `rsync --inplace -t` write."""
    async with watched(tmp_path, monkeypatch) as site:
        first = await site.next("take")
        before = site.file.stat()
        text = site.file.read_text(encoding="utf-8").replace("severity: P2", "severity: P3", 1)
        site.file.write_text(text, encoding="utf-8")
        os.utime(site.file, ns=(before.st_atime_ns, before.st_mtime_ns))
        assert await site.next("take") != first


async def test_who_begins_to_lead_while_the_files_are_read_is_told_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two reports would put the same rules on the log twice."""
    build = Site._build

    async def slow(site: Site, wanted: Wanted) -> Build:
        site.watch.report_again()
        return await build(site, wanted)

    monkeypatch.setattr(Site, "_build", slow)
    async with watched(tmp_path, monkeypatch) as site:
        async with asyncio.timeout(30):
            while not site.calls:
                await asyncio.sleep(0.01)
        site.write("severity: P2", "severity: P3")
        async with asyncio.timeout(30):
            while site.calls[-1] == site.calls[0]:
                await asyncio.sleep(0.01)
        assert [kind for kind, _ in site.calls] == ["take", "take"]
