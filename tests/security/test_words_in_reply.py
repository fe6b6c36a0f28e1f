"""What a stolen node answers when it is asked: an error of that node's, and never the end of the brain (law 15)."""

from pathlib import Path
from typing import Any, cast

import orjson
import pytest

from agent.contract.actions.spec import Disrupts, Repeat
from agent.contract.commands import Answer, Reply, decode_reply
from agent.contract.errors import ActionError, ContractError
from brain.adapters import keys, nodes
from brain.adapters.liveness import Beats
from brain.adapters.node_requests import NodeRequests
from brain.adapters.nodes import Nodes
from brain.core.effects import Step
from brain.core.inputs import StepResult
from tests.bent import bent

STEP = Step(
    id="inc-a.r1.s1.a1", run="inc-a.r1", incident="inc-a", node="n1", action="evidence.collect", where="node", params={},
    timeout_s=60.0, disrupts=Disrupts.NOTHING, repeat=Repeat.SAFE, why="a test",
)  # fmt: skip
RIGHT: dict[str, Any] = {
    "answer": "accepted", "why": "", "session": "s", "boot": "b", "mono_s": 1.0, "plan": ["collect it"],
}  # fmt: skip
DEEP = (
    b'{"answer":"accepted","why":"","session":"s","boot":"b","mono_s":1.0,"plan":['
    + b"[" * 1000
    + b"]" * 1000
    + b"]}"
)
HOSTILE = (
    DEEP,
    b"",
    b"{}",
    b"[]",
    b"null",
    b'"x"',
    b"7",
    b"\xff",
    b"[" * 100_000,
    b'{"answer":"a kind of a later version"}',
)


class Stolen:
    """The requests of a brain, all of which a stolen node answers."""

    def __init__(self, answer: bytes) -> None:
        self.answer = answer
        self.asked = 0

    async def request(self, node: str, body: bytes, timeout_s: float) -> bytes:
        """As in NodeRequests."""
        self.asked += 1
        return self.answer


class Connected:
    """A connection that stands."""

    is_closed = False


def asking(stolen: Stolen, folder: Path, monkeypatch: pytest.MonkeyPatch, within_s: float = 0.2) -> Nodes:
    """Who sends steps, with less patience."""
    monkeypatch.setattr(nodes, "RETRY_FOR_S", within_s)
    monkeypatch.setattr(nodes, "PAUSE_S", 0.01)
    signer = keys.make_first(folder / "signing.key")
    return Nodes(cast(NodeRequests, stolen), lambda: signer, Beats(), lambda _: True)


@pytest.mark.parametrize("answer", HOSTILE, ids=lambda one: one[:20].decode(errors="replace"))
async def test_a_plan_that_cannot_be_read_is_the_nodes_error(
    answer: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A step is planned on each node that is ill, also where all is only observed: it ended the brain, and the next one."""
    with pytest.raises(ActionError, match="n1: not a reply to a command"):
        await asking(Stolen(answer), tmp_path, monkeypatch).plan(STEP, 1)


@pytest.mark.parametrize("answer", HOSTILE, ids=lambda one: one[:20].decode(errors="replace"))
async def test_a_step_whose_answer_cannot_be_read_has_a_result(
    answer: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And so has its cancellation an end."""
    stolen = Stolen(answer)
    sends = asking(stolen, tmp_path, monkeypatch)
    result = await sends.perform(cast(Any, Connected()), STEP, 1)
    assert isinstance(result, StepResult)
    assert "not a reply to a command" in result.why
    await sends.cancel(cast(Any, Connected()), STEP, 1, "why")


def test_a_reply_of_any_form_is_one_or_is_none() -> None:
    """Something odd in each of its places."""
    tried = 0
    for raw in (*bent(RIGHT), orjson.loads(DEEP)):
        tried += 1
        try:
            found = decode_reply(raw)
        except ContractError:
            continue
        assert isinstance(found, Reply)
        assert isinstance(found.answer, Answer)
        assert all(isinstance(line, str) for line in found.plan)
    assert tried > 100
