"""What the command line says when the brain does not answer it: what is wrong there, and which option or variable helps."""

import ast
import http.server
import re
import socketserver
import ssl
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import click
import pytest

from agent.shared.words import speaking
from brain.cell.authority import Authority
from brain.cli.client import API, Client
from brain.cli.main import FOLDERS
from brain.console.api import table
from brain.console.api.endpoint import PREFIX
from brain.console.api.problems import PROBLEM

ROOT = Path(__file__).resolve().parents[3]


@contextmanager
def answering(
    tls: Authority | None = None,
    handler: type[http.server.BaseHTTPRequestHandler] = http.server.SimpleHTTPRequestHandler,
) -> Iterator[int]:
    """Somebody who answers on a port of loopback."""
    server = socketserver.TCPServer(("127.0.0.1", 0), handler)
    if tls is not None:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(tls.certificate_file, tls.key_file)
        server.socket = context.wrap_socket(server.socket, server_side=True)
    server.handle_error = lambda *_: None  # type: ignore[method-assign]
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield server.server_address[1]
    finally:
        server.shutdown()
        server.server_close()
        thread.join(60)


def said(url: str, ca_file: Path | None = None) -> str:
    with pytest.raises(click.ClickException) as caught:
        Client(url, None, ca_file).get("status")
    return caught.value.message


def authority(folder: Path) -> Authority:
    folder.mkdir()
    made = Authority(folder)
    made.make("default", ["brain.example"], 1_790_000_000.0)
    return made


def test_a_certificate_that_is_not_trusted(tmp_path: Path) -> None:
    """By nobody, or by another cell's authority."""
    with answering(authority(tmp_path / "one")) as port:
        text = said(f"https://127.0.0.1:{port}")
        assert "its certificate is not good" in text
        assert "--ca-file or GPUWARD_CA_FILE" in text
        assert "no brain answers" not in text
        other = authority(tmp_path / "two").ca_file
        assert f"{other} does not vouch for it" in said(f"https://127.0.0.1:{port}", other)


def test_a_certificate_that_has_expired(tmp_path: Path) -> None:
    """No authority helps, and it is not the authority that is wrong."""
    old = authority(tmp_path / "one")
    old.issue(["brain.example"], 1_700_000_000.0)
    with answering(old) as port:
        text = said(f"https://127.0.0.1:{port}", old.ca_file)
    assert "the server's certificate has expired by this machine's clock, which says 20" in text
    assert "`gpuward cell rotate server`" in text
    assert "vouch" not in text


def test_the_wrong_scheme(tmp_path: Path) -> None:
    """Plain HTTP to TLS, and the other way round."""
    with answering(authority(tmp_path / "one")) as port:
        assert "set --url or GPUWARD_URL to https://" in said(f"http://127.0.0.1:{port}")
    with answering() as port:
        assert "speaks no TLS: set --url or GPUWARD_URL to http://" in said(f"https://127.0.0.1:{port}")


def test_a_proxy_of_the_environment_is_not_asked_for_this_machine(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A site whose way out is a proxy: the brain of this machine is asked itself. Where another machine's brain is asked by way
    of it, and the proxy refuses, that is said, and how to go past it.
    """
    monkeypatch.delenv("no_proxy", raising=False)
    monkeypatch.delenv("NO_PROXY", raising=False)
    made = authority(tmp_path / "one")
    made.issue(["localhost"], time.time())
    with answering() as proxy, answering(made) as port:
        monkeypatch.setenv("https_proxy", f"http://ann:secret@127.0.0.1:{proxy}")
        for host in ("127.0.0.1", "localhost"):
            assert said(f"https://{host}:{port}", made.ca_file) == "the brain answered 404 File not found"
        text = said("https://brain.example:8470")
    assert f"by way of the proxy http://127.0.0.1:{proxy}" in text
    assert "NO_PROXY=brain.example" in text
    assert "start one" not in text
    assert "secret" not in text


def test_nobody() -> None:
    """Only then is it asked whether a brain runs."""
    assert "no brain answers at http://127.0.0.1:1" in said("http://127.0.0.1:1")


def test_why_nobody_answers_is_told_in_the_language_that_is_spoken() -> None:
    """By the sentences that the pages have; what the system says of it stays."""
    with speaking("zh", FOLDERS):
        text = said("http://127.0.0.1:1")
    assert "那里没有程序在监听（Connection refused）" in text
    assert "nothing listens" not in text


def test_the_command_line_asks_for_rows_of_the_table_only() -> None:
    """It knows the API by its paths alone, because the models would make each command slower: here they are compared."""
    methods = {"get": "GET", "fetch": "GET", "pieces": "GET", "post": "POST"}
    asked: set[tuple[str, str]] = set()
    for folder in (ROOT / "brain" / "cli", ROOT / "simulations"):
        for file in folder.rglob("*.py"):
            for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
                match node:
                    case ast.Call(
                        func=ast.Attribute(value=ast.Name(id="client" | "self"), attr=attr),
                        args=[ast.Constant(value=str()), *_],
                    ) if attr in methods:
                        parts = [one.value if isinstance(one, ast.Constant) else "{id}" for one in node.args]
                        asked.add((methods[attr], "/".join(("", *map(str, parts)))))
    rows = {(row.method, re.sub(r"\{[^}]*\}", "{id}", row.path)) for row in table.TABLE}
    assert asked <= rows
    assert asked >= {
        ("GET", "/status"),
        ("GET", "/explain/{id}"),
        ("POST", "/command"),
        ("POST", "/tokens/revoke"),
    }
    assert API == PREFIX


@pytest.mark.parametrize(
    ("status", "kind", "body", "says"),
    [
        (
            403,
            PROBLEM,
            b'{"detail": "ann: that needs \\u001b[31m", "who": "administrator"}',
            "that needs \\x1b[31m",
        ),
        (404, "application/json", b'{"error": "Not Found"}', "a brain of version 0.1"),
        (404, PROBLEM, b'{"detail": "no run 1"}', "no run 1"),
        (500, "text/plain", b"oops", "the brain answered 500"),
        (502, "application/json", b"[]", "the brain answered 502"),
        (308, "application/json", b'{"error": "x"}', "the brain answered 308"),
    ],
)
def test_what_the_brain_says_is_what_people_read(status: int, kind: str, body: bytes, says: str) -> None:
    """The detail of a problem, made inert; of an older brain, what to use instead."""

    class Answers(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(status)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            """Says nothing."""

    with answering(handler=Answers) as port:
        assert says in said(f"http://127.0.0.1:{port}")
