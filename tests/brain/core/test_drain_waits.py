"""Drains wait for the node's jobs: how long and what then is a class of the fault, and the site says it for each class."""

from dataclasses import replace
from typing import Any

import pytest

from brain.core.pack import lint
from brain.core.pack.actions import ACTIONS
from brain.core.pack.spec import DrainWait, Match, Mode, ModeSetting, Runbook, Rung, Settings, Symptom
from brain.core.state import IncidentState, RunState
from tests.brain.core.climb import QUIET, Climb, rung
from tests.brain.lint_kit import PACK, RULE, RUNBOOK
from tests.brain.world import Story, pack, rule
from tests.shipped import shipped_pack

SHIPPED = shipped_pack()
WEEK_S = 7 * 86_400.0
EVIDENCE_RUNG = Rung(name="evidence", do="evidence.collect", params={"component": "node"})


def drain(**params: Any) -> Rung:
    """A drain with these parameters."""
    return Rung(name="drain", do="scheduler.drain", params=params)


@pytest.mark.parametrize(
    ("params", "drains", "wait_s", "then", "timeout_s"),
    [
        ({"fault": "degraded"}, {}, WEEK_S, "fail", WEEK_S + 600),
        ({"fault": "dead"}, {}, 14_400, "requeue", 15_000),
        ({"fault": "dead"}, {"dead": DrainWait(wait_s=600, then="go_on")}, 600, "go_on", 7200),
        ({"fault": "dead"}, {"degraded": DrainWait(wait_s=1)}, 14_400, "requeue", 15_000),
        ({"wait_s": 90, "then": "undo"}, {}, 90, "undo", 7200),
        ({"wait_s": 86_400, "then": "fail"}, {}, 86_400, "fail", 87_000),
    ],
)
def test_how_long_a_drain_waits(
    params: dict[str, Any], drains: Any, wait_s: float, then: str, timeout_s: float
) -> None:
    """What the rung says itself, or what the site says for the class; and the step's own time allows for it."""
    it = Climb(drain(**params), rung("bounce"), drains=drains)
    step = it.performed[-1].step
    assert (dict(step.params), step.timeout_s) == ({"wait_s": wait_s, "then": then}, timeout_s)


def test_the_ladder_goes_on_when_the_jobs_have_ended() -> None:
    """After three and a half hours: no deadline of ours has ended the wait."""
    it = Climb(drain(fault="dead"), rung("bounce", verify=QUIET))
    for _ in range(7):
        it.progresses()
        it.wait(1790)
    assert it.state is RunState.PERFORMING
    it.answer(step=it.performed[0].step.id)
    assert it.steps[-1] == "s2.a1"


def test_a_drain_of_which_nothing_is_heard_does_not_wait_for_hours() -> None:
    """The brain reports each drain that waits every few seconds. After half an hour of silence it counts as lost."""
    it = Climb(drain(fault="dead", wait_s=WEEK_S))
    it.wait(1799)
    assert it.state is RunState.PERFORMING
    it.wait(46)
    assert (it.state, it.incident.state) == (RunState.EXHAUSTED, IncidentState.NEEDS_HUMAN)


def test_who_is_asked_again_for_a_drain_waits_only_for_the_rest_of_its_time() -> None:
    """The brain that waited is gone: the next one does not begin the week anew."""
    it = Climb(drain(fault="dead"))
    it.progresses()
    it.wait(1000)
    it.lead()
    waits = [round(float(each.step.params["wait_s"])) for each in it.performed]
    assert waits[0] == 14_400
    assert waits[-1] == 13_400
    assert waits == sorted(waits, reverse=True)


def shipped(**settings: Any) -> Story:
    """The shipped rules in auto mode, with a world that answers every step."""
    auto = Settings(modes=(ModeSetting(mode=Mode.AUTO),), shared_small_share=2.0, **settings)
    return Story(replace(SHIPPED, settings=auto))


def test_a_hung_driver_heals_unattended() -> None:
    """It must hang for two minutes before it is a fault, so its newest fact is two minutes old by definition."""
    it = shipped()
    it.event(10, "nvml.hung", "node", call="nvmlDeviceGetCount", seconds=10)
    it.run(200)
    assert ("n1", "scheduler.drain") in it.actions() or ("n1", "service.restart") in it.actions()
    assert not [note for note in it.notes("run.approval") if "stale" in note]


@pytest.mark.parametrize(("age_s", "acts"), [(0, True), (100, True), (200, False)])
def test_old_news_is_old_also_for_a_symptom_that_takes_time(age_s: float, acts: bool) -> None:
    """A symptom that lasts a minute, a limit of two: news that were older when they came need a look or an approval."""
    lasting = Symptom(
        name="slow", scope="link", summary="slow", detect="lasting", for_s=60, on=(Match(kind="link.state", where={"up": False}),)
    )  # fmt: skip
    about = rule("slow-link", "link", {"symptom": "slow"}, runbook="bounce")
    book = Runbook(name="bounce", summary="bounce", rungs=(rung("bounce", verify=QUIET),))
    it = Story(replace(pack(stale_s=60), symptoms=(lasting,), rules=(about,), runbooks=(book,)))
    it.event(1010, "link.state", "link/eth1", up=False, age_s=age_s)
    it.run(1100)
    assert (("n1", "link.bounce") in it.actions()) is acts


def test_the_fabric_manager_is_restarted_on_a_drained_node() -> None:
    """Jobs may run on without it; one that has said that its GPU is lost may not, and then there is nothing to wait for."""
    it = shipped()
    manager = "service/nvidia-fabricmanager.service"
    it.event(10, "service.state", manager, active="failed", sub="failed", result="exit-code")
    it.run(60)
    wanted = [action for _, action in it.actions() if action.startswith(("scheduler.drain", "fabricmanager"))]
    assert wanted[:2] == ["scheduler.drain", "fabricmanager.restart"]
    lost = shipped()
    lost.event(9, "job.cuda_error", "node", name="CUDA_ERROR_DEVICE_REMOVED")
    lost.event(10, "service.state", manager, active="failed", sub="failed", result="exit-code")
    lost.run(60)
    mine = [
        p.step.action
        for p in lost.performed
        if "restart-fabric-manager" in lost.time.runs[p.step.run].runbook.name
    ]
    assert mine[:2] == ["evidence.collect", "fabricmanager.restart"]


FENCE = Runbook(
    name="fence",
    summary="keep jobs away",
    rungs=(drain(wait_s=0, then="go_on"), Rung(name="tell", do="page")),
    tries=1,
)
BOOT = Rung(name="boot", do="node.reboot", verify=QUIET)
MEND = Runbook(
    name="bounce", summary="bounce", tries=1, last_resort="fence", rungs=(rung("bounce", disrupts=None, verify=QUIET),)
)  # fmt: skip


def test_a_remedy_that_may_not_be_tried_again_leaves_the_node_fenced() -> None:
    """The link breaks three times: bounced once, then its node is kept free of jobs, both times."""
    back = next(book for book in SHIPPED.runbooks if book.name == "return-node")
    it = Story(replace(pack(), runbooks=(MEND, FENCE, back)))
    for at in (10, 500, 1000):
        it.event(at, "link.state", "link/eth1", up=False)
        it.run(at + 100)
        if at == 500:
            assert it.incidents("link-down")[-1].state is IncidentState.NEEDS_HUMAN
            it.event(at + 150, "link.state", "link/eth1", up=True)
            it.run(at + 160)
            it.say(at + 160, "return", node="n1")
            it.run(at + 400)
    assert [action for _, action in it.actions() if action in ("link.bounce", "scheduler.drain")] == [
        "link.bounce",
        "scheduler.drain",
        "scheduler.drain",
    ]


@pytest.mark.parametrize(
    ("resort", "finding"),
    [
        (FENCE, ""),
        (None, "runbooks.mend.last_resort: there is no runbook 'fence'"),
        (replace(FENCE, rungs=(*FENCE.rungs, BOOT)), "fence does more than fence: boot is node.reboot"),
        (replace(FENCE, rungs=(EVIDENCE_RUNG,)), "fence does not fence the node"),
        (replace(FENCE, last_resort="fence"), "fence does not fence the node, or has a last resort itself"),
    ],
)  # fmt: skip
def test_check_refuses_a_last_resort_that_does_more_than_fence(resort: Runbook | None, finding: str) -> None:
    """It runs without the limit of tries, so it may not heal."""
    books = (replace(RUNBOOK, last_resort="fence"), *([replace(resort, request=True)] if resort else []))
    found = lint.problems(replace(PACK, rules=(RULE,), runbooks=books), ACTIONS)
    assert [one for one in found if "fence" in one and finding in one] or not finding
    assert bool(found) is bool(finding)


@pytest.mark.parametrize(
    ("params", "finding"),
    [
        ({"fault": "dead"}, ""),
        ({"fault": "odd"}, "there is no class of faults 'odd' (have: degraded, dead)"),
        ({"fault": "dead", "wait_s": 5}, "no wait_s and no then beside it"),
    ],
)
def test_check_knows_the_classes_of_faults(params: dict[str, Any], finding: str) -> None:
    """And refuses two answers to one question."""
    book = replace(RUNBOOK, rungs=(drain(**params), *RUNBOOK.rungs))
    found = lint.problems(replace(PACK, rules=(RULE,), runbooks=(book,)), ACTIONS)
    assert [finding in one for one in found] == ([True] if finding else [])


def test_every_shipped_remedy_that_needs_an_empty_node_says_which_class_its_fault_is() -> None:
    """And has a last resort."""
    waits = [book for book in SHIPPED.runbooks if any("fault" in one.params for one in book.rungs)]
    assert len(waits) >= 10
    assert {book.last_resort for book in waits} == {"drain-node"}
