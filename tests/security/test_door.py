"""The door of the console, attacked over real sockets: pages elsewhere, guesses, stolen and revoked tokens, proxies, TLS."""

import asyncio
import contextlib
import os
import pwd
import ssl
import subprocess
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from agent.contract.errors import ConfigError
from brain.console.access import limits, local_token
from brain.console.access.tokens import Tokens, taken_apart
from brain.console.server import Console
from brain.console_config import Role
from tests import people
from tests.real.brain_kit import lab
from tests.security.figures import Record, attacked
from tests.security.view import FolderView

ANN = people.ANN["users"]


@contextlib.asynccontextmanager
async def console(folder: Path, **more: Any) -> AsyncIterator[tuple[str, Any]]:
    """A console alone, on any free port of loopback: its URL, and the view that collects its notes."""
    view: Any = FolderView.of(folder, console={"port": 0} | more)
    async with Console(view).serving() as url:
        yield url, view


async def ask(url: str, path: str = "/api/v1/me", body: Any = None, **headers: str) -> tuple[int, Any]:
    """Status and answer. `Host_` and the like: header names with `_` for `-`."""
    sent = {name.replace("_", "-"): value for name, value in headers.items()}
    method = "GET" if body is None else "POST"
    async with (
        aiohttp.ClientSession() as session,
        session.request(method, url + path, json=body, headers=sent, ssl=False) as answer,
    ):
        return answer.status, await answer.json()


def shown(path: Path) -> str:
    return people.bearer(path)["Authorization"]


@pytest.mark.component("nats-server")
async def test_a_page_elsewhere_sets_no_runbook_to_auto(tmp_path: Path, record_property: Record) -> None:
    """DNS rebinding and cross-site requests, even with the victim's own token in them; the command line still may."""
    async with lab(tmp_path) as whole:
        assert whole.running is not None
        url, token = whole.running.console_url, shown(whole.ann)
        auto = {"verb": "mode", "args": {"runbook": "*", "mode": "auto"}}
        attacks: list[tuple[dict[str, str], int]] = [
            ({"Host": "evil.example:8470"}, 421),
            ({"Host": "localhost.evil.example"}, 421),
            ({"Host": "127.0.0.1.evil.example"}, 421),
            ({"Host": "127.0.0.1@evil.example"}, 421),
            ({"Host": "0x7f.1"}, 421),
            ({"Host": "127.0.0.1:8470@evil.example"}, 421),
            ({"Host": "127.0.0.1:8470, evil.example"}, 421),
            ({"Host": "localhost:8470/evil.example"}, 421),
            ({"Host": ""}, 421),
            ({"Origin": "http://evil.example"}, 403),
            ({"Origin": "null"}, 403),
            ({"Origin": url.replace("127.0.0.1", "localhost")}, 403),
            ({"Origin": url.replace("http:", "https:")}, 403),
            ({"Origin": f"{url}.evil.example"}, 403),
            ({"Sec-Fetch-Site": "cross-site"}, 403),
            ({"Sec-Fetch-Site": "same-site"}, 403),
        ]
        for headers, want in attacks:
            status, answer = await ask(url, "/api/v1/command", auto, Authorization=token, **headers)
            assert (status, bool(answer["detail"])) == (want, True), headers
        assert not [one for one in (await whole.get("/api/v1/status"))["modes"] if one["who"]]
        for headers, want in attacks:
            status, _ = await ask(url, "/api/v1/status", **headers)
            assert status == want, f"nor does it read: {headers}"
        status, _ = await ask(url, "/api/v1/command", auto, Authorization=token, Origin=url)
        assert status == 200
        attacked(record_property, 2 * len(attacks))


async def test_a_page_elsewhere_leads_here_and_frames_nothing(
    tmp_path: Path, record_property: Record
) -> None:
    """A link in a chat opens the console in a window of its own, which the page that has opened it does not hold."""
    link = {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate"}
    frames = ("iframe", "frame", "object", "embed", "fencedframe")
    async with console(tmp_path) as (url, _), aiohttp.ClientSession() as session:
        for path in ("/", "/incidents/inc-1?say=approve", "/login/ways", "/api/v1/me"):
            async with session.get(url + path, headers=link | {"Sec-Fetch-Dest": "document"}) as answer:
                assert answer.status == 200, path
                assert answer.headers["Cross-Origin-Opener-Policy"] == "same-origin", path
            for dest in frames:
                async with session.get(url + path, headers=link | {"Sec-Fetch-Dest": dest}) as answer:
                    assert answer.status == 403, (path, dest)
    attacked(record_property, 4 * len(frames))


async def test_no_answer_says_which_versions_run_there(tmp_path: Path) -> None:
    """To nobody, whatever they ask for."""
    async with console(tmp_path) as (url, _), aiohttp.ClientSession() as session:
        for path in ("/", "/web/app.js", "/healthz", "/api/v1/me", "/none"):
            async with session.get(url + path) as answer:
                assert answer.headers["Server"] == "gpuward", path


async def test_two_host_headers_are_none(tmp_path: Path) -> None:
    """Whatever stands between us and the client might have looked at the other one."""
    async with console(tmp_path) as (url, _):
        host, port = url.removeprefix("http://").split(":")
        reader, writer = await asyncio.open_connection(host, int(port))
        writer.write(b"GET /api/v1/me HTTP/1.1\r\nHost: localhost\r\nHost: evil\r\nConnection: close\r\n\r\n")
        line = await reader.readline()
        assert line.split()[1] in (b"400", b"421"), line
        writer.close()


def test_what_a_killed_brain_has_left_is_no_credential_for_another_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`gpuward up` of a person was killed; later systemd's brain has the port, and its file is the newer one."""
    own, system = tmp_path / "run/gpuward", tmp_path / "system"
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(own.parent))
    monkeypatch.setattr(local_token, "SYSTEM", (tmp_path / "none", system))
    for folder, token, at in ((own, "old", 1000), (system, "new", 2000)):
        folder.mkdir(parents=True)
        file = folder / local_token.name(8470)
        file.write_text(token)
        os.utime(file, (at, at))
    assert local_token.found(8470) == "new"
    os.utime(own / local_token.name(8470), (3000, 3000))
    assert local_token.found(8470) == "old", "it was started again, by the person"
    assert local_token.found(8471) == ""


async def test_the_starter_has_a_token_that_only_they_can_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Made at each start, found by itself, gone at the end; another one's file is left alone."""
    runtime = tmp_path / "run"
    runtime.mkdir()
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(runtime))
    async with console(tmp_path) as (url, _):
        port = int(url.rpartition(":")[2])
        token = local_token.found(port)
        files = [runtime / "gpuward" / local_token.name(port), tmp_path / local_token.name(port)]
        assert [oct(path.stat().st_mode & 0o777) for path in files] == ["0o600", "0o600"]
        assert oct(files[0].parent.stat().st_mode & 0o777) == "0o700"
        assert (await ask(url, Authorization=f"Bearer {token}"))[1]["role"] == "administrator"
        files[0].write_text("of another brain")
    assert (files[0].exists(), files[1].exists()) == (True, False)
    async with console(tmp_path) as (url, _):
        status, _ = await ask(url, Authorization=f"Bearer {token}")
        assert status == 401, "that of an earlier start is worth nothing"


@pytest.mark.parametrize(
    ("user", "name"), [("gpuward", "root"), ("root", "root"), ("ann", "ann"), ("", "local-user")]
)
async def test_what_root_types_is_not_said_to_be_gpuwards_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, user: str, name: str
) -> None:
    """The packages' unit runs as `gpuward`, and so the log names what no person has done."""
    entry = pwd.getpwuid(os.getuid())
    monkeypatch.setattr(pwd, "getpwuid", lambda _uid: pwd.struct_passwd((user, *entry[1:])))
    async with console(tmp_path) as (url, _):
        token = (tmp_path / local_token.name(int(url.rpartition(":")[2]))).read_text()
        assert (await ask(url, Authorization=f"Bearer {token}"))[1]["name"] == name


async def test_a_token_is_limited_expires_and_is_revoked_at_once(tmp_path: Path) -> None:
    """Its role caps its user's; the file has no token in it; what another process takes away is gone at the next request."""
    weak = people.token_file(tmp_path / "d", role=Role.VIEWER)
    full = people.token_file(tmp_path / "d", "bob", Role.ADMINISTRATOR)
    gone = people.token_file(tmp_path / "d", "eve", Role.ADMINISTRATOR)
    kept = tmp_path / "d" / "tokens.json"
    assert taken_apart(full.read_text())[1] not in kept.read_text()
    assert kept.stat().st_mode & 0o777 == 0o600
    users = ANN | {"bob": {"role": "operator"}}
    async with console(tmp_path / "d", users=users) as (url, view):
        assert (await ask(url, Authorization=shown(weak)))[1]["role"] == "viewer"
        assert (await ask(url, Authorization=shown(full)))[1]["role"] == "operator"
        assert (await ask(url, Authorization=shown(gone)))[0] == 401, "who left the configuration is nobody"
        status, made = await ask(url, "/api/v1/tokens", {"role": "administrator"}, Authorization=shown(weak))
        assert (status, made["role"]) == (200, "viewer"), "a weak token makes no strong one"
        status, made = await ask(url, "/api/v1/tokens", {"user": "ann"}, Authorization=shown(full))
        assert status == 403, "operators make none for others"
        (id_,) = (one.id for one in Tokens(kept).all() if one.user == "bob")
        Tokens(kept).revoke({id_})
        assert (await ask(url, Authorization=shown(full)))[0] == 401
        assert [kind for kind, _ in view.notes] == ["access.token", "access.refused"]
        kept.write_text("{")
        assert (await ask(url, Authorization=shown(full)))[0] == 401, "a broken file lets nobody in anew"
        assert (await ask(url, Authorization=shown(weak)))[0] == 200, "nor does it lock out who was known"
    tokens = Tokens(tmp_path / "t.json")
    _, text = tokens.make("ann", Role.VIEWER, now=1000, lasts_s=60, by="x")
    assert tokens.find(text, 1059) is not None
    assert tokens.find(text, 1060) is None


async def test_guessing_locks_the_guesser_and_nobody_else(tmp_path: Path) -> None:
    """Neither the owner of a token at another address, nor others on loopback, who share the address of a guesser."""
    ann = people.token_file(tmp_path / "d")
    async with console(tmp_path / "d", users=ANN) as (url, view):
        answers = [(await ask(url, Authorization=f"Bearer guess{n}"))[0] for n in range(limits.WRONG + 2)]
        assert answers == [401] * limits.WRONG + [429] * 2
        assert (await ask(url, Authorization=shown(ann)))[0] == 200
        wrong = shown(ann)[:-4] + "AAAA"
        answers = [(await ask(url, Authorization=wrong))[0] for n in range(limits.WRONG + 1)]
        assert answers == [401] * limits.WRONG + [429]
        assert (await ask(url, Authorization=shown(ann)))[0] == 429, "its id is locked for this address"
        assert [kind for kind, _ in view.notes] == ["access.locked"], "one note in a minute"


def test_locks_grow_and_end() -> None:
    """Ten wrong ones lock for 30 s, the next ten for 60; a right one forgets; memory is bounded."""
    found = limits.Limits(per_s=10, burst=20)
    for round_, lock_s in enumerate((30, 60, 120)):
        now = 1000.0 * round_
        assert [found.was_wrong("a", now) for _ in range(limits.WRONG)][-1]
        assert found.locked_s("a", now) == lock_s
        assert found.locked_s("a", now + lock_s) == 0
    found.was_right("a")
    assert [found.too_many("a", 5.0) for _ in range(21)] == [False] * 20 + [True]
    assert not found.too_many("a", 5.2)
    for n in range(2 * limits.REMEMBERED):
        found.too_many(str(n), 6.0)
        found.was_wrong(str(n), 6.0)
    assert len(found._asked) == len(found._wrong) == limits.REMEMBERED


async def test_who_asks_too_often_is_told_to_slow_down(tmp_path: Path) -> None:
    """With the seconds to wait."""
    async with console(tmp_path, requests_per_s=2) as (url, _):
        answers = [(await ask(url))[0] for _ in range(12)]
        assert answers[:4] == [200] * 4
        assert 429 in answers


async def test_only_a_trusted_proxy_says_who_asks(tmp_path: Path) -> None:
    """Others' X-Forwarded-For counts for nothing; through a proxy nobody reads openly; it must have taken TLS."""
    far = {"X_Forwarded_For": "198.51.100.7"}
    async with console(tmp_path / "a") as (url, _):
        for n in range(limits.WRONG):
            await ask(url, Authorization="Bearer x", X_Forwarded_For=f"198.51.100.{n}")
        assert (await ask(url, Authorization="Bearer x", X_Forwarded_For="198.51.100.99"))[0] == 429
    async with console(tmp_path / "b", trusted_proxies=["127.0.0.1"]) as (url, _):
        assert (await ask(url, **far))[0] == 403, "the proxy did not say https"
        assert (await ask(url, X_Forwarded_Proto="http", **far))[0] == 403
        assert (await ask(url, X_Forwarded_Proto="https", **far))[0] == 401
        for n in range(limits.WRONG):
            hops = f"203.0.113.{n}, 198.51.100.7"  # what the client adds stands before what the proxy saw
            await ask(url, Authorization="Bearer x", X_Forwarded_For=hops, X_Forwarded_Proto="https")
        status, _ = await ask(url, Authorization="Bearer x", X_Forwarded_Proto="https", **far)
        assert status == 429
        other = {"X_Forwarded_For": "198.51.100.8", "X_Forwarded_Proto": "https"}
        assert (await ask(url, Authorization="Bearer x", **other))[0] == 401


def certificate(folder: Path, name: str) -> tuple[Path, Path]:
    """A self-signed certificate for localhost."""
    chain, key = folder / f"{name}.pem", folder / f"{name}.key"
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days",
         "2", "-subj", f"/CN={name}", "-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1",
         "-keyout", str(key), "-out", str(chain)],
        check=True, capture_output=True,
    )  # fmt: skip
    return chain, key


def presented(port: int, most: ssl.TLSVersion = ssl.TLSVersion.MAXIMUM_SUPPORTED) -> str:
    """The certificate that the server shows, in PEM."""
    import socket

    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    context.maximum_version = most
    with socket.create_connection(("127.0.0.1", port), timeout=20) as raw, context.wrap_socket(raw) as tls:
        assert tls.version() == "TLSv1.3"
        return ssl.DER_cert_to_PEM_cert(tls.getpeercert(binary_form=True) or b"")


async def test_tls_is_1_3_and_a_new_certificate_needs_no_restart(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """A half-written one keeps the old one in use; the command line trusts the CA that it is given, and nobody else."""
    monkeypatch.setattr("brain.console.access.tls.LOOK_EVERY_S", 0.05)
    chain, key = certificate(tmp_path, "first")
    first = chain.read_text()
    async with console(tmp_path, tls_cert_file=str(chain), tls_key_file=str(key), host="0.0.0.0") as (url, _):
        port = int(url.rpartition(":")[2])
        assert url.startswith("https://")
        assert await asyncio.to_thread(presented, port) == first
        with pytest.raises(ssl.SSLError):
            await asyncio.to_thread(presented, port, ssl.TLSVersion.TLSv1_2)
        assert (await ask(f"https://127.0.0.1:{port}"))[0] == 401, "beyond loopback nobody reads openly"
        new_chain, new_key = certificate(tmp_path, "second")
        chain.write_text(new_chain.read_text())  # its key is still the old one
        deadline = time.monotonic() + 60
        while "the old certificate stays in use" not in caplog.text:
            assert time.monotonic() < deadline
            await asyncio.sleep(0.05)
        assert await asyncio.to_thread(presented, port) == first
        key.write_text(new_key.read_text())
        deadline = time.monotonic() + 60
        while await asyncio.to_thread(presented, port) != new_chain.read_text():
            assert time.monotonic() < deadline
            await asyncio.sleep(0.05)
        from click.testing import CliRunner, Result

        from brain.cli.main import group

        async def status(*more: str) -> Result:
            args = ["token", "list", "--url", f"https://localhost:{port}", *more]
            return await asyncio.to_thread(CliRunner().invoke, group({}), args)

        assert (await status("--ca-file", str(chain))).exit_code == 0
        refused = await status("--ca-file", str(tmp_path / "first.key"))
        assert refused.exit_code != 0


async def test_a_certificate_without_its_key_is_refused_at_the_start(tmp_path: Path) -> None:
    """By the names of the keys of the configuration."""
    chain, _ = certificate(tmp_path, "one")
    _, other = certificate(tmp_path, "other")
    with pytest.raises(ConfigError, match=r"console\.tls_cert_file"):
        Console(FolderView.of(tmp_path, console={"tls_cert_file": str(chain), "tls_key_file": str(other)}))
