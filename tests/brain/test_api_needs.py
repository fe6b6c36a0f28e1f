"""The page of whoever is on call: what needs them, in order, with what they may say about it."""

import asyncio
import time
from dataclasses import replace
from pathlib import Path

import orjson
import pytest

from brain.adapters.readmodel import ReadModel
from brain.console import shapes
from brain.console.access.people import Grant, Person
from brain.console.answers import encoded
from brain.console.api.needs_shapes import NeedKind, NeedShape
from brain.console.api.verbs import CommandBody
from brain.console.needs import items, routes
from brain.console.needs.verbs import Allowed
from brain.console.speech import in_language
from brain.console_config import Role
from brain.core.jobs_seen import JobSeen
from brain.core.pack.spec import Mode, Priority
from brain.core.state import HitJob, HitNode, Hold, IncidentState, NodeJobs, OwnedDrain, RunState
from tests.brain.world import GPU, Story, pack


def person(role: Role, *, how: str = "token t", scopes: tuple[str, ...] = ()) -> Person:
    """Somebody with a role."""
    return Person(name="ben", grants=(Grant(role=role, scopes=scopes),), how=how)


def now(
    story: Story, who: Person | None = None, chosen: tuple[str, ...] = ()
) -> tuple[list[NeedShape], list[NeedShape]]:
    """(what needs a person, what heals by itself)."""
    allowed = Allowed(person=who or person(Role.ADMINISTRATOR), state=story.engine.state, chosen=chosen)
    return asyncio.run(routes.now(allowed))


def verbs(item: NeedShape) -> list[str]:
    """Those of an item."""
    return [one.verb for one in item.verbs]


@pytest.fixture
def asking() -> Story:
    """A link that is down, and whose run asks for an approval."""
    story = Story(pack(Mode.APPROVE))
    story.event(10, "link.state", "link/eth0", up=False)
    return story.run(20)


def test_an_approval_says_exactly_what_is_approved(asking: Story) -> None:
    """What is shown is what the log has when somebody says so; the verb's arguments are the whole command."""
    (item,), _ = now(asking)
    assert item.kinds == [NeedKind.APPROVAL, NeedKind.PAGE]
    assert item.approval is not None
    assert (item.approval.disrupts, item.approval.valid_s, item.approval.jobs) == ("node", 3600, None)
    assert item.approval.what in item.text
    said = item.verbs[0]
    assert (said.verb, said.asks, said.two_persons) == ("approve", [], False)
    asking.say(21, said.verb, **said.args)
    asking.run(21)
    (run,) = asking.engine.state.runs.values()
    assert run.approved is not None
    assert run.approved.what == item.approval.what
    (page,), healing = now(asking)  # the run goes on; the page waits
    assert (page.kinds, healing, "approve" in verbs(page)) == ([NeedKind.PAGE], [], False)


def test_an_approval_names_the_jobs_that_its_incident_knows(asking: Story) -> None:
    """Nobody has asked for the run's sake yet: what the scheduler has said to people counts, the newer answer first."""
    (incident,) = asking.engine.state.incidents.values()
    there = HitJob(job=JobSeen(id="4711", user="ann"), since=15.0)
    gone = HitJob(job=JobSeen(id="4712"), since=15.0, gone_at=16.0)
    incident.hit["n1"] = HitNode(asked=1, known_since=15.0, at=16.0, scheduler="slurm", jobs=[there, gone])
    assert _jobs(asking) == ["4711"]
    incident.hit["n1"] = HitNode(asked=1, known_since=15.0, at=16.0, scheduler="slurm")
    assert _jobs(asking) == [], "nobody is hit"
    asking.engine.state.jobs["n1"] = NodeJobs(at=17.0, known=True, jobs=["4713"])
    assert _jobs(asking) == ["4713"]
    asking.engine.state.jobs["n1"] = NodeJobs(at=17.0, known=False, jobs=[])
    assert _jobs(asking) == [], "an answer that says nothing takes nothing away"
    for nothing in (HitNode(asked=1), HitNode(asked=1, at=16.0, scheduler=""), HitNode(asked=1, why="away")):
        incident.hit["n1"] = nothing
        assert _jobs(asking) is None


def _jobs(story: Story) -> list[str] | None:
    (item,), _ = now(story)
    assert item.approval is not None
    return item.approval.jobs


@pytest.mark.parametrize(
    ("who", "said"),
    [
        (person(Role.VIEWER), []),
        (person(Role.ADMINISTRATOR, how=""), []),
        (person(Role.OPERATOR), ["deny", "ack", "hold", "close"]),
        (person(Role.APPROVER), ["approve", "deny", "ack", "hold", "close"]),
        (person(Role.APPROVER, scopes=("node/n2",)), []),
        (person(Role.APPROVER, scopes=("node/n1",)), ["approve", "deny", "ack", "hold", "close"]),
    ],
)
def test_everybody_sees_what_they_may_say(asking: Story, who: Person, said: list[str]) -> None:
    """By role and limits; whoever has shown no credential may say nothing. What is offered is a command that the API takes."""
    (item,), _ = now(asking, who)
    assert verbs(item) == said
    for one in item.verbs:
        args = one.args | dict.fromkeys(one.asks, "why")
        CommandBody.model_validate_json(orjson.dumps({"verb": one.verb, "args": args}))


def test_two_persons(asking: Story) -> None:
    """Whoever says it first is told."""
    (item,), _ = now(asking, chosen=("approve",))
    assert [one.two_persons for one in item.verbs] == [True, False, False, False, False]


def test_the_most_urgent_comes_first() -> None:
    """By severity, then by why: an approval, no remedy, the breaker, a hold that ends, one without an end that stands for a day,
    pages, drains. What ends by itself later than in an hour is no news, nor is what stands since today.
    """
    story = Story(pack(Mode.APPROVE))
    story.event(10, "link.state", "link/eth0", "n2", up=False)
    story.event(11, "gpu.xid", GPU, code=79)
    story.event(12, "ib.sm_lid", "port/mlx5_0.1", "n3")
    story.run(13)
    state = story.engine.state
    state.tripped = 12.0
    for name, until in (("soon", 13 + 3599.0), ("later", 13 + 3601.0), ("open", 0.0)):
        state.holds[name] = Hold(id=name, scope="rack/r1", who="ann and ben", why="x", since=1.0, until=until)
    state.holds["forgotten"] = Hold(
        id="forgotten", scope="leaf/l1", who="ann", why="y", since=13 - 3 * 86400.0, until=0.0
    )
    (gpu,) = story.incidents("gpu-lost")
    state.drains["n1"] = {gpu.id: OwnedDrain(since=11.0)}
    story.run(13.5)
    people, healing = now(story)
    assert [(one.severity.value, one.kinds[0].value, one.cause or one.id) for one in people] == [
        ("P1", "no_remedy", "gpu-lost"),
        ("P1", "breaker", "breaker"),
        ("P2", "approval", "link-down"),
        ("P3", "hold_ends", "soon"),
        ("P3", "hold_stands", "forgotten"),
    ]
    assert people[0].kinds == [NeedKind.NO_REMEDY, NeedKind.PAGE, NeedKind.DRAINED]
    assert (people[0].out_of_service, "return" in verbs(people[0])) == (["n1"], True)
    assert "ann and ben hold rack/r1: x" in people[3].text
    assert (
        people[4].text
        == "ann holds leaf/l1: y; that has no end, and has stood for 3 days: release it when it has served"
    )
    assert "release" in verbs(people[4])
    assert [one.cause for one in healing] == ["sm-moved"]
    assert (healing[0].state, healing[0].until is None) == ("settling", False)
    story.say(14, "ack", id=gpu.id)
    story.run(14)
    assert now(story)[0][0].kinds == [NeedKind.NO_REMEDY, NeedKind.DRAINED]
    assert "ack" not in verbs(now(story)[0][0])


def test_what_was_healed_says_by_what(tmp_path: Path) -> None:
    """By the runbook whose run was verified; what went away otherwise has its reason. Newest first."""
    story = Story()
    story.event(10, "link.state", "link/eth0", up=False)
    story.run(100)
    story.event(110, "ib.sm_lid", "port/mlx5_0.1", "n3")
    story.run(1000)
    model = ReadModel(tmp_path / "history")
    model.begin("log-1")
    model.write(1, (), story.time.incidents.values(), story.time.runs.values())
    found = routes.healed_since(model, 0.0, 10)
    assert [(one.cause, one.runbook) for one in found] == [("sm-moved", ""), ("link-down", "bounce")]
    assert "bounce has healed it" in found[1].text
    assert [one.cause for one in routes.healed_since(model, 105.0, 10)] == ["sm-moved"]
    assert len(routes.healed_since(model, 0.0, 1)) == 1


def test_a_thousand_incidents_hold_nothing_up(asking: Story) -> None:
    """The event loop's longest turn is far below 50 ms, and the page is made in less than half a second of one core."""
    (one,) = asking.engine.state.incidents.values()
    state = asking.engine.state
    for number in range(1000):
        state.incidents[f"inc-{number}"] = replace(
            one,
            id=f"inc-{number}",
            severity=list(Priority)[number % 4],
            state=(IncidentState.NEEDS_HUMAN, IncidentState.HEALING)[number % 2],
        )

    async def measured() -> tuple[float, list[NeedShape]]:
        longest, ended = 0.0, False

        async def beside() -> None:
            nonlocal longest
            while not ended:
                began = time.thread_time()
                await asyncio.sleep(0)
                longest = max(longest, time.thread_time() - began)

        task = asyncio.ensure_future(beside())
        people, _ = await routes.now(Allowed(person=person(Role.APPROVER), state=state, chosen=()))
        ended = True
        await task
        return longest, people

    began = time.thread_time()
    longest, people = min((asyncio.run(measured()) for _ in range(3)), key=lambda each: each[0])
    whole = (time.thread_time() - began) / 3
    size = sum(len(encoded(one)) for one in people[:200])
    print(f"longest turn {longest * 1000:.1f} ms, {whole * 1000:.0f} ms in all, {size} bytes of 200 items")
    assert longest <= 0.05
    assert whole <= 0.5
    assert items.order(people[0]) <= items.order(people[-1])


def test_an_approval_of_a_page_that_was_left_open_is_none(asking: Story) -> None:
    """Its verb carries how things stood: since then the fault has become worse, which nobody on that page has seen."""
    (item,), _ = now(asking)
    said = item.verbs[0]
    assert item.approval is not None
    assert said.args["seen"] == item.approval.seen
    (incident,) = asking.engine.state.incidents.values()
    incident.severity = Priority.P0
    asking.say(21, said.verb, **said.args)
    asking.run(22)
    assert "not as it was shown: the incident is P0 now" in asking.notes("operator.refused")[-1]
    assert not asking.notes("operator.approve")
    (fresh,), _ = now(asking)
    asking.say(23, fresh.verbs[0].verb, **fresh.verbs[0].args)
    asking.run(24)
    assert len(asking.notes("operator.approve")) == 1


@pytest.mark.parametrize(("gate", "offered"), [("related", True), ("hold", False), ("budget", False)])
def test_what_is_held_for_a_reason_that_only_people_can_find_is_let_go_on_by_them(
    asking: Story, gate: str, offered: bool
) -> None:
    """Its sentence says that an approval lets it go on: so there is one to give, of exactly this step. What ends by itself, or by
    somebody else's word, has none.
    """
    (run,) = asking.engine.state.runs.values()
    run.state, run.why = RunState.HELD, f"bounce waits: these belong together (gate {gate})"
    (page,), _ = now(asking)
    assert NeedKind.APPROVAL not in page.kinds
    assert ("approve" in verbs(page), page.approval is not None) == (offered, offered)
    if offered:
        asking.say(21, "approve", **page.verbs[0].args)
        asking.run(22)
        assert len(asking.notes("operator.approve")) == 1


def test_what_has_come_back_says_until_when_it_stays_open() -> None:
    """A fault that comes and goes stays open longer than its pauses; it is over no earlier than that."""
    story = Story(pack())
    for at in (1, 400):
        story.event(at, "link.state", "link/ib0", up=False)
        story.run(at + 60)
    one = story.incidents("link-down")[-1]
    assert (one.state, one.times) == (IncidentState.RECOVERED, 2)
    found = items.incident(
        one, story.engine.state, (), Allowed(person=person(Role.VIEWER), state=story.engine.state, chosen=())
    )
    assert found is not None
    assert found.until == shapes.iso(story.engine.state.timers[f"incident:{one.id}"])


def test_what_an_approval_is_wanted_for_is_told_in_chinese_whole(asking: Story) -> None:
    """Also where an earlier approval is void: what stands within has colons and semicolons of its own."""
    (run,) = asking.engine.state.runs.values()
    run.why = "bounce waits: link-bounce is in approve mode; the approval of ann is void: it was for another step (gate mode)"
    with in_language("zh"):
        (item,) = routes.told_items(now(asking)[0])
    assert item.text.startswith("bounce 要执行 bounce")
    assert item.text.endswith(
        "bounce 等待：link-bounce 处于 approve 模式；ann 的批准已失效：该批准针对另一步骤（闸门 mode）"
    )


def test_why_a_person_is_needed_is_told_in_chinese_whole() -> None:
    """On a new site, which only observes, as well: that nothing is done is the most important word of it."""
    story = Story(pack(Mode.OBSERVE))
    story.event(10, "link.state", "link/eth0", up=False)
    story.run(20)
    with in_language("zh"):
        (item,) = routes.told_items(now(story)[0])
    assert item.text == (
        "link/n1/eth0 上的 link-down 需要人工：bounce 在此处于 observe 模式：不执行任何操作，以下是将会执行的内容"
    )
