"""Law 10 under random failures and crashes: no page is lost, no group of the chain is skipped, no alert stays open."""

from typing import Any

from hypothesis import example, given, settings
from hypothesis import strategies as st
from pydantic import TypeAdapter

from agent.contract.messages import Event, Severity
from brain.core.effects import Effect, Note, SendPage, WriteIntent
from brain.core.engine import Engine
from brain.core.inputs import (
    Delivery,
    EventSeen,
    Input,
    Intent,
    Leader,
    OperatorCommand,
    PackLoaded,
    TimerFired,
)
from brain.core.pack.actions import ACTIONS
from brain.core.pack.compiled import CompiledCache
from brain.core.pack.spec import Digest, Hours, Priority, Settings
from brain.core.paging import hours
from brain.core.paging.queue import everything
from brain.core.state import State
from tests.brain.test_paging import CHAIN
from tests.brain.world import GPU, pack

STATE = TypeAdapter(State)
CACHE = CompiledCache()
WITHIN_S = 20.0
FACTS: list[tuple[str, str, dict[str, Any]]] = [
    ("node.unreachable", "node", {}),
    ("node.unreachable", "node", {}),
    ("node.returned", "node", {}),
    ("gpu.xid", GPU, {"code": 79}),
    ("link.state", "link/eth1", {"up": False}),
    ("link.state", "link/eth1", {"up": True}),
]
NODES = tuple(f"n{number}" for number in range(8))
moves = st.lists(
    st.one_of(
        st.tuples(st.just("fact"), st.sampled_from(range(len(FACTS))), st.sampled_from(NODES)),
        st.tuples(st.just("storm"), st.sampled_from([0, 2])),
        st.tuples(st.just("ack"), st.integers(0, 5)),
        st.tuples(st.just("close"), st.integers(0, 5)),
        st.tuples(st.just("die"), st.sampled_from(["replay", "snapshot"])),
        st.tuples(st.just("wait"), st.sampled_from([0.5, 3.0, 21.0, 100.0, 400.0, 1000.0])),
    ),
    max_size=30,
)
# What happens to a page: delivered · refused · lost with its brain · delivered, but the answer is lost.
fates = st.lists(st.sampled_from(["ok", "ok", "no", "lost", "unheard"]), min_size=1, max_size=12)


class Site:
    """One brain at a time on one log, channels that fail, and the pages that people got."""

    def __init__(self, fate: list[str]) -> None:
        self.engine = Engine(actions=ACTIONS, compile_pack=CACHE)
        self.log: list[tuple[Input, float]] = []
        self.now = 0.0
        self.fate = fate
        self.sent: list[tuple[float, SendPage]] = []
        self.got: list[tuple[str, str, str]] = []  # (incident or alert group, channel group, what)
        self.taken: dict[str, float] = {}  # page -> when its channel said that it has it
        self.epoch = 0
        self.count = 0
        self.seqs: dict[str, int] = {}
        self.first: dict[str, float] = {}  # incident -> when it was first paged
        self.acked: dict[str, float] = {}
        self.over: set[str] = set()
        self.reopened: set[str] = set()
        self.digests: set[str] = set()  # alert groups that wait for hours; those of a storm do not

    def put(self, given: Input) -> None:
        """Feeds an input and what follows from it at once."""
        waiting = [given]
        while waiting:
            one = waiting.pop(0)
            self.log.append((one, self.now))
            for effect in self.engine.handle(one, self.now):
                waiting += self._do(effect)
            self.digests |= {one.id for one in self.engine.state.alert_groups.values() if one.digest}
            for incident in self.engine.state.incidents.values():
                if incident.pages.first_at:
                    self.first.setdefault(incident.id, self.now)
                if incident.pages.acked_by:
                    self.acked.setdefault(incident.id, self.now)
                if incident.pages.resolved:
                    self.over.add(incident.id)

    def _do(self, effect: Effect) -> list[Input]:
        if isinstance(effect, WriteIntent):  # the log is well; the nodes answer nothing
            intent, epoch = effect.step.id, self.engine.state.epoch
            return [Intent(id=f"i:{intent}:{epoch}", step=intent, epoch=epoch, brain="b")]
        if isinstance(effect, Note) and effect.kind == "incident.reopened":
            self.reopened.add(effect.incident)
        if not isinstance(effect, SendPage):
            return []
        self.sent.append((self.now, effect))
        self.count += 1
        fate = self.fate[self.count % len(self.fate)]
        if fate in ("ok", "unheard"):
            for name in [effect.subject.id, *(line.incident for line in effect.subject.listed)]:
                self.got.append((name, effect.to, effect.what))
        if fate in ("lost", "unheard"):
            return []
        if fate == "ok":
            self.taken.setdefault(effect.id, self.now)
        return [Delivery(id=f"d:{self.count}", page=effect.id, ok=fate == "ok", channel="c", why="no")]

    def die(self, how: str) -> None:
        """The brain crashes. The next one reads the whole log, or a snapshot; then it leads."""
        if how == "replay":
            self.engine.close()
            self.engine = Engine(actions=ACTIONS, compile_pack=CACHE)
            for given_, at in self.log:
                self.engine.handle(given_, at)
        else:
            state = STATE.validate_json(STATE.dump_json(self.engine.state))
            self.engine.close()
            self.engine = Engine(state, actions=ACTIONS, compile_pack=CACHE)
        self.lead()

    def lead(self) -> None:
        """A brain takes over."""
        self.epoch += 1
        self.put(Leader(id=f"l:{self.epoch}", epoch=self.epoch, brain="b"))

    def fact(self, node: str, kind: str, component: str, data: dict[str, Any]) -> None:
        """A node sends an event."""
        seq = self.seqs[node] = self.seqs.get(node, 0) + 1
        event = Event(
            id=f"{node}:s:{seq}", node=node, kind=kind, component=component, severity=Severity.ERROR, at="", age_s=0.0,
            boot="b", count=1, data=data, evidence="line",
        )  # fmt: skip
        self.put(EventSeen(event=event))

    def wait(self, seconds: float) -> None:
        """Time passes; timers fire in order."""
        until = self.now + seconds
        while True:
            timers = self.engine.state.timers
            name = min(timers, key=lambda key: (timers[key], key), default="")
            if not name or timers[name] > until:
                break
            self.now = max(self.now, timers[name])
            self.put(TimerFired(id=f"t:{name}:{timers[name]}:{len(self.log)}", name=name, due=timers[name]))
        self.now = until

    def play(self, script: list[tuple[Any, ...]], **more: Any) -> "Site":
        """Plays all moves. `more`: settings."""
        chain = {Priority.P1: CHAIN}
        given = pack(escalation=chain, shared_nodes=1000, group_at_least=3, group_within_s=WITHIN_S, **more)
        self.put(PackLoaded(id="p", pack=given))
        self.lead()
        for number, move in enumerate(script):
            self.now += 0.01
            match move:
                case ("fact", index, node):
                    self.fact(node, *FACTS[index])
                case ("storm", index):
                    for node in NODES:
                        self.fact(node, *FACTS[index])
                case ("ack" | "close" as verb, index):
                    ids = [*self.engine.state.alert_groups, *self.engine.state.incidents]
                    if verb == "close":
                        ids = list(self.engine.state.incidents)
                    if ids:
                        self.put(
                            OperatorCommand(
                                id=f"w{number}", who="ann", verb=verb, args={"id": ids[index % len(ids)]}
                            )
                        )
                case ("die", how):
                    self.die(how)
                case ("wait", seconds):
                    self.wait(seconds)
        return self


@settings(max_examples=150, deadline=None)
@given(moves, fates)
def test_no_page_is_lost_and_no_group_is_skipped(script: list[tuple[Any, ...]], fate: list[str]) -> None:
    """When channels work again, every group that was due got an alert (or its resolution), and no page is waiting."""
    site = Site(fate).play(script)
    site.wait(1000)
    site.fate = ["ok"]
    site.wait(700)
    assert site.engine.state.pack is not None
    for name, first in site.first.items():
        incident = site.engine.state.incidents.get(name)
        chain = CHAIN if incident is None or incident.severity == "P1" else CHAIN[:1]
        if incident is None:
            chain = CHAIN[:1]  # forgotten, because it is over: those on call were paged at least
        for step in chain:
            due = first + step.after_s
            told_anew = name in site.over or name in site.reopened  # whose chain begins again
            if step.after_s and (told_anew or site.acked.get(name, due + 1) <= due):
                continue
            assert any((one, to) == (name, step.to) for one, to, _ in site.got), (
                f"{step.to} never heard of {name}"
            )
            when = [at for at, page in site.sent if page.to == step.to and _tells(page, name)]
            assert when[0] <= due + WITHIN_S + 0.1, f"{step.to} was told late"
    for about in everything(site.engine.state):
        assert all(pending.alert_group for pending in about.pages.waiting.values()), (
            "everything was delivered"
        )


@settings(max_examples=150, deadline=None)
@given(moves, fates)
def test_no_alert_stays_open_and_none_is_reopened_after_its_end(
    script: list[tuple[Any, ...]], fate: list[str]
) -> None:
    """For each alert and group the resolution is the last page, unless its incident is opened again; when all is closed, all are
    resolved.
    """
    site = Site(fate).play(script)
    site.fate = ["ok"]
    for number in range(5):
        for name in list(site.engine.state.incidents):
            site.put(OperatorCommand(id=f"end-{number}-{name}", who="ann", verb="close", args={"id": name}))
        site.wait(700)
    last: dict[tuple[str, str], str] = {}
    for _, page in site.sent:
        key = (page.subject.id, page.to)
        again = page.subject.id in site.reopened
        assert again or last.get(key) != "resolve" or page.what == "resolve", (
            f"{key} is opened again after its end"
        )
        last[key] = page.what
    assert set(last.values()) <= {"resolve"}
    assert {name for name, _, what in site.got if what == "resolve"} >= {name for name, _ in last}
    assert not site.engine.state.incidents
    assert not site.engine.state.alert_groups


@settings(max_examples=150, deadline=None)
@given(moves, fates, st.sampled_from([0.0, 300.0]))
@example([("fact", 4, "n0"), ("wait", 400.0), ("ack", 0)], ["ok"], 300.0)
def test_a_digest_loses_nothing_and_keeps_its_hours(
    script: list[tuple[Any, ...]], fate: list[str], every_s: float
) -> None:
    """Every P2 was told to its group, though not to those on call, and only when its hours were."""
    digest = Digest(
        to="tickets", hours=(Hours(days=("thu", "sun"), from_hour=0, until_hour=0.1),), every_s=every_s
    )
    site = Site(fate).play(script, digests={Priority.P2: digest})
    asked = dict(site.first)
    site.fate = ["ok"]
    site.wait(8 * 86_400)
    for name in asked:
        assert any(one == name for one, _, _ in site.got), f"nobody ever heard of {name}"
    for at, page in site.sent:
        lines = page.subject.listed
        if page.to == "tickets" and lines and page.id.rpartition(".p")[0] in site.digests:
            before = [
                other.id
                for when, other in site.sent
                if when < at and (other.to, other.subject.id) == (page.to, page.subject.id)
            ]  # while none of them is taken, a newer one stands for them
            retried = bool(before) and not any(site.taken.get(one, at) < at for one in before)
            retried = retried or page.id in before
            assert retried or hours.next_open(Settings(), digest.hours, at) == at, "sent outside its hours"
        if page.to == "oncall":
            assert page.subject.severity != Priority.P2
            assert all(line.severity != Priority.P2 for line in lines)
    for about in everything(site.engine.state):
        assert not about.pages.waiting


def _tells(page: SendPage, incident: str) -> bool:
    return page.subject.id == incident or any(line.incident == incident for line in page.subject.listed)
