"""What `gpuward check` finds wrong with a pack whose types are right."""

from dataclasses import replace
from typing import Any

import pytest

from agent.contract.actions.spec import Disrupts
from brain.core.pack.actions import ACTIONS
from brain.core.pack.spec import (
    Example,
    Expect,
    Given,
    Knowledge,
    Match,
    Rung,
    Symptom,
    Text,
)
from brain.core.rehearsal import proof
from tests.brain.lint_kit import LOST, PACK, RULE, RUNBOOK, SYMPTOM, TEXT, found
from tests.shipped import shipped_pack


def test_a_sound_pack_has_no_problems() -> None:
    """The pack that the tables below change is sound, and its examples pass."""
    assert found(PACK) == []
    assert proof.failures(PACK, ACTIONS) == []


def test_a_test_may_stand_in_the_way_back() -> None:
    """Although elsewhere it disrupts the node."""
    rung = Rung(name="test", do="gpu.diagnose", params={"level": 1}, after=("restart",))
    assert found(replace(PACK, runbooks=(replace(RUNBOOK, return_to_service=(rung,)),))) == []


def test_our_runbooks_resume_no_node_that_nothing_has_tested() -> None:
    """Whatever took the whole node away or may have hurt its GPUs is followed by tests, and they precede the resume."""
    pack = shipped_pack()
    for book in pack.runbooks:
        back = [ACTIONS[rung.do] for rung in book.return_to_service]
        if "scheduler.resume" not in [spec.name for spec in back]:
            continue
        assert back[-1].name == "scheduler.resume", f"{book.name}: the resume is the last rung"
        tests = [rung for rung in book.return_to_service if ACTIONS[rung.do].tests]
        for rung in book.rungs:
            spec = ACTIONS.get(rung.do)
            if spec is not None and spec.heals and spec.disrupts is Disrupts.NODE:
                fitting = [one.do for one in tests if not one.after or rung.name in one.after]
                assert fitting, f"{book.name}: nothing tests what {rung.name} did"
                if spec.takes_node_away:
                    assert {"gpu.links_check", "port.check", "gpu.diagnose"} <= set(fitting), (
                        book.name,
                        rung.name,
                    )
        lenient = [rung.name for rung in tests if rung.on_refusal != "next"]
        assert not lenient, (
            f"{book.name}: {lenient} would keep a node out of service that does not allow them"
        )


def test_our_own_pack_has_no_problems() -> None:
    """gpuward's own rules and runbooks are sound, and all their examples pass."""
    assert proof.failures(shipped_pack(), ACTIONS) == []


def spread(**changes: Any) -> Symptom:
    """A sound `spread` symptom with changes."""
    sound = Symptom(
        name="widely", scope="fabric", summary="many", detect="spread", of="lost", at_least=3, share=0.5
    )
    return replace(sound, **changes)


def unlike(**changes: Any) -> Symptom:
    """A sound `unlike` symptom with changes."""
    sound = Symptom(
        name="differs", scope="node", summary="differs", detect="unlike", on=(Match(kind="node.inventory"),),
        alike=("product",), compare="driver", at_least=5, share=0.8,
    )  # fmt: skip
    return replace(sound, **changes)


SYMPTOMS: tuple[tuple[dict[str, Any], str], ...] = (
    ({"name": "Lost-GPU"}, "symptoms.Lost-GPU: a symptom's name is in snake_case"),
    ({"summary": " "}, "symptoms.lost.summary: is empty"),
    ({"scope": "planet"}, "symptoms.lost.scope: no scope 'planet' (have: gpu, nvswitch"),
    ({"scope": "port"}, "symptoms.lost.on.0.kind: gpu.lost is about gpu: it can not be placed at scope port"),
    ({"on": ()}, "symptoms.lost: needs `on`"),
    (
        {"on": (Match(kind="gpu.gone"),)},
        "symptoms.lost.on.0.kind: there is no event kind 'gpu.gone' (have: gpu.xid",
    ),
    ({"clear": (Match(kind="agent.started"),)}, "symptoms.lost.clear.0.kind: agent.started is about node"),
    (
        {"on": (Match(kind="gpu.lost", where={"code": 1}),)},
        "on.0.where.code: gpu.lost has no field 'code' (have: reason",
    ),
    (
        {"on": (Match(kind="gpu.xid", where={"code": "79"}),)},
        "on.0.where.code: is int: it never compares with '79'",
    ),
    ({"on": (Match(kind="gpu.xid", where={"code": {"is": 7}}),)}, "on.0.where.code: test: no test 'is'"),
    (
        {"on": (Match(kind="gpu.xid", where={"name": [True]}),)},
        "on.0.where.name: is text: it never compares with True",
    ),
    (
        {"on": (Match(kind="gpu.xid", where={"severity": 3}),)},
        "where.severity: is text: it never compares with 3",
    ),
    ({"detect": "count"}, "symptoms.lost.within_s: detect: count needs a window of more than 0 s"),
    ({"detect": "count", "within_s": 9, "at_least": 0}, "symptoms.lost.at_least: must be more than 0"),
    (
        {"detect": "sum", "within_s": 9, "sum_of": "reason"},
        "symptoms.lost.on.0: gpu.lost has no number 'reason'",
    ),
    (
        {"detect": "sum", "within_s": 9, "sum_of": "delta"},
        "symptoms.lost.on.0: gpu.lost has no number 'delta'",
    ),
    ({"sum_of": "index"}, "symptoms.lost.sum_of: is for detect: sum"),
    ({"detect": "lasting"}, "symptoms.lost.for_s: detect: lasting needs how long"),
    (
        {"detect": "lasting", "for_s": 3, "clear": ()},
        "symptoms.lost.clear: detect: lasting needs to know what ends it",
    ),
    (
        {"detect": "flapping", "within_s": 9, "at_least": 5000},
        "symptoms.lost.at_least: a window remembers 1000 changes",
    ),
    ({"detect": "absence", "for_s": 9000}, "symptoms.lost.ttl_s: must not be shorter than for_s"),
    ({"ttl_s": 0}, "symptoms.lost.ttl_s: must be more than 0 s"),
    ({"of": "lost"}, "symptoms.lost: `of` and `share` are for detect: spread"),
    ({"carry": {"why": "colour"}}, "symptoms.lost.carry.why: no fact in `on` has a field 'colour'"),
    ({"apart": ("colour",)}, "symptoms.lost.apart: no fact in `on` has a field 'colour'"),
    (
        {"apart": ("reason",), "clear": ()},
        "symptoms.lost.apart: is for detect: seen and lasting, with `clear`",
    ),
    (
        {"carry": {"why": "reason", "node": "reason"}},
        "symptoms.lost.carry.node: is a name that situations use already",
    ),
)


@pytest.mark.parametrize(("changes", "says"), SYMPTOMS)
def test_symptoms(changes: dict[str, Any], says: str) -> None:
    """One change to a sound symptom, one problem that names it."""
    assert any(says in one for one in found(replace(PACK, symptoms=(replace(SYMPTOM, **changes),))))


SPREADS: tuple[tuple[dict[str, Any], str], ...] = (
    ({}, "symptoms.widely: no rule names it, and no runbook's alone_if"),
    ({"of": "nothing"}, "symptoms.widely.of: there is no symptom 'nothing'"),
    ({"of": "widely"}, "symptoms.widely.of: widely is not a symptom of nodes or their parts"),
    ({"scope": "node"}, "symptoms.widely.scope: a spread is counted at job, chassis, nvlink, leaf"),
    ({"on": (Match(kind="gpu.lost"),)}, "symptoms.widely.on: a spread has no facts of its own"),
    ({"share": 50}, "symptoms.widely.share: is a share: 0 to 1"),
)


@pytest.mark.parametrize(("changes", "says"), SPREADS)
def test_spreads(changes: dict[str, Any], says: str) -> None:
    """The same for symptoms that count nodes."""
    assert any(says in one for one in found(replace(PACK, symptoms=(SYMPTOM, spread(**changes)))))


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"scope": "gpu"}, "symptoms.differs.scope: nodes are compared"),
        (
            {"on": (Match(kind="node.inventory", where={"gpus": 8}),)},
            "symptoms.differs.on: detect: unlike takes all facts",
        ),
        ({"clear": (Match(kind="agent.started"),)}, "symptoms.differs.on: detect: unlike takes all facts"),
        ({"compare": "colour"}, "symptoms.differs: node.inventory has no field 'colour' to compare"),
        ({"alike": ()}, "symptoms.differs.alike: needs the fields"),
        ({"at_least": 2}, "symptoms.differs.at_least: must be at least 3"),
        ({"share": 0.5}, "symptoms.differs.share: is the share of the usual value"),
        ({"of": "lost"}, "symptoms.differs: `of` and `share` are for detect: spread"),
        ({"detect": "seen", "share": 0}, "symptoms.differs: `alike` and `compare` are for detect: unlike"),
    ],
)
def test_comparisons_of_nodes(changes: dict[str, Any], says: str) -> None:
    """The same for symptoms that compare nodes; the sound one has no finding."""
    assert not any(
        "differs" in one and "no rule" not in one
        for one in found(replace(PACK, symptoms=(SYMPTOM, unlike())))
    )
    assert any(says in one for one in found(replace(PACK, symptoms=(SYMPTOM, unlike(**changes)))))


def examples(given: Given = LOST, expect: Expect | None = None) -> tuple[Example, ...]:
    """The sound rule's examples and one more."""
    return (*RULE.examples, Example(name="more", given=(given,), expect=expect or Expect(incidents=1)))


RULES: tuple[tuple[dict[str, Any], str], ...] = (
    ({"name": "Gpu_Lost", "cause": "gpu-lost"}, "rules.Gpu_Lost: a rule's name is in kebab-case"),
    ({"scope": "planet"}, "rules.gpu-lost.scope: no scope 'planet'"),
    (
        {"scope": "port"},
        "rules.gpu-lost.when: a situation of scope port never shows lost, which is of scope gpu",
    ),
    ({"scope": "cell", "runbook": ""}, "rules.gpu-lost.when: a situation of scope cell never shows lost"),
    ({"scope": "rack"}, "rungs.0.do: service.restart runs on a node, but rule gpu-lost is of scope rack"),
    ({"when": {"symptom": "gone"}}, "rules.gpu-lost.when: there is no symptom 'gone'"),
    ({"when": {"why": "lost"}}, "rules.gpu-lost.when: names no symptom"),
    (
        {"when": {"symptom": "lost", "colour": 1}},
        "rules.gpu-lost.when: no situation has a field 'colour' (have: ",
    ),
    (
        {"when": {"symptom": "lost", "why": {"matches": 1}}},
        "rules.gpu-lost.when: when.why: no test 'matches'",
    ),
    ({"when": {"symptom": "lost", "any": []}}, "rules.gpu-lost.when: when: `any` wants a list"),
    ({"because": ""}, "rules.gpu-lost.because: is empty"),
    (
        {"knowledge": Knowledge(cause=Text(en="", zh="x"), todo=TEXT)},
        "rules.gpu-lost.knowledge.cause.en: is empty",
    ),
    (
        {"knowledge": Knowledge(cause=Text(en="x", zh="x"), todo=TEXT)},
        "knowledge.cause.zh: has no Chinese text",
    ),
    ({"knowledge": Knowledge(cause=TEXT, todo=TEXT, links=("www",))}, "knowledge.links.0: is no web address"),
    ({"runbook": "magic"}, "rules.gpu-lost.runbook: there is no runbook 'magic' (have: mend)"),
    ({"runbook": ""}, "runbooks.mend: no rule leads to it"),
    ({"params": {"speed": 3}}, "rules.gpu-lost.params.speed: runbook mend has no `$speed`"),
    ({"hold_off_s": -1}, "rules.gpu-lost.hold_off_s: must not be negative"),
    ({"inhibits": ("rain",)}, "rules.gpu-lost.inhibits.0: no rule has the cause 'rain'"),
    ({"inhibits": ("gpu-lost",)}, "rules.gpu-lost.inhibits.0: a cause does not explain itself"),
    (
        {"examples": RULE.examples[1:]},
        "rules.gpu-lost.examples: there is none that expects an incident 'gpu-lost'",
    ),
    ({"examples": RULE.examples[:1]}, "rules.gpu-lost.examples: there is none that expects `nothing: true`"),
    ({"examples": RULE.examples * 2}, "examples.2.name: there are two examples"),
    ({"examples": examples(expect=Expect())}, "examples.2.expect: expects nothing at all"),
    (
        {"examples": examples(expect=Expect(nothing=True, incidents=0))},
        "examples.2.expect: `nothing: true` stands alone",
    ),
    (
        {"examples": examples(expect=Expect(scope="gpu/n1/x"))},
        "examples.2.expect: `scope` and `runbook` are those of an",
    ),
    (
        {"examples": examples(replace(LOST, kernel="x"))},
        "examples.2.given.0: needs exactly one of kernel, event and",
    ),
    (
        {"examples": examples(Given())},
        "examples.2.given.0: needs exactly one of kernel, event and unreachable",
    ),
    (
        {"examples": examples(replace(LOST, event="gpu.gone"))},
        "given.0.event: there is no event kind 'gpu.gone'",
    ),
    (
        {"examples": examples(replace(LOST, component="link/eth0"))},
        "given.0.component: gpu.lost is about gpu, not link",
    ),
    ({"examples": examples(replace(LOST, component="gpu"))}, "given.0.component: not a component: 'gpu'"),
    ({"examples": examples(replace(LOST, severity="bad"))}, "given.0.severity"),
    ({"examples": examples(replace(LOST, data={}))}, "given.0.data: gpu.lost always says reason too"),
    ({"examples": examples(replace(LOST, data={"reason": 3}))}, "given.0.data.reason: is text, not 3"),
    (
        {"examples": examples(replace(LOST, data={"reason": "lost", "x": 3}))},
        "given.0.data.x: gpu.lost has no field 'x'",
    ),
    (
        {"examples": examples(replace(LOST, nodes=0))},
        "given.0: at and age_s must not be negative, nodes at least 1",
    ),
    (
        {
            "when": {
                "all": [
                    {"symptom": "lost"},
                    *({"any": [{"why": f"{n}"}, {"symptom": "lost"}]} for n in range(20)),
                ]
            }
        },
        "rules.gpu-lost.when: rule gpu-lost: when: 21 groups",
    ),
)


@pytest.mark.parametrize(("changes", "says"), RULES)
def test_rules(changes: dict[str, Any], says: str) -> None:
    """One change to a sound rule, one problem that names it."""
    problems = found(replace(PACK, rules=(replace(RULE, **changes),)))
    assert any(says in one for one in problems), problems


def test_a_failed_example_is_reported() -> None:
    """The sentence says what was expected and what came."""
    wrong = replace(RULE.examples[0], name="lost again", expect=Expect(nothing=True))
    rule = replace(RULE, examples=(*RULE.examples, wrong))
    assert proof.failures(replace(PACK, rules=(rule,)), ACTIONS) == [
        "rules.gpu-lost.examples.2: lost again: expected no incident, "
        "came: gpu-lost at gpu/n1/0000:3b:00 with runbook mend"
    ]
