"""Words that need two persons, the first two of a cell, and people who may say less than all."""

import asyncio
import json
import subprocess
import sys
from functools import partial
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from agent.contract.errors import ConfigError
from brain.console.access.tokens import Tokens
from brain.console.server import Console
from tests import people
from tests.real.brain_kit import lab
from tests.security.test_door import ANN, ask, shown
from tests.security.view import FolderView

pytestmark = pytest.mark.component("nats-server")


async def test_two_persons(tmp_path: Path) -> None:
    """The chosen word counts when somebody else says the same; twice the same person is one; a revoked first is none."""
    users = {name: {"role": "administrator"} for name in ("ann", "bob")}
    rule = {"port": 0, "users": users, "two_persons": ["mode auto"]}
    async with lab(tmp_path, console=rule) as whole:
        assert whole.running is not None
        url, data = whole.running.console_url, whole.config.data_dir
        ann, bob = shown(whole.ann), shown(people.token_file(data, "bob"))
        again = shown(people.token_file(data, "ann"))
        auto = {"verb": "mode", "args": {"runbook": "*", "mode": "auto"}}
        for who in (ann, again):
            status, answer = await ask(url, "/api/v1/command", auto, Authorization=who)
            assert (status, bool(answer["waiting"])) == (202, True)
        assert [one["who"] for one in (await whole.get("/api/v1/status"))["proposals"]] == ["ann"]
        narrower = {"verb": "mode", "args": {"runbook": "*", "mode": "auto", "nodes": "n*"}}
        assert (await ask(url, "/api/v1/command", narrower, Authorization=bob))[0] == 202, "another word"
        status, answer = await ask(url, "/api/v1/command", auto, Authorization=bob)
        assert (status, answer["by"]) == (200, "ann and bob")
        stop = {"verb": "mode", "args": {"runbook": "*", "mode": "observe"}}
        assert (await ask(url, "/api/v1/command", stop, Authorization=bob))[0] == 200, "not chosen"
        status, answer = await ask(url, "/api/v1/tokens", {"user": "bob"}, Authorization=ann)
        assert (status, "token" in answer) == (202, False), "nobody makes the second person"
        assert (await ask(url, "/api/v1/command", auto, Authorization=again))[0] == 202
        tokens = Tokens(data / "tokens.json")
        tokens.revoke({one.id for one in tokens.all() if one.user == "ann"})
        assert (await ask(url, "/api/v1/command", auto, Authorization=bob))[0] == 202, (
            "ann is nobody any more"
        )
    with pytest.raises(ConfigError, match="no command 'modes'"):
        Console(FolderView.of(tmp_path, console={"two_persons": ["modes"]}))


async def test_the_first_word_of_a_browser_ends_with_its_login(tmp_path: Path) -> None:
    """Also where everybody reads without a credential, and long after the connection on which it was said is gone."""
    users = {name: {"role": "administrator"} for name in ("ann", "bob")}
    rule = {"port": 0, "users": users, "two_persons": ["mode auto"]}
    auto = {"verb": "mode", "args": {"runbook": "*", "mode": "auto"}}
    async with lab(tmp_path, console=rule) as whole:
        assert whole.running is not None
        url, data = whole.running.console_url, whole.config.data_dir
        bob = shown(people.token_file(data, "bob"))

        async def first(browser: aiohttp.ClientSession, said: dict[str, Any]) -> None:
            ann = {"Origin": url, "Authorization": shown(whole.ann)}
            async with browser.post(f"{url}/login/session", json={}, headers=ann) as answer:
                assert answer.status == 200
            async with browser.post(f"{url}/api/v1/command", json=said, headers={"Origin": url}) as answer:
                assert answer.status == 202

        async with aiohttp.ClientSession(cookie_jar=aiohttp.CookieJar(unsafe=True)) as browser:
            await first(browser, auto)
            async with browser.post(f"{url}/logout", json={}, headers={"Origin": url}) as answer:
                assert answer.status == 200
        assert (await ask(url, "/api/v1/command", auto, Authorization=bob))[0] == 202, "ann has logged out"
        browser = aiohttp.ClientSession(cookie_jar=aiohttp.CookieJar(unsafe=True))
        narrower = {"verb": "mode", "args": {"runbook": "*", "mode": "auto", "nodes": "n*"}}
        await first(browser, narrower)
        await browser.close()
        status, answer = await ask(url, "/api/v1/command", narrower, Authorization=bob)
        assert (status, answer["by"]) == (200, "ann and bob"), "the login goes on, its connection need not"


async def test_whoever_started_the_brain_lets_the_first_two_in(tmp_path: Path) -> None:
    """Nobody could agree: so the starter makes tokens alone, says so, and no more when two administrators have theirs."""
    users = {name: {"role": "administrator"} for name in ("ann", "bob", "cid")} | {
        "eve": {"role": "operator"}
    }
    rule = {"port": 0, "users": users, "two_persons": ["mode auto"]}
    async with lab(tmp_path, console=rule) as whole:
        assert whole.running is not None
        url, data = whole.running.console_url, whole.config.data_dir
        (data / "tokens.json").unlink()
        starter = shown(next(data.glob("console-*.token")))

        async def made(user: str, who: str) -> tuple[int, str]:
            status, answer = await ask(url, "/api/v1/tokens", {"user": user}, Authorization=who)
            return status, str(answer.get("said", ""))

        assert await made("eve", starter) == (
            200,
            "no second person was asked: nobody has the token of an administrator yet; from two on, a second one must agree",
        )
        status, answer = await ask(url, "/api/v1/tokens", {"user": "ann"}, Authorization=starter)
        assert status == 200
        ann = f"Bearer {answer['token']}"
        assert (await made("bob", ann))[0] == 202, "she alone is no starter"
        assert "only ann has" in (await made("bob", starter))[1]
        assert (await made("cid", starter))[0] == 202, "two could agree now"
        status, answer = await ask(url, "/api/v1/tokens", {"user": "cid"}, Authorization=ann)
        assert (status, answer["made_by"].endswith(" and ann")) == (200, True)
        command = {"verb": "mode", "args": {"runbook": "*", "mode": "auto"}}
        await ask(url, "/api/v1/command", command, Authorization=ann)
        status, answer = await ask(url, "/api/v1/command", command, Authorization=starter)
        assert answer["notes"][0]["text"].startswith("ann and ")
        assert " set * to auto" in answer["notes"][0]["text"]
        file = tmp_path / "ann.token"
        file.write_text(ann.removeprefix("Bearer "))
        for words in (("mode", "*", "auto"), ("token", "create", "bob")):
            argv = [Path(sys.executable).parent / "gpuward", "--url", url, "--token-file", file, *words]
            run = partial(subprocess.run, argv, capture_output=True, text=True, check=False)
            done = await asyncio.to_thread(run)
            assert (done.returncode, "another person" in done.stdout) == (3, True), done


async def test_limits_to_scopes_and_runbooks(tmp_path: Path) -> None:
    """Somebody for rack r7 holds its nodes, and neither others, nor all, nor by a pattern that is wider than their own."""
    (tmp_path / "t.yaml").write_text(json.dumps({"n1": {"rack": "r7"}, "n2": {"rack": "r8"}}))
    limited = {"role": "administrator", "scopes": ["rack/r7"], "runbooks": ["restart-*"]}
    users = ANN | {"bob": limited}
    async with lab(tmp_path, console={"port": 0, "users": users}, topology="t.yaml") as whole:
        assert whole.running is not None
        url = whole.running.console_url
        bob = shown(people.token_file(whole.config.data_dir, "bob"))
        table: list[tuple[str, dict[str, Any], bool]] = [
            ("hold", {"scope": "node/n1", "why": "x"}, True),
            ("hold", {"scope": "gpu/n1/0000:3b:00", "why": "x"}, True),
            ("hold", {"scope": "rack/r7", "why": "x"}, True),
            ("hold", {"scope": "node/n2", "why": "x"}, False),
            ("hold", {"scope": "all", "why": "x"}, False),
            ("hold", {"scope": "cell", "why": "x"}, False),
            ("return", {"node": "n2"}, False),
            ("mode", {"runbook": "restart-service", "mode": "auto", "nodes": "n1"}, True),
            ("mode", {"runbook": "restart-*", "mode": "auto", "nodes": "n1"}, True),
            ("mode", {"runbook": "*", "mode": "auto", "nodes": "n1"}, False),
            ("mode", {"runbook": "?estart-service", "mode": "auto", "nodes": "n1"}, False),
            ("mode", {"runbook": "restart-service", "mode": "auto", "nodes": "n*"}, False),
            ("mode", {"runbook": "restart-service", "mode": "auto"}, False),
            ("mode", {"runbook": "restart-service", "mode": "auto", "nodes": ""}, False),
            ("start", {"runbook": "accept-node", "node": "n1"}, False),
            ("ack", {"id": "inc-unknown"}, False),
            ("reset", {}, False),
        ]
        for verb, args, allowed in table:
            status, answer = await ask(
                url, "/api/v1/command", {"verb": verb, "args": args}, Authorization=bob
            )
            assert (status != 403) == allowed, (verb, args, answer)
