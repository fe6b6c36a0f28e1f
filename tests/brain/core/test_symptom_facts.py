"""Which facts a symptom counts, what a site makes of them (`overrides`), and what is kept of them as evidence."""

from typing import Any

import pytest

from agent.contract.messages import Severity
from brain.core.pack.spec import Match, Override
from brain.core.state import Evidence
from tests.brain.core.watch import Watch, symptom

KEY = "sick@gpu/n1/0"
ON, NOTHING = [f"+{KEY}"], list[str]()


@pytest.mark.parametrize(
    ("where", "event", "fits"),
    [
        ({}, {}, True),
        ({"severity": "error"}, {}, True),
        ({"severity": "fatal"}, {}, False),
        ({"severity": "fatal"}, {"severity": Severity.FATAL}, True),
        ({"component": "gpu/0"}, {}, True),
        ({"component": "gpu"}, {}, False),
        ({"component_type": "gpu"}, {}, True),
        ({"component_type": "gpu/0"}, {}, False),
        ({"count": {"gte": 3}}, {"count": 3}, True),
        ({"count": {"gte": 3}}, {"count": 2}, False),
        ({"code": 79}, {"code": 79}, True),
        ({"code": 79}, {"code": 62}, False),
        ({"code": 79}, {}, False),
        ({"code": 79, "severity": "error"}, {"code": 79}, True),
        ({"code": 79, "severity": "fatal"}, {"code": 79}, False),
        ({"code": 62, "severity": "error"}, {"code": 79}, False),
    ],
)
def test_which_facts_count(where: dict[str, Any], event: dict[str, Any], fits: bool) -> None:
    """All tests of `where` must pass, on the envelope or on the data."""
    watch = Watch(symptom(on=(Match(kind="x.bad", where=where),)))
    assert watch.fact(100, **event) == (ON if fits else NOTHING)


def test_one_fact_for_several_symptoms() -> None:
    """Each is asked by itself: one that does not match, or has no place here, keeps no other back."""
    watch = Watch(
        symptom(name="other", on=(Match(kind="x.bad", where={"code": 1}),)),
        symptom(name="leafy", scope="leaf"),
        symptom(name="portly", scope="port"),
        symptom(name="nodal", scope="node"),
        symptom(),
    )
    assert watch.fact(100) == ["+nodal@node/n1", f"+{KEY}"]
    assert watch.fact(110, "x.good") == ["-nodal@node/n1", f"-{KEY}"]


def ours(name: str = "ours", **changes: Any) -> Override:
    """A site's own judgement."""
    fields: dict[str, Any] = {"name": name, "on": Match(kind="x.bad", where={"code": 62}), "because": "known"}
    return Override(**(fields | changes))


def test_a_site_that_judges_otherwise() -> None:
    """The first override that fits counts: what it does not name stays; a fact that fits none is left alone."""
    where = {"action": "IGNORE", "severity": "info", "overruled_by": "ours"}
    watch = Watch(
        symptom(on=(Match(kind="x.bad", where=where),)),
        symptom(name="vendors", on=(Match(kind="x.bad", where={"action": "RESET"}),), carry={"by": "overruled_by"}),
        overrides=(
            ours("no", on=Match(kind="x.bad", where={"code": 1}), severity=Severity.FATAL),
            ours(severity=Severity.INFO, action="IGNORE"),
            ours("late", action="RESET"),
        ),
    )  # fmt: skip
    assert watch.fact(100, code=62, action="RESET", evidence="Xid 62") == ON
    assert watch.known().evidence[0].text == "Xid 62 [ours: known]"
    assert watch.fact(110, code=79, action="RESET") == ["+vendors@gpu/n1/0"]
    vendors = watch.known("vendors@gpu/n1/0")
    assert (vendors.evidence[0].text, vendors.carried) == ("code=79, action=RESET", {})


def test_an_override_that_only_says_why() -> None:
    """Severity and action are the event's own; evidence that there was none of begins with the reason."""
    watch = Watch(
        symptom(on=(Match(kind="x.bad", where={"severity": "error", "action": "RESET"}),)),
        overrides=(ours(),),
    )
    assert watch.fact(100, code=62, action="RESET") == ON
    assert watch.known().evidence[0].text == "[ours: known]"


def test_its_evidence() -> None:
    """The first five facts and the newest; a fact without a line shows its data; a long one is shortened."""
    watch = Watch(symptom())
    watch.fact(100, age_s=10, evidence="the line", code=1)
    (first,) = watch.known().evidence
    assert first == Evidence(
        id="n1:s:100", at=90, node="n1", kind="x.bad", component="gpu/0", text="the line"
    )
    for at in range(101, 110):
        watch.fact(at, code=at, bus="3b")
    texts = [evidence.text for evidence in watch.known().evidence]
    assert texts == ["the line", *(f"code={at}, bus=3b" for at in (101, 102, 103, 104, 109))]
    watch.fact(110, evidence="x" * 501)
    assert watch.known().evidence[-1].text == "x" * 499 + "…"
