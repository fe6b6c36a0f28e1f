"""A node packs what it likes, and the console opens it: bombs, paths, links, devices, lies in headers, odd names, markup."""

import asyncio
import gzip
import io
import os
import tarfile
import tracemalloc
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from brain.console import unpacking
from brain.console.unpacking import Contents
from tests import people
from tests.security.figures import Record, attacked
from tests.security.test_door import console

XSS = '<img src=x onerror="document.body.dataset.hit=1">.html'
USERS = people.ANN["users"] | {"bob": {"role": "viewer"}}
Fill = Callable[[tarfile.TarFile], object]


def no_pause() -> None:
    """A test waits for nobody."""


def add(archive: tarfile.TarFile, name: str, content: bytes = b"x", **more: Any) -> str:
    """A member, with any fields of its header; its name."""
    info = tarfile.TarInfo(name)
    info.size = len(content)
    for key, value in more.items():
        setattr(info, key, value)
    archive.addfile(info, io.BytesIO(content))
    return name


def packed(fill: Fill) -> bytes:
    """A .tar.gz."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w:gz", format=tarfile.PAX_FORMAT) as archive:
        fill(archive)
    return out.getvalue()


def opened(body: bytes) -> Contents:
    """What is in it."""
    return unpacking.contents(io.BytesIO(body), len(body), no_pause)


def content(body: bytes, number: int) -> bytes:
    """One file of it."""
    return b"".join(unpacking.one_file(io.BytesIO(body), len(body), number, no_pause)[1])


def test_what_an_agent_packs_is_all_there() -> None:
    """Text and binary files, an empty one, a long name, and one whose last letter is cut."""
    files = {
        "var/log/kern.log": "NVRM: Xid 79\nVorsicht, Übertemperatur\n".encode(),
        "empty": b"",
        "core": b"\x7fELF\0\0",
        "d/" * 90 + "long": b"deep",
        "letters": ("x" + "é" * 4000).encode(),
    }
    body = packed(lambda archive: [add(archive, *one) for one in files.items()])
    found = opened(body)
    assert (found.cut, found.left_out) == ("", 0)
    assert [one.name for one in found.files] == list(files)
    assert [one.text for one in found.files] == [True, True, False, True, True]
    for one in found.files:
        assert content(body, one.number) == files[one.name]


def test_links_devices_and_pipes_are_left_out(record_property: Record) -> None:
    """They are counted, and cannot be asked for."""
    kinds = (
        tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.CHRTYPE, tarfile.BLKTYPE, tarfile.FIFOTYPE, tarfile.CONTTYPE,
        tarfile.GNUTYPE_SPARSE,
    )  # fmt: skip

    def fill(archive: tarfile.TarFile) -> None:
        for kind in kinds:
            add(archive, "etc/shadow", b"", type=kind, linkname="/etc/shadow")
        add(archive, "folder", b"", type=tarfile.DIRTYPE)
        add(archive, "log", b"fine")

    body = packed(fill)
    found = opened(body)
    assert ([one.name for one in found.files], found.cut) == (["etc/shadow", "log"], "")
    assert (found.left_out, found.files[0].size) == (len(kinds) - 1, 0), "a contiguous file is a regular one"
    for number in range(len(kinds) + 1):
        if number != found.files[0].number:
            with pytest.raises(LookupError):
                content(body, number)
    with pytest.raises(LookupError):
        content(body, 999)
    attacked(record_property, len(kinds) + 1)


def zeros(size: int) -> bytes:
    """A file of zeros, packed in little memory."""
    out = io.BytesIO()
    with gzip.GzipFile(fileobj=out, mode="wb", compresslevel=9) as sink:
        info = tarfile.TarInfo("zeros")
        info.size = size
        sink.write(info.tobuf())
        for _ in range(size // 1024**2):
            sink.write(bytes(1024**2))
        sink.write(bytes(1024))
    return out.getvalue()


def test_a_bomb_is_not_unpacked(record_property: Record) -> None:
    """A gigabyte of zeros in one megabyte, and the same in many small gzip streams: neither list nor file goes beyond the bound,
    and memory stays small.
    """
    one = zeros(1024**3)
    tracemalloc.start()
    try:
        found = opened(one)
        assert "larger than" in found.cut
        read = 0
        pieces = unpacking.one_file(io.BytesIO(one), len(one), 0, no_pause)[1]
        with pytest.raises(EOFError, match="larger than"):  # noqa: PT012 - what comes before its end counts
            for piece in pieces:
                read += len(piece)
        assert read <= max(unpacking.RATIO_FROM, unpacking.RATIO * len(one)) + unpacking.PIECE
        assert tracemalloc.get_traced_memory()[1] < 16 * 1024**2
    finally:
        tracemalloc.stop()
    attacked(record_property, 2)


def test_more_files_than_anybody_reads(record_property: Record) -> None:
    """The list ends at its bound, and says so."""
    many = unpacking.MOST_MEMBERS + 10
    found = opened(packed(lambda archive: [add(archive, "f", b"") for _ in range(many)]))
    assert len(found.files) == unpacking.MOST_MEMBERS
    assert "more than 5000 files" in found.cut
    attacked(record_property, many)


def raw(*blocks: bytes) -> bytes:
    """Any bytes, packed."""
    return gzip.compress(b"".join(blocks))


def header(name: str, size: int, kind: bytes, **more: Any) -> bytes:
    """A header, whatever it claims."""
    info = tarfile.TarInfo(name)
    info.size, info.type = size, kind
    for key, value in more.items():
        setattr(info, key, value)
    return info.tobuf(tarfile.GNU_FORMAT)


def attributes(text: bytes) -> bytes:
    """A table of attributes (pax) before the next header."""
    return header("x", len(text), tarfile.XHDTYPE) + text + bytes(-len(text) % 512)


LIES = {
    "a long name of two gigabytes": raw(header("x", 2**31, tarfile.GNUTYPE_LONGNAME), bytes(4096)),
    "a table of attributes of a terabyte": raw(header("x", 2**40, tarfile.XHDTYPE), bytes(4096)),
    "a file of an exabyte": raw(header("x", 2**60, tarfile.REGTYPE), bytes(4096)),
    "a size below nothing": raw(header("x", -512, tarfile.REGTYPE), bytes(4096)),
    "a size below nothing, in attributes": raw(
        attributes(b"13 size=-512\n"), header("x", 0, tarfile.REGTYPE), bytes(4096)
    ),
    "a size that is no number": raw(attributes(b"12 size=1e9\n"), header("x", 0, tarfile.REGTYPE)),
    "a record of no length": raw(attributes(b"0 size=1\n" * 50), header("x", 0, tarfile.REGTYPE)),
    "tables upon tables": raw(attributes(b"10 a=1234\n") * 3000, header("x", 0, tarfile.REGTYPE), bytes(1024)),
    "long names upon long names": raw(
        (header("x", 5, tarfile.GNUTYPE_LONGNAME) + b"name\0".ljust(512, b"\0")) * 3000
    ),
    "a sparse file of an exabyte": raw(
        attributes(b"22 GNU.sparse.major=1\n22 GNU.sparse.minor=0\n31 GNU.sparse.realsize=1000000000000000\n"),
        header("x", 512, tarfile.REGTYPE),
        b"99999999999999999999\n".ljust(512, b"1"),
        bytes(1024),
    ),
    "a time beyond all times": raw(header("x", 0, tarfile.REGTYPE, mtime=2**50), bytes(1024)),
    "no archive": gzip.compress(os.urandom(4096)),
    "not packed": b"plain text",
    "nothing": b"",
    "cut off": zeros(4 * 1024**2)[:2000],
    "garbage behind": zeros(1024**2) + b"\xff" * 100,
}  # fmt: skip


@pytest.mark.parametrize("lie", LIES)
def test_lies_cost_little_and_are_said(lie: str, record_property: Record) -> None:
    """No error of ours, no memory, no loop; where something is wrong it is said, or the member is left out."""
    body = LIES[lie]
    tracemalloc.start()
    try:
        found = opened(body)
        assert tracemalloc.get_traced_memory()[1] < 16 * 1024**2
    finally:
        tracemalloc.stop()
    assert found.cut or len(found.files) + found.left_out <= 1, found
    for number in (0, 1):
        try:
            got = content(body, number)
        except (LookupError, EOFError):
            continue
        assert len(got) <= 1024**2
    attacked(record_property, 3)


@settings(max_examples=300, deadline=None)
@given(st.data())
def test_damage_anywhere_is_no_error_of_ours(data: st.DataObject) -> None:
    """Bytes of the unpacked archive, or of the packed one, are changed."""
    whole = gzip.decompress(
        packed(lambda archive: [add(archive, f"d{n}/ü" * n, b"text" * n) for n in range(1, 60, 7)])
    )
    body = bytearray(whole)
    for _ in range(data.draw(st.integers(1, 6))):
        body[data.draw(st.integers(0, len(body) - 1))] = data.draw(st.integers(0, 255))
    again = bytearray(gzip.compress(bytes(body)))
    if data.draw(st.booleans()):
        again[data.draw(st.integers(0, len(again) - 1))] ^= data.draw(st.integers(1, 255))
    found = opened(bytes(again))
    for one in found.files:
        try:
            content(bytes(again), one.number)
        except (LookupError, EOFError):
            continue


class Bundle:
    """One that lies in the store."""

    def __init__(self, body: bytes) -> None:
        self._body = body
        self.size = len(body)

    async def pieces(self) -> AsyncIterator[bytes]:
        """As it comes from there."""
        for at in range(0, len(self._body), 100_000):
            yield self._body[at : at + 100_000]


NAMES = (
    "../../../../etc/cron.d/own",
    "/etc/passwd",
    "..\\..\\windows\\own.exe",
    XSS,
    "log\r\nSet-Cookie: a=b",
    'a";filename="evil.exe',
    "\x1b]0;own\x07log",
    "gpj.\u202eexe.log",
    b"\xff\xfe.log".decode("utf-8", "surrogateescape"),
    "." * 99 + "hidden",
    "日志.txt",
    "n" * 5000,
    " ",
)


async def test_names_are_words_and_never_paths(tmp_path: Path, record_property: Record) -> None:
    """Whatever a name is: it stands in JSON as text in which nothing acts, a download of it has a plain name, and the file
    has the content that was packed. Nothing is written anywhere.
    """
    body = packed(lambda archive: [add(archive, name, b"<script>hit()</script>") for name in NAMES])
    ann = people.bearer(people.token_file(tmp_path, "ann"))
    async with console(tmp_path, users=USERS) as (url, view):
        view.bundles = {"n1/odd": Bundle(body)}
        before = sorted(path for path in tmp_path.rglob("*"))
        async with aiohttp.ClientSession(url, headers=ann) as session:
            async with session.get("/api/v1/evidence-files/n1/odd") as answer:
                assert answer.status == 200, await answer.text()
                found = await answer.json()
            assert (len(found["files"]), found["left_out"], found["cut"]) == (len(NAMES), 0, "")
            for one in found["files"]:
                assert one["name"].isprintable(), one
                assert 0 < len(one["name"]) <= 301
                async with session.get(f"/api/v1/evidence-file/n1/odd?file={one['file']}") as answer:
                    assert (answer.status, await answer.read()) == (200, b"<script>hit()</script>")
                    given = answer.headers["Content-Disposition"]
                    name = given.removeprefix('attachment; filename="').removesuffix('"')
                    assert given == f'attachment; filename="{name}"'
                    assert name.replace("-", "a").replace(".", "a").replace("_", "a").isalnum(), name
                    assert name.isascii()
                    assert not name.startswith(".")
                    assert answer.content_type == "application/octet-stream"
                    assert answer.headers["X-Content-Type-Options"] == "nosniff"
                    assert "sandbox" in answer.headers["Content-Security-Policy"]
                    assert "Set-Cookie" not in answer.headers
        assert sorted(path for path in tmp_path.rglob("*")) == before
    attacked(record_property, len(NAMES))


async def test_only_who_may_have_the_bundle_may_open_it(tmp_path: Path, record_property: Record) -> None:
    """Without a credential nobody, also where reading is open; and an end that is not there is no whole file."""
    bob = people.bearer(people.token_file(tmp_path, "bob"))
    body = packed(lambda archive: add(archive, "log", b"x" * 10))
    async with console(tmp_path, users=USERS, open_reading=True) as (url, view):
        view.bundles = {"n1/one": Bundle(body), "n1/cut": Bundle(zeros(64 * 1024**2)[:40_000])}
        async with aiohttp.ClientSession(url) as session:
            paths = ("evidence/n1/one", "evidence-files/n1/one", "evidence-file/n1/one?file=0")
            for path in paths:
                async with session.get(f"/api/v1/{path}") as answer:
                    assert answer.status == 401, path
                async with session.get(f"/api/v1/{path}", headers=bob) as answer:
                    assert answer.status == 200, path
            for path, status in (("file=1", 404), ("file=-1", 400), ("", 400), ("file=0&most=4", 200)):
                async with session.get(f"/api/v1/evidence-file/n1/one?{path}", headers=bob) as answer:
                    assert answer.status == status, path
            assert status == 200
            async with session.get("/api/v1/evidence-file/n1/one?file=0&most=4", headers=bob) as answer:
                assert await answer.read() == b"xxxx"
            async with session.get("/api/v1/evidence-file/n1/cut?file=0", headers=bob) as answer:
                with pytest.raises(aiohttp.ClientError):
                    await answer.read()
    attacked(record_property, 7)


async def test_a_bomb_does_not_stop_the_brain(tmp_path: Path, record_property: Record) -> None:
    """While it is unpacked others are answered at once."""
    ann = people.bearer(people.token_file(tmp_path, "ann"))
    async with console(tmp_path, users=USERS) as (url, view):
        view.bundles = {"n1/bomb": Bundle(zeros(600 * 1024**2))}
        async with aiohttp.ClientSession(url, headers=ann) as session:

            async def ask() -> Any:
                async with session.get("/api/v1/evidence-files/n1/bomb") as answer:
                    return await answer.json()

            asked = asyncio.create_task(ask())
            late, loop = [], asyncio.get_running_loop()
            while not asked.done():
                before = loop.time()
                await asyncio.sleep(0.01)
                late.append(loop.time() - before)
            assert "larger than" in (await asked)["cut"]
            late.sort()
            assert late[len(late) // 2] < 0.05, "half of the time at once"
    attacked(record_property, 1)
