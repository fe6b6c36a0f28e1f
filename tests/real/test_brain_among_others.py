"""A brain beside others on real NATS: a standby, a second brain, two agents of one name; and rules that change meanwhile."""

import asyncio
import json
import shutil
import time
from pathlib import Path
from typing import Any

import nats
import pytest

from brain import renamed
from tests.real.brain_kit import Lab, Node, lab
from tests.real.nats import nats_server
from tests.real.test_brain import AUTO, gpu_lost

pytestmark = pytest.mark.component("nats-server")


async def test_rules_are_exchanged_while_it_runs_and_bad_ones_are_refused(tmp_path: Path) -> None:
    """The errors are noted with file and line; the rules in force stay."""
    root = Path(__file__).parents[2]
    for name in ("rules", "runbooks"):
        shutil.copytree(root / name, tmp_path / name, ignore=shutil.ignore_patterns("__pycache__", "*.py"))
    async with lab(tmp_path, rules="rules", runbooks="runbooks") as whole:
        first = (await whole.get("/api/v1/status"))["pack"]
        file = next(
            path for path in sorted((tmp_path / "rules").glob("*.yaml")) if "\nrules:" in path.read_text()
        )
        good = file.read_text()
        file.write_text(good.replace("\nrules:", "\nruels:"))
        watched = await asyncio.to_thread(lambda: _first_note(whole, "pack.refused"))
        assert file.name in watched
        assert (await whole.get("/api/v1/status"))["pack"] == first
        file.write_text(good.replace("because: ", "because: truly, ", 1))
        await whole.until(
            lambda found: found["pack"] != first and found["rules"], "the new rules are in force"
        )


async def test_the_operator_is_told_of_old_names_in_the_rules_that_the_brain_loads(tmp_path: Path) -> None:
    """They are in force all the same; each note names file, line, the old name and the new one."""
    root = Path(__file__).parents[2]
    for name in ("rules", "runbooks"):
        shutil.copytree(root / name, tmp_path / name, ignore=shutil.ignore_patterns("__pycache__", "*.py"))
    async with lab(tmp_path, rules="rules", runbooks="runbooks") as whole:
        today = (await whole.get("/api/v1/status"))["pack"]
        file = tmp_path / "rules" / "bond.yaml"
        text = file.read_text()
        file.write_text(text.replace("resolve_delay_s:", "quiet_s:", 1))
        line = 1 + file.read_text().partition("quiet_s:")[0].count("\n")
        note = await asyncio.to_thread(lambda: _first_note(whole, "pack.warning"))
        assert note.startswith(f"rules/bond.yaml:{line}: rules.")
        assert note.endswith(
            f".quiet_s: is called resolve_delay_s now: the old name is read until version {renamed.UNTIL}"
        )
        status = await whole.get("/api/v1/status")
        assert status["pack"] == today, "another word for the same rules"


def _first_note(whole: Lab, kind: str) -> str:
    """The text of the next note of a kind, from the live feed."""
    from brain.cli.client import Client

    assert whole.running is not None
    for _, note in Client(whole.running.console_url).watch(50):
        if note is not None and note["kind"] == kind:
            return str(note["text"])
    raise AssertionError("the feed ended")


async def test_a_standby_decides_the_same_and_a_silent_node_is_noticed(tmp_path: Path) -> None:
    """Two brains on one NATS: one leads, the other reads along and decides the same, ids included.

    That it acts when the leader is killed is told end to end (tests/e2e/test_spine.py).
    """
    async with lab(tmp_path, unreachable_after_s=2) as first:
        assert first.running is not None
        assert first.running.server is not None
        nats = {"url": first.running.nats_url, "seed_file": str(first.running.server.brain_seed_file)}
        key = {"signing_key_file": str(first.config.signing_key)}
        second = Lab(tmp_path / "second", {"nats": nats, "unreachable_after_s": 2, "brain": "b2"} | key)
        node = await first.node("n1")
        await node.event("agent.started", version="1")
        await second.start(leads=False)
        status = await second.until(lambda found: found["caught_up"] and found["seq"] >= 3, "it has read all")
        assert not status["leads"]
        await gpu_lost(second, node)
        for whole in (first, second):
            await whole.until(
                lambda found: any(one["cause"] == "gpu-lost" for one in found["incidents"]),
                "it decides",
                "/api/v1/incidents?all=1",
            )
        (incident,), (same,) = [await whole.incidents("gpu-lost") for whole in (first, second)]
        assert incident["id"] == same["id"], "both decide the same"
        await first.until(
            lambda found: found["nodes_unreachable"] == 1, "a node that never beats is unreachable"
        )
        await second.until(
            lambda found: found["nodes_silent"] == found["nodes_unreachable"] == 1, "and the standby knows it"
        )
        code, _ = await first.say("hold", scope="all", why="x")
        assert code == 200
        await second.until(lambda found: found["holds"], "what is said to one is heard by both")
        await second.stop()


async def test_two_agents_under_one_name_are_an_incident(tmp_path: Path) -> None:
    """Their beats come in turn; what one of them told before ends with no start of the other."""
    async with lab(tmp_path) as whole:
        node = await whole.node("n1")
        clock: dict[str, Any] = {"synchronised": False, "offset_s": 0.0, "max_error_s": 16.0}
        await node.event("node.clock", well=False, **clock)
        for number in range(6):
            node.session = f"session-{number % 2}"
            await node.beat()
            await node.event("agent.started", version="1", kernel="6.1", gpus=0, booted=False)
        found = await whole.until(
            lambda answer: any(one["cause"] == "two-agents" for one in answer["incidents"]),
            "people hear of it",
            "/api/v1/incidents",
        )
        assert "session-0, session-1" in json.dumps(found)
        assert {one["cause"] for one in found["incidents"]} == {"two-agents", "clock-off"}


async def test_a_second_brain_with_the_same_signing_key_is_obeyed(tmp_path: Path) -> None:
    """docs/operations.md: the leader stops, the other leads, and nodes that trust the one key take its commands."""
    with nats_server(tmp_path / "nats", nodes=["n1"]) as server:
        more: dict[str, Any] = {"nats": {"url": server.url}, "modes": AUTO, "settings": {"hold_off_s": 0}}
        first = Lab(tmp_path / "first", more)
        await first.start()
        assert first.running is not None
        second = Lab(
            tmp_path / "second", more | {"brain": "b2", "signing_key_file": str(first.config.signing_key)}
        )
        await second.start(leads=False)
        trusted = first.running.signer.key.verify_key
        client = await nats.connect(server.node_url("n1"))
        node = Node("n1", client, trusted)
        await node.listen()
        await first.stop()
        await second.until(lambda status: status["leads"] and status["pack"], "the other leads")
        await node.event("link.state", "link/eth1", up=False, admin_up=True, carrier=False, operstate="down")
        deadline = time.monotonic() + 60
        while not node.commands:
            assert time.monotonic() < deadline, "no command that the node trusts"
            await node.beat()
            await asyncio.sleep(0.1)
        assert node.commands[0].action == "link.bounce"
        await client.close()
        await second.stop()
