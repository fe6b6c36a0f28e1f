"""What a job says in its own log tells people, and takes nothing out of service by itself."""

from dataclasses import replace
from typing import Any

from agent.contract import kinds
from brain.core.pack.actions import ACTIONS
from brain.core.pack.conditions import symptoms_in
from brain.core.pack.spec import Mode, ModeSetting, Rule, Settings
from tests.brain.world import Story
from tests.shipped import shipped_pack

SHIPPED = shipped_pack()
LOST: dict[str, Any] = {"name": "CUDA_ERROR_DEVICE_REMOVED", "job": "4711", "file": "/var/log/jobs/4711.log"}
# Runbook → why a job's word alone may lead to it.
EXCEPTIONS = {
    "connect-rdma": "RDMA's own connection manager, twice; the port is reset only after a drain that lets jobs end",
}


def on_a_job_s_word(rule: Rule) -> bool:
    """Can it match although only jobs have said something?"""
    symptoms = {symptom.name: symptom for symptom in SHIPPED.symptoms}
    named = [symptoms[name] for name in symptoms_in(rule.when) if name in symptoms]
    return any(match.kind.startswith("job.") for symptom in named for match in symptom.on)


def test_no_rule_disrupts_on_a_job_s_word() -> None:
    """Every shipped rule that a job's log can fulfil has no runbook, or one that disrupts nothing without an approval."""
    runbooks = {one.name: one for one in SHIPPED.runbooks}
    disrupting: dict[str, str] = {}
    judged = [rule for rule in SHIPPED.rules if on_a_job_s_word(rule)]
    for rule in judged:
        if not rule.runbook or runbooks[rule.runbook].at_most is not Mode.AUTO:
            continue
        for rung in runbooks[rule.runbook].rungs:
            spec = ACTIONS.get(rung.do)
            if spec is not None and (spec.disrupts.value != "nothing" or spec.drains):
                disrupting.setdefault(rule.runbook, rule.name)
    assert set(disrupting) == set(EXCEPTIONS)
    assert len(judged) >= 4, "what was judged?"
    assert {"job.cuda_error", "job.rdma_error"} <= set(kinds.KINDS)


def auto() -> Story:
    """The shipped rules where everything may go by itself."""
    story = Story(replace(SHIPPED, settings=Settings(modes=(ModeSetting(mode=Mode.AUTO),))), heals=False)
    story.event(0.5, "agent.started", "node")
    return story


def test_a_lost_gpu_that_only_a_job_has_seen_is_a_page() -> None:
    """A user writes the words into his log, with the address of a GPU that another one uses, and without: nobody is drained."""
    story = auto()
    story.event(10, "job.cuda_error", "gpu/0000:3b:00", **LOST)
    story.event(11, "job.cuda_error", "job/4711", **LOST)
    story.run(900)
    assert len(story.incidents("gpu-lost")) == 1
    assert story.time.pages
    touched = [
        name
        for _, name in story.actions()
        if ACTIONS[name].drains or ACTIONS[name].disrupts.value != "nothing"
    ]
    assert touched == []


def test_when_the_driver_says_so_too_it_is_remedied() -> None:
    """The page's incident gets the runbook, also a minute later."""
    story = auto()
    story.event(10, "job.cuda_error", "gpu/0000:3b:00", **LOST)
    story.event(70, "gpu.off_bus", "gpu/0000:3b:00")
    story.run(900)
    assert len(story.incidents("gpu-lost")) == 1
    assert "node.reboot" in [name for _, name in story.actions()]
