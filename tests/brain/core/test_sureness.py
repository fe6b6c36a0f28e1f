"""How sure a verdict is: the table of reasons, one by one and together, and what real facts lead to."""

import re
from dataclasses import replace

import pytest

from agent.contract.xid_table import XIDS
from brain.core.inputs import NodeState
from brain.core.why import sureness
from brain.core.why.sureness import TABLE, Grounds, Level
from brain.core.why.xid_candidates import CANDIDATES, OF_CLASS, XidOrigin
from brain.core.why.xid_classes import CLASSES
from tests.brain.world import GPU, Story
from tests.shipped import shipped_pack

PLAIN = Grounds(
    facts=1,
    sources=("kernel log",),
    lasts=False,
    newest_s=5,
    nodes=1,
    stale=False,
    earlier_boot=False,
    unproven=False,
    silence=False,
    unknown=False,
    place="",
    codes=(),
    candidates=(),
)
APP_OR_HARDWARE = (XidOrigin.APPLICATION, XidOrigin.HARDWARE)
ROWS: dict[str, tuple[Grounds, Level, str]] = {
    "repeated": (replace(PLAIN, facts=3), Level.SURE, "it was told 3 times"),
    "sources": (
        replace(PLAIN, sources=("kernel log", "NVML")),
        Level.SURE,
        "2 independent sources say so: kernel log, NVML",
    ),
    "lasts": (replace(PLAIN, lasts=True), Level.SURE, "it is a state that the node has read"),
    "nodes": (replace(PLAIN, nodes=7), Level.SURE, "7 nodes show it"),
    "one_cause": (
        replace(PLAIN, codes=(79,), candidates=(XidOrigin.HARDWARE,)),
        Level.SURE,
        "the catalogue knows one thing that XID 79 comes from: the hardware",
    ),
    "place": (replace(PLAIN, place="high"), Level.SURE, "nearly all nodes that show it are in this place"),
    "stale": (replace(PLAIN, stale=True), Level.UNCLEAR, "every fact was old when it arrived"),
    "place_unsure": (replace(PLAIN, place="low"), Level.UNCLEAR, "see the places considered"),
    "earlier_boot": (replace(PLAIN, earlier_boot=True), Level.UNCLEAR, "has started anew since"),
    "one_old_fact": (replace(PLAIN, newest_s=720), Level.UNCLEAR, "it rests on one fact, 12 minutes old"),
    "several_causes": (
        replace(PLAIN, codes=(13,), candidates=APP_OR_HARDWARE),
        Level.UNCLEAR,
        "several things that XID 13 can come from: the application; the hardware",
    ),
    "job_only": (replace(PLAIN, sources=("job log",)), Level.UNCLEAR, "only a job's own output says so"),
    "from_start": (replace(PLAIN, from_start=True), Level.UNCLEAR, "may have other work by design"),
    "silence": (replace(PLAIN, silence=True, lasts=True), Level.UNCLEAR, "it rests on silence"),
    "unknown": (replace(PLAIN, unknown=True), Level.UNCLEAR, "the catalogue does not know"),
    "unproven": (replace(PLAIN, unproven=True), Level.UNCLEAR, "ended without a fact that says so"),
}


def test_the_table_has_a_case_for_each_row() -> None:
    """A reason that nobody shows is none."""
    assert list(ROWS) == [row.name for row in TABLE]
    assert sureness.judged(PLAIN).level is Level.LIKELY, "nothing speaks for it, and nothing against it"


@pytest.mark.parametrize("name", ROWS)
def test_each_reason_alone(name: str) -> None:
    """It is given, in both languages, on its side; and no other is."""
    given, level, text = ROWS[name]
    found = sureness.judged(given)
    row = next(row for row in TABLE if row.name == name)
    said, other = (found.reasons, found.against) if row.favours else (found.against, found.reasons)
    (one,) = said
    assert not other
    assert text in one.en
    assert re.search("[\u4e00-\u9fff]", one.zh)
    assert found.level is level


def test_reasons_on_both_sides() -> None:
    """As much for it as against it: likely. More against it: unclear."""
    both = replace(PLAIN, facts=4, stale=True)
    assert sureness.judged(both).level is Level.LIKELY
    assert sureness.judged(replace(both, earlier_boot=True)).level is Level.UNCLEAR
    assert sureness.judged(replace(both, lasts=True)).level is Level.LIKELY, (
        "what speaks against it is not outvoted"
    )


def test_what_else_it_may_be() -> None:
    """The candidates of the catalogue where there are several, and what a silent node can be."""
    several = sureness.judged(replace(PLAIN, candidates=APP_OR_HARDWARE, codes=(13,))).alternatives
    assert [one.en.partition(":")[0] for one in several] == ["the application", "the hardware"]
    assert not sureness.judged(replace(PLAIN, candidates=(XidOrigin.HARDWARE,), codes=(79,))).alternatives
    assert len(sureness.judged(replace(PLAIN, silence=True)).alternatives) == 3


def test_every_class_of_the_catalogue_has_candidates() -> None:
    """A new class in rules/catalog/xid.yaml cannot be forgotten here, and each code is one of the catalogue."""
    assert set(CLASSES.values()) == set(OF_CLASS)
    assert CLASSES.keys() <= XIDS.keys()
    assert CANDIDATES[79] == (XidOrigin.HARDWARE,)
    assert CANDIDATES[13][0] is XidOrigin.APPLICATION


def sure_of(story: Story, cause: str) -> sureness.Sureness:
    """How sure the newest incident of this cause is."""
    incident = story.incidents(cause)[-1]
    ctx = story.engine.look()
    return sureness.of(ctx, ctx.state.incidents[incident.id])


def test_what_facts_lead_to() -> None:
    """An XID 79 in the kernel log is the hardware; NVML that no longer finds the card is a second source."""
    story = Story(shipped_pack())
    story.event(1, "gpu.xid", GPU, code=79, action="RESTART_BM", name="x")
    story.run(5)
    one = sure_of(story, "gpu-lost")
    assert one.level is Level.SURE
    assert ["XID 79" in reason.en for reason in one.reasons] == [True]
    story.event(6, "gpu.lost", GPU, reason="lost")
    story.run(8)
    two = sure_of(story, "gpu-lost")
    assert any(
        reason.en.startswith("2 independent sources say so: kernel log, NVML") for reason in two.reasons
    )
    assert any("a state that the node has read" in reason.en for reason in two.reasons)


def test_old_news_and_another_boot() -> None:
    """What is past says so: the facts were old when they came, and then the node started anew."""
    story = Story(shipped_pack())
    story.event(1000, "gpu.xid", GPU, code=79, action="RESTART_BM", name="x", age_s=900)
    story.run(1005)
    found = sure_of(story, "gpu-lost")
    assert found.level is Level.LIKELY
    assert [one.en.partition(" when")[0] for one in found.against] == ["every fact was old"]
    story.engine.state.nodes["n1"].booted_at = 1009.0
    assert any("started anew" in one.en for one in sure_of(story, "gpu-lost").against)


def test_a_silent_node_may_be_three_things() -> None:
    """Silence proves nothing."""
    story = Story(shipped_pack())
    story.time.feed(NodeState(id="gone", node="n1", alive=False, silent_s=20), 1)
    story.run(200)
    found = sure_of(story, "node-unreachable")
    assert found.level is Level.UNCLEAR
    assert "the node is down" in [one.en for one in found.alternatives]
