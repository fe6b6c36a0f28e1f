"""Whoever has no credential floods the one door that is open to everybody, the one by which nodes join."""

import asyncio
import fcntl
import json
import os
import time
from pathlib import Path

import pytest

from brain.cell.registry import CellRegistry
from brain.console.access import door, refusals
from brain.console.access.addresses import counted
from tests.real.brain_kit import lab
from tests.security.asker import ask_without_end, gaps
from tests.security.figures import Record, attacked
from tests.security.test_connections import public
from tests.security.test_door import ask, console

FOR_S = 8.0
WRONG = {"id": "abc", "secret": "x", "node": "evil"}


@pytest.mark.component("nats-server")
async def test_strangers_who_join_without_end_cost_no_lease_and_no_notes(
    tmp_path: Path, record_property: Record
) -> None:
    """From 400 addresses: the leader stays, a node with a token joins as ever, and the notes hold one of it."""
    async with lab(tmp_path) as whole:
        assert whole.running is not None
        whole.config.cell_dir.mkdir(parents=True, exist_ok=True)
        registry = CellRegistry(whole.config.registry_file)
        id_, secret = registry.make_token("good-*", count=100, now=time.time(), lasts_s=3600)
        url = whole.running.console_url
        node = await whole.node("n1")
        epoch = (await whole.get("/api/v1/status"))["epoch"]
        body = json.dumps(WRONG | {"public": public()})
        async with gaps() as found:
            port = int(url.rpartition(":")[2])
            flood = asyncio.create_task(ask_without_end(port, "/api/join", 400, FOR_S, body=body))
            number = 0
            while not flood.done():
                number += 1
                await asyncio.wait_for(node.event("agent.started", version="1"), 10)
                given = {"id": id_, "secret": secret, "node": f"good-{number}", "public": public()}
                assert (await ask(url, "/api/join", given))[0] == 200
                assert (await whole.get("/api/v1/status"))["epoch"] == epoch, "the leader has lost its lease"
                await asyncio.sleep(1)
        answers = flood.result()
        assert set(answers) <= {"403", "429", "closed"}
        assert answers["429"] > answers["403"]
        assert found.longest_s < 1, answers
        async with whole._session.get("/metrics") as answer:  # type: ignore[union-attr]
            text = await answer.text()
        lines = [line for line in text.splitlines() if 'gpuward_notes_total{kind="access.refused"}' in line]
        assert [line.rpartition(" ")[2] for line in lines] == ["1.0"]
        attacked(record_property, sum(answers.values()))


async def test_a_token_that_nobody_made_waits_for_no_lock(tmp_path: Path) -> None:
    """It is refused at once, also while somebody changes the registry; past a pace of all together nobody is told why."""
    async with console(tmp_path) as (url, view):
        file = view.config.registry_file
        file.parent.mkdir(parents=True, exist_ok=True)
        id_, _ = CellRegistry(file).make_token("n*", count=1, now=time.time(), lasts_s=3600)
        lock = os.open(f"{file}.lock", os.O_RDWR | os.O_CREAT)
        fcntl.flock(lock, fcntl.LOCK_EX)
        for wrong in (WRONG, WRONG | {"id": id_}):
            async with asyncio.timeout(5):
                status, answer = await ask(url, "/api/join", wrong | {"public": public()})
            assert (status, "is wrong or was revoked" in answer["error"]) == (403, True)
        os.close(lock)
        assert [kind for kind, _ in view.notes] == ["access.refused"]


async def test_all_strangers_share_one_pace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever shows a token that was made is not held up by it."""
    monkeypatch.setattr(door, "WRONG_JOINS_AT_ONCE", 3)
    monkeypatch.setattr(door, "WRONG_JOINS_PER_S", 0.001)
    async with console(tmp_path) as (url, view):
        body = WRONG | {"public": public()}
        answers = [(await ask(url, "/api/join", body))[0] for _ in range(5)]
        assert answers == [403] * 3 + [429] * 2
        file = view.config.registry_file
        file.parent.mkdir(parents=True, exist_ok=True)
        id_, secret = CellRegistry(file).make_token("n*", count=1, now=time.time(), lasts_s=3600)
        status, answer = await ask(url, "/api/join", body | {"id": id_, "secret": secret})
        assert (status, "is for nodes 'n*'" in answer["error"]) == (403, True)


async def test_a_key_whose_public_half_is_gone_is_named(tmp_path: Path) -> None:
    """Whoever joins is told which file it is, and comes again; the brain has no error of its own."""
    async with console(tmp_path) as (url, view):
        file = view.config.registry_file
        file.parent.mkdir(parents=True, exist_ok=True)
        id_, secret = CellRegistry(file).make_token("n*", count=1, now=time.time(), lasts_s=3600)
        given = {"id": id_, "secret": secret, "node": "n1", "public": public()}
        status, answer = await ask(url, "/api/join", given)
        assert (status, f"{view.config.signing_key.name}.pub" in answer["error"]) == (503, True)


def test_refusals_are_noted_now_and_then_with_their_number() -> None:
    """One in a minute of each, few of all together, and the next note says how many were left out."""
    notes: list[str] = []
    now = 0.0
    told = refusals.Refusals(lambda _, text: notes.append(text), lambda: now)
    for _ in range(500):
        told.tell("access.refused", "a", "a is refused")
    assert notes == ["a is refused"]
    now = 61.0
    told.tell("access.refused", "a", "a is refused")
    assert notes[1:] == ["a is refused (and 499 times more since the last note)"]
    for number in range(5000):
        told.tell("access.refused", f"b{number}", "b is refused")
    assert len(notes) <= 2 + refusals.NOTES_AT_ONCE
    left_out = 5002 - len(notes)
    now = 122.0
    told.tell("access.refused", "c", "c is refused")
    assert notes[-1] == f"c is refused; {left_out} refusals of others were not noted"


@pytest.mark.parametrize(
    ("address", "stands_for"),
    [
        ("198.51.100.7", "198.51.100.7"),
        ("::ffff:198.51.100.7", "198.51.100.7"),
        ("2001:db8:1:2:3:4:5:6", "2001:db8:1:2::/64"),
        ("2001:db8:1:2:ffff::1", "2001:db8:1:2::/64"),
        ("fe80::1%eth0", "fe80::/64"),
        ("::1", "::1"),
        ("", ""),
    ],
)
def test_an_ipv6_network_counts_as_one_address(address: str, stands_for: str) -> None:
    """Everybody has 2**64 of them."""
    assert counted(address) == stands_for
