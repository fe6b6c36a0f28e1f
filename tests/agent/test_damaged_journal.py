"""A journal of commands that the disk gives back otherwise than it was written: no command runs twice, the agent starts, and says
so (laws 4 and 12).
"""

import json
import random
from collections.abc import Callable
from pathlib import Path

import pytest

from agent.commands import commander
from agent.commands.journal import Journal
from agent.contract.commands import Answer, Outcome
from tests.agent.commander_kit import Node, Rehearsal, order, signed
from tests.releases.kit import install, versions

IDS = ("inc-1.r1.s1.a1", "inc-1.r1.s2.a1", "inc-2.r1.s1.a1")


class Reset(Rehearsal):
    """What must not be done twice."""

    name = "gpu.reset"


PARAMS = {"gpu": "0000:3b:00.0"}


async def say(node: Node, id_: str, session: str) -> Answer:
    """The brain sends a command to this run of the agent."""
    now_s = node.clock.mono_s
    command = order(
        id=id_, action="gpu.reset", params=PARAMS, session=session, not_after_s=now_s + 10, epoch=7
    )
    return (await node.commander.handle(signed(command.payload()))).answer


def fresh(folder: Path) -> Node:
    """A node that may reset its GPUs."""
    folder.mkdir(exist_ok=True)
    return Node(folder, frozenset({"gpu.reset"}), Reset())


async def lived(folder: Path) -> bytes:
    """The journal of an agent that was killed: two commands have ended, of which one was told, and one was under way."""
    node = fresh(folder)
    for id_ in IDS[:2]:
        assert await say(node, id_, "run-1") is Answer.ACCEPTED
        await node.settled()
    node.action.go.clear()
    assert await say(node, IDS[2], "run-1") is Answer.ACCEPTED
    for task in [run.task for run in node.commander.runner.running.values() if run.task]:
        task.cancel()
    return (folder / "journal.jsonl").read_bytes()


async def again(folder: Path, content: bytes) -> tuple[Node, int]:
    """An agent that finds this journal, and to which the brain sends the same commands again; how often it obeyed."""
    (folder / "journal.jsonl").write_bytes(content)
    node = fresh(folder)
    await node.commander.recover()
    for id_ in IDS:
        await say(node, id_, "run-1")
        await node.settled()
    return node, node.action.runs


def flipped(content: bytes, at: int, chance: random.Random) -> bytes:
    """One bit of this byte is another one."""
    return content[:at] + bytes([content[at] ^ 1 << chance.randrange(8)]) + content[at + 1 :]


async def test_no_bit_lets_a_command_run_twice(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """However late the brain sends it again. No bit makes the node refuse its leader, or says that what failed has helped."""
    whole, path, chance = await lived(tmp_path), tmp_path / "journal.jsonl", random.Random(7)
    monkeypatch.setattr("os.fsync", lambda _: None)  # thousands of them; nothing is lost here but by us
    said = 0
    for at in range(len(whole)):
        path.write_bytes(content := flipped(whole, at, chance))
        journal = Journal(path)
        assert all(id_ in journal for id_ in IDS), content
        assert journal.epoch == 7
        ends = {entry.result.outcome for id_ in IDS[:2] if (entry := journal[id_]).result is not None}
        assert ends <= {Outcome.OK, Outcome.UNKNOWN}
        said += bool(journal.trouble)
    assert said >= len(whole) - 1, "of all but its last end of a line"


async def test_the_agent_obeys_on_after_a_damaged_bit(tmp_path: Path) -> None:
    """What it did it does not do again, and what is new it does, after a while at the latest."""
    whole, chance = await lived(tmp_path), random.Random(3)
    for at in chance.sample(range(len(whole)), 30):
        node, runs = await again(tmp_path, content := flipped(whole, at, chance))
        assert runs == 0
        node.clock.mono_s += commander.DOUBT_S
        for id_ in IDS:
            assert await say(node, id_, "run-1") is Answer.KNOWN, content
        assert await say(node, "inc-9.r1.s1.a1", "run-1") is Answer.ACCEPTED
        await node.settled()
        assert node.action.runs == 1


DAMAGES: dict[str, Callable[[bytes, random.Random], bytes]] = {
    "a page of zeros": lambda body, chance: (
        body[: (at := chance.randrange(len(body)))] + bytes(512) + body[at + 512 :]
    ),
    "all zeros": lambda body, _: bytes(len(body)),
    "empty": lambda _body, _: b"",
    "noise": lambda body, chance: chance.randbytes(len(body)),
    "a line twice": lambda body, chance: b"".join(
        line * (1 + (number == at))
        for at in [chance.randrange(body.count(b"\n"))]
        for number, line in enumerate(body.splitlines(keepends=True))
    ),
    "in another order": lambda body, chance: b"".join(
        chance.sample(lines := body.splitlines(keepends=True), len(lines))
    ),
    "empty lines": lambda body, _: body.replace(b"\n", b"\n\n \n"),
    "two lines are removed": lambda body, chance: b"".join(
        b"" if number in (at, at + 1) else line
        for at in [chance.randrange(body.count(b"\n") - 2)]
        for number, line in enumerate(body.splitlines(keepends=True))
    ),
    "two lines are lost": lambda body, chance: b"".join(
        b"#" * (len(line) - 1) + b"\n" if number in (at, at + 1) else line
        for at in [chance.randrange(body.count(b"\n"))]
        for number, line in enumerate(body.splitlines(keepends=True))
    ),
}


@pytest.mark.parametrize("what", DAMAGES)
async def test_whatever_is_lost_nothing_runs_twice_while_the_brain_asks_again(
    tmp_path: Path, what: str
) -> None:
    """Where a command may be lost, nothing that is not safe to repeat is begun for as long as it may be sent again."""
    whole, chance = await lived(tmp_path), random.Random(11)
    for _ in range(15):
        node, runs = await again(tmp_path, DAMAGES[what](whole, chance))
        assert runs == 0
        if what not in ("a line twice", "in another order", "empty lines"):
            assert node.journal.trouble
        node.clock.mono_s += commander.DOUBT_S
        assert await say(node, "inc-9.r1.s1.a1", "run-1") is Answer.ACCEPTED, "and then it works"
        await node.settled()


async def test_what_may_be_lost_is_refused_with_the_reason(tmp_path: Path) -> None:
    """A look is safe to repeat, and is not refused."""
    whole = await lived(tmp_path)
    (tmp_path / "journal.jsonl").write_bytes(bytes(len(whole)))
    node = fresh(tmp_path)
    command = order(id=IDS[0], action="gpu.reset", params=PARAMS)
    reply = await node.commander.handle(signed(command.payload()))
    assert (reply.answer, "journal of commands was damaged" in reply.why) == (Answer.REFUSED, True)


@pytest.mark.parametrize("version", versions())
async def test_the_lines_of_a_released_agent_that_are_damaged(tmp_path: Path, version: str) -> None:
    """They have no checksum: what can no longer be read is told, and nothing is begun for a while."""
    install(version, tmp_path)
    lines = [json.loads(line) for line in (await lived(tmp_path)).splitlines()]
    old = b"".join(
        json.dumps(
            {key: value for key, value in line.items() if key not in ("crc", "n")}, separators=(",", ":")
        ).encode()
        + b"\n"
        for line in lines
        if "id" not in line
    )
    node, runs = await again(tmp_path, old)
    assert (runs, node.journal.trouble) == (0, "")
    for at in (old.index(b"accepted"), old.rindex(b"accepted")):
        node, runs = await again(tmp_path, old[:at] + b"#" + old[at + 1 :])
        assert runs == 0
        assert node.journal.trouble
