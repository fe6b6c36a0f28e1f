"""Safety laws on gpuward's own rules, with every runbook in auto mode."""

from hypothesis import given
from hypothesis import strategies as st

from agent.contract.messages import Event, Severity
from agent.contract.xid_facts import XidReader
from agent.contract.xid_table import XIDS
from brain.core.effects import Effect, Note, Perform, SendPage, WriteIntent
from brain.core.engine import Engine
from brain.core.inputs import EventSeen, Leader, NodeState, PackLoaded, TimerFired
from brain.core.pack.actions import ACTIONS
from brain.core.pack.compiled import CompiledCache
from brain.core.pack.spec import Mode, ModeSetting, Settings
from brain.core.rehearsal.timeline import Timeline
from tests.shipped import shipped_pack

PACK = shipped_pack(Settings(modes=(ModeSetting(mode=Mode.AUTO),)))
CACHE = CompiledCache()


def leading() -> Engine:
    """An engine with gpuward's own rules and a leader."""
    engine = Engine(actions=ACTIONS, compile_pack=CACHE)
    engine.handle(PackLoaded(id="p", pack=PACK), 0)
    engine.handle(Leader(id="l", epoch=1, brain="b"), 0)
    return engine


def acts(effects: list[Effect]) -> list[Effect]:
    """The effects that act on nodes or infrastructure."""
    return [effect for effect in effects if isinstance(effect, (WriteIntent, Perform))]


@given(st.integers(0, 999_999).filter(lambda code: code not in XIDS), st.text(max_size=80))
def test_an_unknown_code_is_paged_once_and_never_acted_on(code: int, message: str) -> None:
    """Law 5: one incident, one page, no action, however often it comes."""
    unsent_events = XidReader().read(f"NVRM: Xid (PCI:0000:3b:00): {code}, {message}")
    engine = leading()
    effects = []
    for number, unsent in enumerate(unsent_events * 5, 1):
        event = Event(
            id=f"n1:s:{number}",
            node="n1",
            kind=unsent.kind,
            component=unsent.component,
            severity=unsent.severity,
            at="",
            age_s=0.0,
            boot="b",
            count=1,
            data=unsent.data,
            evidence=unsent.evidence,
        )
        effects += engine.handle(EventSeen(event=event), 10.0 + number)
    assert unsent_events
    assert unsent_events[0].severity is Severity.UNKNOWN
    assert acts(effects) == []
    (incident,) = engine.state.incidents.values()
    due = incident.hold_off_until
    effects += engine.handle(TimerFired(id="t1", name=f"incident:{incident.id}", due=due), due)
    assert sum(isinstance(effect, SendPage) for effect in effects) == 1


def test_a_fleet_that_becomes_unreachable_at_once_is_one_incident() -> None:
    """Law 6: the broker or the network has failed, not forty nodes; nothing is done to any of them."""
    time = Timeline(leading())
    for number in range(40):
        time.feed(NodeState(id=f"up-{number}", node=f"n{number}", alive=True), 1)
    for number in range(40):
        time.feed(
            NodeState(id=f"down-{number}", node=f"n{number}", alive=False, silent_s=16), 100 + number / 20
        )
    time.run(400)
    told = [incident.cause for incident in time.incidents.values() if incident.pages.sent]
    assert told == ["shared-node-unreachable-cell"]
    assert not [note for note in time.notes if note.kind == "run.performing"]


def test_after_an_outage_every_node_may_return() -> None:
    """Law 7: no breaker has to be reset by hand."""
    time = Timeline(leading())
    for number in range(40):
        time.feed(NodeState(id=f"up-{number}", node=f"n{number}", alive=True), 1)
        time.feed(NodeState(id=f"down-{number}", node=f"n{number}", alive=False, silent_s=16), 100)
        time.feed(NodeState(id=f"back-{number}", node=f"n{number}", alive=True), 300)
    time.run(2000)
    assert time.engine.state.fault_free()
    assert all(node.alive for node in time.engine.state.nodes.values())


def test_a_rehearsal_performs_nothing() -> None:
    """Law 9: a timeline without a world performs no step; it only notes what would be done.

    The import rules (`.importlinter`) check that no rehearsal can import an actuator.
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
