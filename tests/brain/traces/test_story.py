"""An incident as spans: what stands where, what is an error, and that nothing that was told changes later."""

from pathlib import Path
from typing import Any

import pytest

from agent.contract.xid_facts import XidReader
from brain.core.pack.spec import Mode
from brain.traces import otlp
from brain.traces.ids import span_id, trace_id
from brain.traces.spans import MAX_SPANS, Span, said
from tests.brain.test_remedies import HEAD, WANTS, shipped
from tests.brain.traces.kit import Seen, history, look_over, outline, seen, told
from tests.brain.world import Story, pack


def trace(folder: Path, story: Story, cause: str) -> list[Seen]:
    """The trace of the only incident of that cause, as a collector reads it."""
    (incident,) = story.incidents(cause)
    found = told(history(folder, story), incident.id)
    return seen(otlp.request([(incident.id, span) for span in found], {"service.name": "gpuward"}, "1"))


def named(found: list[Seen], name: str) -> Seen:
    (span,) = (one for one in found if one.name == name)
    return span


def link_down(**more: Any) -> Story:
    story = Story(**more)
    story.event(10, "link.state", "link/ib0", age_s=0.4, up=False)
    return story


def test_a_fault_that_is_healed(tmp_path: Path) -> None:
    """From the moment when the node saw the line to the resolution of the page, with every wait on the way."""
    found = trace(tmp_path, link_down().run(600), "link-down")
    root = look_over(found)
    assert outline(found) == [
        "incident link-down",
        "  symptom link_down",
        "    fact link.state",
        "  decide",
        "  hold-off",
        "  page open",
        "  run bounce",
        "    gate settling",
        "    step link.bounce",
        "    verify",
        "  recovered",
        "  page resolve",
    ]
    fact = named(found, "fact link.state")
    assert fact.start == pytest.approx(9.6)
    assert fact.end == pytest.approx(10.0)
    assert fact.attributes["gpuward.event.age_s"] == pytest.approx(0.4)
    assert fact.attributes["host.name"] == "n1"
    assert fact.attributes["gpuward.event.text"] == "link.state on link/ib0"
    assert root.start == fact.start
    assert named(found, "hold-off").end == pytest.approx(11.0), "the rule's hold_off_s"
    page = named(found, "page open")
    assert page.attributes["gpuward.page.group"] == "oncall"
    assert page.attributes["gpuward.page.channel"] == "test"
    assert page.attributes["gpuward.page.attempts"] == 1
    assert page.end - page.start == pytest.approx(0.1)
    step = named(found, "step link.bounce")
    assert step.attributes["gpuward.step.outcome"] == "ok"
    assert named(found, "verify").start == step.end
    assert root.end == named(found, "page resolve").end
    assert not [span.name for span in found if span.error]


def test_people_had_to_act(tmp_path: Path) -> None:
    """The remedy does not help: each verification is an error, and so are the run and the incident."""
    story = link_down(heals=False)
    story.event(200, "link.state", "link/ib0", up=True)
    found = trace(tmp_path, story.run(1000), "link-down")
    root = look_over(found)
    assert outline(found) == [
        "incident link-down !",
        "  symptom link_down",
        "    fact link.state",
        "  decide",
        "  hold-off",
        "  page open",
        "  run bounce !",
        "    gate settling",
        "    step link.bounce",
        "    verify !",
        "    step link.bounce",
        "    verify !",
        "  page update",
        "  needs human",
        "  recovered",
        "  page resolve",
    ]
    assert root.attributes["error.type"] == "needs_human"
    assert named(found, "needs human").end == pytest.approx(200.0)
    (first, second) = (one for one in found if one.name == "verify")
    assert first.attributes["error.type"] == "not_verified"
    assert first.end <= second.start


def test_a_page_that_nobody_takes_at_first(tmp_path: Path) -> None:
    """Each failed attempt is an event of the page's span; the channel that took it in the end, and how many there were."""
    found = trace(tmp_path, link_down(undelivered=1, heals=False).run(16), "link-down")
    assert not [one for one in found if one.name == "page open"], "not yet: its end is not known"
    story = link_down(undelivered=1)
    found = trace(tmp_path / "later", story.run(600), "link-down")
    look_over(found)
    pages = [one for one in found if one.name.startswith("page")]
    assert (pages[0].name, pages[0].attributes["gpuward.page.attempts"]) == ("page open", 2)
    ((at, name, pairs),) = pages[0].events
    assert name == "page.undelivered"
    assert pages[0].start < at < pages[0].end
    assert "refused" in dict(pairs)["gpuward.why"]


def test_gates_and_people_are_waited_for(tmp_path: Path) -> None:
    """A hold is one span, named by its gate; the wait for an approval is another one, until the person has said it."""
    story = Story(pack(Mode.APPROVE))
    story.say(5, "hold", scope="node/n1", why="work on it")
    story.event(10, "link.state", "link/ib0", up=False)
    story.say(100, "release", scope="node/n1")
    story.run(200)
    (incident,) = story.incidents("link-down")
    story.say(300, "approve", id=incident.id)
    found = trace(tmp_path, story.run(1000), "link-down")
    root = look_over(found)
    held, approval = named(found, "gate hold"), named(found, "approval")
    assert held.attributes["gpuward.gate"] == "hold"
    assert held.start == pytest.approx(11.0)
    assert held.end == approval.start
    assert 100 <= approval.start < approval.end == pytest.approx(300.0)
    assert named(found, "step link.bounce").start >= approval.end
    assert held.parent == approval.parent == named(found, "run bounce").id
    assert root.attributes["gpuward.incident.state"] == "closed"


def test_what_another_incident_explains_leads_there(tmp_path: Path) -> None:
    """Its trace ends with it, and a link leads to the trace of the cause."""
    story = Story(pack(places={}))
    for number in range(1, 6):
        story.event(10 + number / 10, "ib.sm_lid", node=f"n{number}")
    story.run(900)
    (cause,) = story.incidents("sm-failover")
    explained = story.incidents("sm-moved")
    assert explained
    kept = history(tmp_path, story)
    for incident in explained:
        pairs = [(incident.id, span) for span in told(kept, incident.id)]
        root = look_over(seen(otlp.request(pairs, {}, "1")))
        assert root.links == (trace_id(cause.id),)
        assert root.attributes["gpuward.explained_by"] == cause.id


LINES = {
    "reset": (WANTS + "0x1 (GPU Reset Required)",),
    "reboot": (WANTS + "0x2 (Node Reboot Required)",),
    "two": (HEAD + "95, pid=7, name=a, Uncontained: FBHUB (0x1). RST: Yes, D-RST: No", WANTS + "0x2 (Node Reboot Required)"),
    "gone": (HEAD + "79, GPU has fallen off the bus.",),
    "unknown": (WANTS + "0x8 (Something New)",),
}  # fmt: skip


@pytest.mark.parametrize("which", list(LINES))
def test_what_was_told_never_changes(which: str, tmp_path: Path) -> None:
    """Told at any moment, again later, by another brain: the same spans. What ends later comes on top; nothing is taken back."""
    story = Story(shipped())
    for index, line in enumerate(LINES[which]):
        (unsent,) = XidReader().read(line)
        data: dict[str, Any] = dict(unsent.data)
        story.event(10 + index / 10, unsent.kind, unsent.component, severity=unsent.severity, **data)
    before: dict[str, dict[str, Span]] = {}
    for until in (10.0, 10.05, 11, 12, 13, 15, 20, 30, 60, 120, 300, 600, 1200, 2400, 4000, 9000):
        kept = history(tmp_path / f"{until}", story.run(until))
        for incident in story.incidents():
            now = {span.id: span for span in told(kept, incident.id)}
            for span in before.get(incident.id, {}).values():
                assert now[span.id] == span, f"at {until}"
            before[incident.id] = now
        kept.close()
    assert before
    for id_, found in before.items():
        if span_id(id_) in found:
            look_over(seen(otlp.request([(id_, span) for span in found.values()], {}, "1")))


def test_a_trace_is_bounded(tmp_path: Path) -> None:
    """A fault that comes and goes for days: so many spans, and the first one says how many were left out."""
    story = Story(heals=False)
    at = 10.0
    for _ in range(MAX_SPANS):
        story.event(at, "link.state", "link/ib0", up=False)
        story.event(at + 3, "link.state", "link/ib0", up=True)
        at += 6
    story.run(at + 20_000)
    found = trace(tmp_path, story, "link-down")
    assert len(found) == MAX_SPANS
    root = look_over(found)
    assert root.attributes["gpuward.spans.left_out"] > 0


def test_ids_are_what_the_page_says() -> None:
    """`printf inc-... | sha256sum | cut -c-32`, as docs/operations.md has it; an alert group has no trace."""
    assert trace_id("inc-3aqk7v2m") == "84cd91bb1d2b3352fed90a374c20dbf6"
    assert len(span_id("inc-3aqk7v2m")) == 16
    assert trace_id("grp-3aqk7v2m") == ""


def test_foreign_text_does_nothing_where_it_is_shown() -> None:
    """What a node says is one line in which nothing acts, and always UTF-8."""
    odd = "a\x1b[31mred\u202e \ud800 end\n2"
    span = Span(
        id="0" * 16,
        parent="",
        name=odd,
        start=1,
        end=2,
        attributes=said(why=odd),
        error="failed",
        message=odd,
    )
    (found,) = seen(otlp.request([("inc-a", span)], {}, "1"))
    shown = r"a\x1b[31mred\u202e \ud800 end 2"
    assert (found.name, found.error, found.attributes["gpuward.why"]) == (shown, shown, shown)
