"""Safety laws on the rules that gpuward ships with, everything in auto mode."""

from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from agent.contract.messages import Event, Severity
from agent.contract.xid_facts import XidReader
from agent.contract.xid_table import XIDS
from brain.adapters import pack as packs
from brain.core.actions import ACTIONS
from brain.core.effects import Effect, Note, Perform, SendPage, WriteIntent
from brain.core.engine import Engine
from brain.core.inputs import EventSeen, Leader, NodeState, PackLoaded
from brain.core.spec import Mode, ModeSetting, Settings
from brain.core.timeline import Timeline

ROOT = Path(__file__).resolve().parents[2]
PACK = packs.load(ROOT / "rules", ROOT / "runbooks", settings=Settings(modes=(ModeSetting(mode=Mode.AUTO),)))


def leading() -> Engine:
    """An engine with the shipped rules that leads."""
    engine = Engine(actions=ACTIONS)
    engine.handle(PackLoaded(id="p", pack=PACK), 0)
    engine.handle(Leader(id="l", epoch=1, brain="b"), 0)
    return engine


def acts(effects: list[Effect]) -> list[Effect]:
    """What would touch the world."""
    return [effect for effect in effects if isinstance(effect, (WriteIntent, Perform))]


@given(st.integers(0, 999_999).filter(lambda code: code not in XIDS), st.text(max_size=80))
def test_a_code_that_nobody_knows_is_shown_once_and_never_acted_on(code: int, message: str) -> None:
    """Law 5: one incident, one page, no action, however often it comes."""
    drafts = XidReader().read(f"NVRM: Xid (PCI:0000:3b:00): {code}, {message}")
    engine = leading()
    effects = []
    for number, draft in enumerate(drafts * 5, 1):
        event = Event(
            id=f"n1:s:{number}",
            node="n1",
            kind=draft.kind,
            component=draft.component,
            severity=draft.severity,
            at="",
            age_s=0.0,
            boot="b",
            count=1,
            data=draft.data,
            evidence=draft.evidence,
        )
        effects += engine.handle(EventSeen(event=event), 10.0 + number)
    assert drafts
    assert drafts[0].severity is Severity.UNKNOWN
    assert acts(effects) == []
    assert len(engine.state.incidents) == 1
    assert sum(isinstance(effect, SendPage) for effect in effects) == 1


def test_a_fleet_that_falls_silent_at_once_is_one_incident() -> None:
    """Law 6: a broker or a network that is gone, not forty dead nodes; nothing is done to any of them."""
    time = Timeline(leading())
    for number in range(40):
        time.feed(NodeState(id=f"up-{number}", node=f"n{number}", alive=True), 1)
    for number in range(40):
        time.feed(
            NodeState(id=f"down-{number}", node=f"n{number}", alive=False, silent_s=16), 100 + number / 20
        )
    time.run(400)
    told = [incident.cause for incident in time.incidents.values() if incident.pages.sent]
    assert told == ["shared-node-silent-cell"]
    assert not [note for note in time.notes if note.kind == "run.performing"]


def test_after_the_silence_every_node_may_return() -> None:
    """Law 7: no breaker has to be reset by hand."""
    time = Timeline(leading())
    for number in range(40):
        time.feed(NodeState(id=f"up-{number}", node=f"n{number}", alive=True), 1)
        time.feed(NodeState(id=f"down-{number}", node=f"n{number}", alive=False, silent_s=16), 100)
        time.feed(NodeState(id=f"back-{number}", node=f"n{number}", alive=True), 300)
    time.run(2000)
    assert time.engine.state.fault_free()
    assert all(node.alive for node in time.engine.state.nodes.values())


def test_a_rehearsal_has_no_hands() -> None:
    """Law 9: without a world that answers, a timeline performs nothing; it only tells what it would have done.

    That no rehearsal can import an actuator is checked by the import rules (`.importlinter`).
    """
    time = Timeline(leading())
    event = Event(
        id="n1:s:1",
        node="n1",
        kind="link.state",
        component="link/eth1",
        severity=Severity.WARNING,
        at="",
        age_s=0.0,
        boot="b",
        count=1,
        data={"up": False, "admin_up": True, "carrier": False, "operstate": "down"},
    )
    time.feed(EventSeen(event=event), 10)
    time.run(60)
    notes = [note for note in time.notes if isinstance(note, Note)]
    assert any(note.kind == "run.performing" for note in notes)
    assert not any(note.kind == "step.result" and note.data["outcome"] == "ok" for note in notes)
