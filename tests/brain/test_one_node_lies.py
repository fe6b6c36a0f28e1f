"""Law 15, played with the shipped rules: whatever one node says of itself, every other node is served as before."""

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from agent.contract.messages import Severity
from brain.adapters.snapshot import dump, parse
from brain.core.effects import Effect, Perform
from brain.core.inputs import Input, NodeState
from brain.core.pack.spec import Mode, ModeSetting, Pack, Place, Settings
from tests.brain.world import GPU, Story
from tests.shipped import shipped_pack

THIEF = "n00"  # whose credential was stolen


def site(places: dict[str, Place] | None = None, **settings: Any) -> Pack:
    """The shipped rules, without scheduled inspections."""
    settings.setdefault("modes", (ModeSetting(mode=Mode.AUTO),))
    whole = shipped_pack()
    runbooks = tuple(replace(one, every_s=0) for one in whole.runbooks)
    return replace(whole, runbooks=runbooks, settings=Settings(**settings), places=places or {})


def cell(nodes: int = 40, **more: Any) -> Story:
    """A site of so many nodes that have been heard."""
    story = Story(site(**more))
    for number in range(nodes):
        story.event(0, "agent.started", node=f"n{number:02}")
    return story.run(1)


def full(story: Story, at: float, name: int, node: str = THIEF, *, there: bool = True) -> None:
    """A filesystem is full, or is not any more."""
    story.event(
        at, "mount.space", f"mount//d{name}", node, full=there, remote=False, what="x", used_percent=99.0
    )


def lost(story: Story, at: float, node: str, gpu: str = GPU) -> None:
    """A GPU falls off the bus."""
    story.event(at, "gpu.xid", gpu, node, code=79, name="x", known=True, what="", action="")


class TestWhatIsOpen:
    """One node has so much open, and no more."""

    def test_what_a_node_says_beyond_its_share_is_one_incident(self) -> None:
        story = cell()
        for number in range(600):
            full(story, 10 + number * 0.1, number)
        state = story.run(100).engine.state
        mine = [one for one in state.symptoms.values() if f"/{THIEF}/" in one.scope]
        assert len(mine) == 200
        assert len([one for one in state.incidents.values() if one.node == THIEF]) <= 201
        (noisy,) = story.incidents("node-noisy")
        assert (noisy.scope, noisy.pages.notified) == (f"node/{THIEF}", ["oncall"])
        assert len(story.notes("node.crowded")) == 1

    def test_what_is_open_already_still_counts(self) -> None:
        """A fact of a known part renews it or ends it, and makes room for the next one."""
        story = cell()
        for number in range(300):
            full(story, 10 + number * 0.1, number)
        full(story, 50, 7, there=False)
        full(story, 50, 8, there=False)
        state = story.run(51).engine.state
        assert not [key for key in state.symptoms if key.endswith(("//d7", "//d8"))]
        for number in (297, 298, 299):  # their incidents are over, too
            full(story, 2000, number)
        state = story.run(2001).engine.state
        late = [key.rpartition("/")[2] for key in state.symptoms if key.endswith(("/d297", "/d298", "/d299"))]
        assert late == ["d297"]  # 199 and the one that says that it is too much

    def test_the_node_as_a_whole_is_heard_all_the_same(self) -> None:
        story = cell()
        for number in range(300):
            full(story, 10 + number * 0.1, number)
        story.time.feed(NodeState(id="silent", node=THIEF, alive=False, silent_s=16.0), 60)
        story.run(200)
        assert [one.scope for one in story.incidents("node-unreachable")] == [f"node/{THIEF}"]

    def test_other_nodes_have_their_own_share(self) -> None:
        story = cell()
        for number in range(300):
            full(story, 10 + number * 0.1, number)
        lost(story, 60, "n11")
        assert [one.scope for one in story.run(120).incidents("gpu-lost")] == [f"gpu/n11/{GPU[4:]}"]

    def test_a_restart_counts_the_same(self) -> None:
        story = cell()
        for number in range(150):
            full(story, 10 + number * 0.1, number)
        engine = story.run(50).engine
        again = type(engine)(parse(dump(engine.state)), actions=engine._actions)
        assert again._index.parts == engine._index.parts == {THIEF: 150}
        assert again._index.matched == engine._index.matched
        assert again._index.near.keys() == engine._index.near.keys()

    def test_all_is_forgotten(self) -> None:
        """When its facts have ended, nothing of the count is left."""
        story = cell()
        for number in range(250):
            full(story, 10 + number * 0.1, number)
        for number in range(250):
            full(story, 60 + number * 0.1, number, there=False)
        index = story.run(50_000).engine._index
        assert (index.parts, index.near, index.matched, index.open_at) == ({}, {}, {}, {})


class TestWhatBelongsTogether:
    """The gate `related` counts nodes, each once, and nobody waits for ever because others wait."""

    def test_two_faults_of_one_node_hold_nobody_else(self) -> None:
        story = cell()
        for number in range(5):
            lost(story, 100 + 600 * number, f"n{20 + number}")
        for at in range(2700, 14_000, 300):  # the same two faults, told again and again
            lost(story, at, THIEF, "gpu/0000:40:00")
            lost(story, at, THIEF, "gpu/0000:41:00")
        for at in range(12_000, 14_000, 90):
            lost(story, at, "n35")
        story.run(13_000)
        assert ("n35", "node.reboot") in story.actions()

    def test_none_wait_for_each_other_for_ever(self) -> None:
        """Of five nodes, two are healed and three are held: after a day each is judged anew."""
        story = cell(same_cause_nodes=2)
        nodes = [f"n{20 + 4 * number}" for number in range(5)]
        for at in range(100, 100_000, 90):
            for number, node in enumerate(nodes):
                lost(story, at + 10 * number, node)
        story.run(86_000)
        rebooted = [node for node in nodes if (node, "node.reboot") in story.actions()]
        assert len(rebooted) == 2
        story.run(100_000)
        assert len([node for node in nodes if (node, "node.reboot") in story.actions()]) == 5
        assert not [text for text in story.notes("run.held") if "0 nodes" in text]


class TestPages:
    """What one node opens hides and delays nobody else's page (law 10)."""

    def test_a_fault_of_another_node_is_paged_by_itself_in_the_flood_of_one(self) -> None:
        story = cell()
        for number in range(400):
            lost(story, 600 + number * 0.1, THIEF, f"gpu/0000:{number % 256:02x}:{number // 256:02x}")
        lost(story, 640, "n11")
        story.run(641)
        (honest,) = [one for one in story.incidents("gpu-lost") if one.node == "n11"]
        assert honest.pages.grouped == {}
        (page,) = [one for one in story.time.pages if one.subject.node == "n11"]
        assert (page.what, page.subject.id) == ("open", honest.id)
        assert all(
            one.node == THIEF for one in story.engine.state.alert_groups.values() if THIEF in one.affected
        )

    def test_a_node_that_reports_for_hours_is_told_now_and_then(self) -> None:
        """A new fault of its own every minute for five hours."""
        story = cell()
        for number in range(300):
            lost(story, 10 + 60 * number, THIEF, f"gpu/0000:{number % 256:02x}:{number // 256:02x}")
        story.run(20_000)
        pages = [one for one in story.time.pages if one.subject.node in ("", THIEF)]
        assert len([one for one in pages if one.what == "open"]) <= 45
        assert len([one for one in pages if one.what != "repeat"]) < 150

    def test_a_code_that_one_node_has_named_is_told_of_another_node(self) -> None:
        story = cell()
        xid: dict[str, Any] = {"name": "", "known": False, "what": "", "action": ""}
        for number, code in enumerate(range(900, 1000)):
            story.event(
                10 + number,
                "gpu.xid",
                f"gpu/0000:{number:02x}:00",
                THIEF,
                code=code,
                severity=Severity.UNKNOWN,
                **xid,
            )
        story.event(90_000, "gpu.xid", GPU, "n11", code=950, severity=Severity.UNKNOWN, **xid)
        story.run(95_000)
        assert [one.what for one in story.time.pages if one.subject.node == "n11"][:1] == ["open"]


class Silent(Story):
    """The thief accepts every step, and says no more of it."""

    def _answer(self, effect: Effect, now: float) -> Iterable[tuple[float, Input]]:
        if isinstance(effect, Perform) and effect.step.node == THIEF and effect.step.where == "node":
            self.performed.append(effect)
            return ()
        return super()._answer(effect, now)


class TestLimits:
    """Limits that several nodes share are used up by none of them alone."""

    def test_who_does_not_answer_leaves_the_budget(self) -> None:
        """Its leaf's budget of one is free again before its neighbour's facts are old news."""
        story = Silent(site({f"n{number:02}": Place(leaf=f"l{number // 8}") for number in range(40)}))
        for number in range(40):
            story.event(0, "agent.started", node=f"n{number:02}")
        for number in range(100):
            lost(story, 10 + 60 * number, THIEF, f"gpu/0000:{number:02x}:00")
        lost(story, 2000, "n01")
        story.run(2200)
        assert ("n01", "node.reboot") in story.actions()
        told = [one for one in story.notes("run.exhausted") if "no sign of life" in one]
        assert told[0].startswith(f"{THIEF} is heard, and gives no sign of life of reboot for 90 s")
        assert story.actions().count((THIEF, "node.reboot")) == 1

    def test_of_those_that_wait_the_one_that_had_least_is_next(self) -> None:
        """Many faults of one node are no longer queue than one."""
        story = cell(places={f"n{number:02}": Place(leaf="l0") for number in range(40)}, hold_off_s=1)
        for number in range(20):
            story.event(10, "service.state", f"service/a{number}.service", THIEF, active="failed")
        lost(story, 12, "n01")
        story.run(100)
        assert ("n01", "node.reboot") in story.actions()

    def test_the_remedies_of_one_node_leave_its_chassis_theirs(self) -> None:
        places = {f"n{number:02}": Place(chassis=f"c{number // 4}") for number in range(40)}
        story = cell(places=places)
        for number in range(3):
            lost(story, 10 + 900 * number, THIEF, f"gpu/0000:{0x3B + number:02x}:00")
        lost(story, 9000, "n01")
        story.run(16_000)
        assert story.actions().count((THIEF, "node.reboot")) == 3
        assert ("n01", "node.reboot") in story.actions()
