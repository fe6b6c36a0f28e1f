"""A brain that was taken over, with the key that a node obeys: what it sends beyond what a brain sends harms no node for longer.

What it may do while its key counts is said by the node's allow-list and its unit. Here is what it could leave behind: a node
that answers nobody, is full, or obeys nobody any more.
"""

import contextlib
import json
import math
import random
from pathlib import Path
from typing import Any

import pytest

from agent.actions import CLASSES, Actions
from agent.actions.action_setup import ActionSetup
from agent.actions.base import Resumable
from agent.commands import journal
from agent.commands.commander import BEGUN_AT_ONCE, BEGUN_PER_S, REFUSALS_EVERY_S
from agent.commands.journal import Journal
from agent.config import AgentConfig
from agent.contract.actions import ACTIONS
from agent.contract.commands import MAX_PARAM, Answer, Outcome
from agent.contract.errors import ActionError
from agent.host import Host
from agent.remembered.trusted import Trusted
from tests.agent.commander_kit import KEYS, Node, order, signed
from tests.security.figures import Record, attacked

CASES = 600
HUGE = 10**400
NUMBERS = (0, -1, 2**31, 2**63, 2**64, HUGE, -HUGE, math.nan, math.inf, -math.inf, 1e308, 5e-324)
TEXTS = (
    "", "\0", "a\0b", "../../../etc/passwd", "/etc/shadow", "-x", "--help", "x" * 60_000, "\ud800", "a\nb", "\x1b[2J",
    "$(reboot)", "; reboot", "%s%n", "node", "gpu/0000:3b:00", "port/mlx5_0.1", "port/../../x.1", "link/eth0",
    "link/../../eth0", "nic/..", "job/", "mlx5_0", "..", "nan", "\u0661", "\u00b2", "\u202e", "RTMIN", "mount//etc",
)  # fmt: skip
ODD: tuple[Any, ...] = (None, True, "", [], {}, *NUMBERS, 10**4000, *TEXTS, [[]] * 100, {"a": [1] * 100})


class LiveHost(Host):
    """A machine of its own, on which actions are performed."""

    @property
    def live(self) -> bool:
        """It says that it is ours."""
        return True


def envelope(**changes: Any) -> bytes:
    """Signed with the key that counts."""
    return signed(json.dumps(json.loads(order().payload()) | changes).encode())


async def test_whatever_its_commands_say_they_are_answered(tmp_path: Path, record_property: Record) -> None:
    """Each field of a command, with what JSON allows and no brain sends: numbers of any size, halves of characters."""
    node, rng = Node(tmp_path), random.Random(117)
    fields = list(json.loads(order().payload()))
    for number in range(CASES):
        changes = {name: rng.choice(ODD) for name in rng.sample(fields, rng.choice((1, 1, 2, 3)))}
        reply = await node.commander.handle(envelope(**({"id": f"c{number}", "plan": True} | changes)))
        assert reply.answer in Answer
        assert len(reply.why) <= 500
        node.commander.tick()
    node.restart("run-2")
    attacked(record_property, CASES)
    assert (await node.commander.handle(b'{"hello": true}')).answer is Answer.ACCEPTED


async def test_whatever_its_parameters_say_no_action_breaks(tmp_path: Path, record_property: Record) -> None:
    """Each action of a node, on a machine of its own: what is planned, put right after a crash, or gone on with at a start."""
    root = tmp_path / "root"
    (root / "proc").mkdir(parents=True)
    config = AgentConfig(
        root=root,
        data_dir=tmp_path,
        node="gpu-1",
        services=("x.service",),
        dbus_address="unix:path=/nonexistent",
    )
    actions, rng = (
        Actions(ActionSetup(host=LiveHost(root=root), config=config, peer=lambda: None)),
        random.Random(116),
    )
    node = Node(tmp_path, allow=frozenset(CLASSES))
    node.commander._actions = actions
    for _ in range(CASES):
        spec = ACTIONS[rng.choice(list(CLASSES))]
        params: dict[str, Any] = {
            one.name: rng.choice(TEXTS if one.type in ("text", "component") else NUMBERS)
            for one in spec.params
            if one.required or rng.random() < 0.6
        }
        reply = await node.commander.handle(envelope(action=spec.name, params=params, plan=True, session=""))
        assert reply.answer in Answer
        if "not a command" in reply.why or "longer than anything" in reply.why:
            continue  # it comes no further: nothing of it stands in the journal
        action = actions[spec.name]
        with contextlib.suppress(ActionError, OSError):
            await action.recover(params)
        if isinstance(action, Resumable):
            with contextlib.suppress(ActionError, OSError):
                await action.resume(params, rebooted=True)
    attacked(record_property, CASES)


async def test_what_it_sends_by_the_thousand_fills_no_disk(tmp_path: Path, record_property: Record) -> None:
    """Each accepted command is written down before it begins, with its parameters. 60 KB of one, a thousand times a second,
    filled the disk, and then the memory of each agent that read the file at its start.
    """
    node = Node(tmp_path)
    sent = 3 * BEGUN_AT_ONCE
    for number in range(sent):
        params = {"component": "x" * (60_000 if number % 2 else MAX_PARAM)}
        await node.commander.handle(envelope(id=f"c{number}", params=params))
        await node.settled()
    assert node.action.runs == BEGUN_AT_ONCE
    attacked(record_property, sent, refused=sent - BEGUN_AT_ONCE)
    assert node.path.stat().st_size < BEGUN_AT_ONCE * 5 * MAX_PARAM
    node.clock.mono_s += 5 / BEGUN_PER_S
    answers = [(await node.commander.handle(envelope(id=f"d{number}"))).answer for number in range(6)]
    assert answers == [Answer.ACCEPTED] * 5 + [Answer.REFUSED], "at its pace it is obeyed again"


async def test_refusals_fill_no_log(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """One line in ten seconds says what was refused last, and how many others."""
    node = Node(tmp_path)
    for _ in range(500):
        await node.commander.handle(b"nonsense")
    node.clock.mono_s += REFUSALS_EVERY_S
    node.commander.tick()
    lines = [one.getMessage() for one in caplog.records if "refused" in one.getMessage()]
    assert len(lines) == 2
    assert "(499 of them)" in lines[1]


def test_the_journal_keeps_its_size_while_the_agent_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It was rewritten at a start only; what runs is never forgotten."""
    monkeypatch.setattr(journal, "MAX_IDS", 20)
    kept = Journal(tmp_path / "journal.jsonl")
    kept.accept(order(id="runs"), "boot-1", "run-1")
    for number in range(200):
        kept.accept(order(id=f"c{number}"), "boot-1", "run-1")
        kept.finish(f"c{number}", journal.Result(outcome=Outcome.OK, why=""))
        assert len(kept._path.read_bytes().splitlines()) < 4 * 2 * 20 + 10
    for one in (kept, Journal(kept._path)):
        assert "runs" in one or one is not kept
        assert "c199" in one
        assert "c0" not in one


async def test_an_epoch_that_no_leader_reaches_ends_with_the_keys(tmp_path: Path) -> None:
    """Whoever had a stolen key named an epoch of 10**18, and the node refused its own cell for ever, as `not the leader`:
    also after its people had revoked the key and joined it again. With the same keys an older leader counts as little as before.
    """

    def trusted(**keys: bytes) -> Trusted:
        return Trusted(tmp_path / "none.json", cell="default", serial=0, keys=keys, ca="")

    stolen, new = trusted(**KEYS), trusted(brain=b"\x03" * 32)
    path = tmp_path / "journal.jsonl"
    of_stolen = Journal(path, stolen.configured)
    of_stolen.raise_epoch(10**18)
    of_stolen.accept(order(id="old", epoch=10**18), "boot-1", "run-1")
    assert Journal(path, stolen.configured).epoch == 10**18
    for _ in range(2):
        again = Journal(path, new.configured)
        assert (again.epoch, "old" in again) == (0, True), "what was accepted does not run twice for that"
    again.raise_epoch(7)
    assert Journal(path, new.configured).epoch == 7
