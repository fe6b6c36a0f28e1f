"""A command is signed while its intent is on the way to the log; what it says, and who may send it, is as it was (laws 2, 4)."""

from pathlib import Path
from typing import Any, cast

import orjson
import pytest

from agent.contract.actions.spec import Disrupts, Repeat
from agent.contract.messages import Beat, encode_beat
from brain.adapters import keys
from brain.adapters.announcer import Announcer
from brain.adapters.liveness import Beats
from brain.adapters.node_requests import NodeRequests
from brain.adapters.nodes import BEGIN_S, PREPARED_S, Nodes
from brain.core.effects import Step

NODE = "n1"
ACCEPTED = {"answer": "accepted", "why": "", "session": "s1", "boot": "b", "mono_s": 1.0, "plan": []}


def step(number: int = 1, why: str = "a test") -> Step:
    """One of a run."""
    return Step(
        id=f"inc-a.r1.s{number}.a1", run="inc-a.r1", incident="inc-a", node=NODE, action="evidence.collect", where="node",
        params={}, timeout_s=60.0, disrupts=Disrupts.NOTHING, repeat=Repeat.SAFE, why=why,
    )  # fmt: skip


class Connected:
    """A connection that stands."""

    is_closed = False


class Unannounced:
    """Says which nodes lack a key, and keeps who was told."""

    def __init__(self) -> None:
        self.lacking: set[str] = set()
        self.told: list[str] = []

    def lacks(self, node: str) -> bool:
        """As in Announcer."""
        return node in self.lacking

    async def tell(self, node: str) -> None:
        """As in Announcer."""
        self.told.append(node)


class Site:
    """One node that accepts everything, and the keys with which commands for it were signed."""

    def __init__(self, folder: Path) -> None:
        self.now = 100.0
        self.leads = True
        self.sent: list[dict[str, Any]] = []
        self.signers = iter([keys.make_first(folder / name) for name in ("a.key", "b.key")])
        self.signer = next(self.signers)
        self.signed = 0
        self.beats = Beats(clock=lambda: self.now)
        self.beat("s1", 1.0)
        self.announcer = Unannounced()
        self.nodes = Nodes(
            cast(NodeRequests, self),
            self._current,
            self.beats,
            lambda _: self.leads,
            clock=lambda: self.now,
            announcer=cast(Announcer, self.announcer),
        )

    def beat(self, session: str, mono_s: float) -> None:
        """The node is heard."""
        beat = Beat(
            node=NODE, session=session, boot="b", mono_s=mono_s, version="0.2.0", spooled=0, dropped=0
        )
        assert self.beats.take(NODE, orjson.dumps(encode_beat(beat)))

    def _current(self) -> keys.Signer:
        self.signed += 1
        return self.signer

    async def request(self, node: str, body: bytes, timeout_s: float) -> bytes:
        """As in NodeRequests."""
        self.sent.append(orjson.loads(body))
        return orjson.dumps(ACCEPTED)

    async def perform(self, one: Step, epoch: int = 1) -> dict[str, Any]:
        """The command that it sends."""
        before = len(self.sent)
        assert await self.nodes.perform(cast(Any, Connected()), one, epoch) is None
        (message,) = self.sent[before:]
        return message | {"payload": orjson.loads(message["payload"])}


@pytest.fixture
def site(tmp_path: Path) -> Site:
    """A new one."""
    return Site(tmp_path)


async def test_what_was_prepared_is_what_is_sent(site: Site) -> None:
    """Signed once, with the deadline by the node's clock; nothing is sent before it is performed."""
    site.nodes.prepare(step(), 1)
    assert (site.sent, site.signed) == ([], 1)
    site.now += 0.01
    message = await site.perform(step())
    assert (site.signed, site.announcer.told) == (1, [])
    payload = message["payload"]
    assert (payload["id"], payload["epoch"], payload["session"]) == (step().id, 1, "s1")
    assert payload["not_after_s"] == pytest.approx(1.0 + BEGIN_S)
    again = await site.perform(step())
    assert (again["payload"]["id"], site.signed) == (step().id, 2), "the same one later is signed anew"


@pytest.mark.parametrize(
    ("what", "meanwhile", "expected"),
    [
        ("a key was exchanged long ago", lambda site: setattr(site, "now", site.now + PREPARED_S + 0.01), {}),
        ("the agent has restarted", lambda site: site.beat("s2", 0.5), {"session": "s2"}),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
async def test_what_does_not_hold_any_more_is_signed_anew(
    site: Site, what: str, meanwhile: Any, expected: dict[str, Any]
) -> None:
    """With the key of that moment."""
    site.nodes.prepare(step(), 1)
    meanwhile(site)
    site.signer = next(site.signers)
    message = await site.perform(step())
    assert message["key"] == site.signer.key_id, what
    assert site.signed == 2, what
    assert message["payload"] | expected == message["payload"]


async def test_another_epoch_and_another_step_are_signed_anew(site: Site) -> None:
    """The log decides what is performed: not what was expected."""
    site.nodes.prepare(step(), 1)
    assert (await site.perform(step(), epoch=2))["payload"]["epoch"] == 2
    site.nodes.prepare(step(), 2)
    assert (await site.perform(step(why="another reason"), epoch=2))["payload"]["why"] == "another reason"
    site.nodes.prepare(step(1), 2)
    assert (await site.perform(step(2), epoch=2))["payload"]["id"] == step(2).id
    assert site.signed == 6


async def test_who_leads_no_more_sends_nothing(site: Site) -> None:
    """Though it is signed."""
    site.nodes.prepare(step(), 1)
    site.leads = False
    assert await site.nodes.perform(cast(Any, Connected()), step(), 1) is None
    assert site.sent == []


async def test_a_node_that_lacks_a_key_is_told_first(site: Site) -> None:
    """Nothing is prepared for it: it would refuse what is signed with a key that it does not know."""
    site.announcer.lacking.add(NODE)
    site.nodes.prepare(step(), 1)
    assert site.signed == 0
    await site.perform(step())
    assert (site.announcer.told, site.signed) == ([NODE], 1)


async def test_a_silent_node_and_intents_that_never_come_back_leave_nothing(site: Site) -> None:
    """Ten thousand of them, each later than the one before."""
    for number in range(10_000):
        site.nodes.prepare(step(number), 1)
        site.now += 0.01
        site.beat("s1", site.now)
    assert len(site.nodes._prepared) <= PREPARED_S / 0.01 + 2
    site.now += 3600
    signed = site.signed
    site.nodes.prepare(step(), 1)
    assert (site.signed, len(site.nodes._prepared)) == (signed, 0)
