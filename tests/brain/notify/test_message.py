"""What a page says: everything that a decision at night needs, the same in text and JSON."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from brain.adapters.pack import load
from brain.core.healing import told
from brain.core.paging.queue import What
from brain.core.state import Evidence, IncidentState, RunState, State
from brain.notify.compose import MAX_EVIDENCE_LINES, compose, compose_from
from tests.brain.notify.pages import LINE, T0, incident, page, rule, run

ROOT = Path(__file__).parents[3]
OPEN_PAGE = f"""\
[P1] gpu lost on gpu/n1/0000:3b:00
  where      gpu/n1/0000:3b:00
  evidence   2023-11-14T22:13:15Z n1 gpu/0000:3b:00 gpu.xid: {LINE}
             2023-11-14T22:13:20Z n1 gpu/0000:3b:00 gpu.removed: remove
             2023-11-14T22:13:21Z n1 gpu/0000:3b:00 gpu.lost: lost
  why now    needs an approval
  since      2023-11-14T22:13:15Z
  because    The driver lost the PCIe connection to this GPU.
  tried      2023-11-14T22:13:23Z gpu-lost: evidence: evidence.collect(component=gpu/0000:3b:00) -> ok \
(bundle inc-1.r1.s0.a1.tar.gz, 12 files)
  proposed   gpu-lost (inc-1.r1) needs an approval: disrupts the node
               bounce: link.bounce(link=link/eth1), disrupts node
  cause      A PCIe, power or heat fault.
             PCIe、供电或过热故障。
  what to do Power the node off and on, then reseat the GPU.
             断电重启节点，再重新插拔 GPU。
  see        https://docs.nvidia.com/deploy/xid-errors/
  type       gpuward ack inc-1    # I look at it: stop repeating the page
             gpuward approve inc-1.r1 --rung bounce    # let gpu-lost do its next rung
             gpuward hold node/n1 --why '...'    # gpuward must not act there
             gpuward explain inc-1    # the whole chain, back to the kernel line
"""


def test_an_open_page_says_what_where_since_when_and_what_to_type() -> None:
    """The golden page: a lost GPU whose next rung waits for an approval."""
    message = compose(
        page(text="needs an approval"), rule=rule(), runs=[run(RunState.APPROVAL, why="disrupts the node")]
    )
    assert message.to_text() == OPEN_PAGE


def test_why_is_told_in_the_readers_language() -> None:
    """Of a rule without Chinese in English, and never twice."""
    both, english = "驱动失去了与该 GPU 的 PCIe 连接", "The driver lost the PCIe connection to this GPU."
    given = page()
    of_both = compose(replace(given, subject=replace(given.subject, because_zh=both)), rule=rule())
    texts = {language: of_both.to_text(language) for language in ("both", "en", "zh")}
    assert [(text.count(english), text.count(both)) for text in texts.values()] == [(1, 1), (1, 0), (0, 1)]
    alone = compose(given, rule=rule())
    assert [alone.to_text(language).count(english) for language in ("both", "en", "zh")] == [1, 1, 1]


def test_the_json_form_says_the_same() -> None:
    """A receiver finds the status, the deduplication key and both languages by stable names."""
    message = compose(page(), rule=rule(), runs=[run(RunState.APPROVAL)])
    body = json.loads(message.to_json())
    assert (body["status"], body["dedup_key"], body["severity"]) == ("trigger", "inc-1", "P1")
    assert body["evidence_ids"] == ["n1:a:4", "n1:a:6", "n1:a:5"]
    assert body["knowledge"]["todo"]["zh"].startswith("断电")
    assert {
        "line": "gpuward approve inc-1.r1 --rung bounce",
        "does": "let gpu-lost do its next rung",
    } in body["commands"]
    assert set(body) == {
        "status", "id", "dedup_key", "what", "group", "title", "severity", "cause", "scope", "node", "nodes",
        "state", "why_now", "because", "because_zh", "since", "evidence", "evidence_ids", "tried", "proposed", "commands",
        "knowledge", "links", "subject", "acked_by", "severities", "incidents", "trace_id", "untold", "stops", "common",
            "buttons", "hit", "about", "before", "tickets", "again",
        "tickets_before", "time",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("what", "status", "title"),
    [
        ("open", "trigger", "[P1] gpu lost on gpu/n1/0000:3b:00"),
        ("repeat", "trigger", "[P1] STILL OPEN: gpu lost on gpu/n1/0000:3b:00"),
        ("update", "trigger", "[P1] UPDATE: gpu lost on gpu/n1/0000:3b:00"),
        ("ack", "acknowledge", "[P1] ACKNOWLEDGED: gpu lost on gpu/n1/0000:3b:00"),
        ("resolve", "resolve", "[P1] RESOLVED: gpu lost on gpu/n1/0000:3b:00"),
    ],
)
def test_each_kind_of_page_is_told_apart(what: What, status: str, title: str) -> None:
    """Title and status differ; all pages of one incident share the key."""
    message = compose(page(what), rule=rule())
    assert (message.to_dict()["status"], message.title, message.dedup_key) == (status, title, "inc-1")


def test_what_another_incident_explains_is_taken_over_not_resolved() -> None:
    """The alert ends, for an alert of the wider fault stands for it; the fault does not."""
    why = "gpu-lost at gpu/n1/0000:3b:00 explains it (incident inc-2)"
    message = compose(page("resolve", about=incident(IncidentState.EXPLAINED), text=why), rule=rule())
    assert (message.to_dict()["status"], message.title) == (
        "resolve",
        "[P1] TAKEN OVER: gpu lost on gpu/n1/0000:3b:00",
    )
    assert (message.why_now, message.untold) == (why, False)
    assert "RESOLVED" not in message.to_text()


def test_what_came_and_went_while_no_channel_worked_is_told_once_and_whole() -> None:
    """Not as the end of something that nobody has heard of: the page says what it was, on what evidence, and that it is over."""
    message = compose(
        page("resolve", text="its symptoms have been gone for 60 s", alerted=()),
        rule=rule(),
        runs=[run(RunState.SUCCEEDED)],
    )
    assert (message.to_dict()["status"], message.untold) == ("resolve", True)
    assert message.title == "[P1] CAME AND WENT: gpu lost on gpu/n1/0000:3b:00"
    assert message.why_now == "no channel took its page while it lasted; its symptoms have been gone for 60 s"
    text = message.to_text()
    assert all(
        part in text
        for part in (LINE, "The driver lost", "A PCIe, power or heat fault.", "tried", "gpuward explain")
    )
    assert not any(part in text for part in ("gpuward ack", "what to do", "proposed"))


def test_a_resolution_is_short() -> None:
    """It says what was tried and how to look it up, and asks for nothing."""
    text = compose(
        page("resolve", text="quiet for 30 s"), rule=rule(), runs=[run(RunState.SUCCEEDED)]
    ).to_text()
    assert "tried" in text
    assert "gpuward explain inc-1" in text
    assert not any(word in text for word in ("gpuward ack", "gpuward approve", "what to do", "proposed"))


@pytest.mark.parametrize(
    ("state", "says"),
    [
        (RunState.OBSERVED, "would run, if its mode allowed it"),
        (RunState.HELD, "gpu-lost (inc-1.r1): bounce waits: node/n1 is held"),
        (RunState.PERFORMING, ""),
    ],
)
def test_what_is_proposed_follows_the_run(state: RunState, says: str) -> None:
    """Observe mode shows the whole plan, a hold its reason; a run that is at work proposes nothing."""
    why = "bounce waits: node/n1 is held" if state is RunState.HELD else ""
    lines = compose(page(), runs=[run(state, why=why)]).proposed
    assert (says in lines[0]) if says else lines == ()
    if state is RunState.OBSERVED:
        assert [line.split(":")[0].strip() for line in lines[1:]] == ["evidence", "bounce"]


def test_what_a_page_would_say_is_proposed_in_words() -> None:
    """Of every runbook that we ship: its texts have words for what has not happened yet."""
    for book in load(ROOT / "rules", ROOT / "runbooks").runbooks:
        lines = compose(page(), runs=[replace(run(RunState.OBSERVED), runbook=book)]).proposed
        assert not [line for line in lines for word in told.WORDS if f"${word}" in line]
        texts = [str(rung.params.get("text", "")) for rung in book.rungs]
        assert any("[what was done]" in line for line in lines) == any("$done" in text for text in texts)


def test_the_page_of_a_shared_cause_says_what_to_do() -> None:
    """Its rule is generated, and in no file."""
    state = State(pack=load(ROOT / "rules", ROOT / "runbooks"))
    about = replace(
        incident(), rule="shared-node-unreachable-cell", cause="shared-node-unreachable-cell", scope="cell", node="", nodes=12
    )  # fmt: skip
    text = compose_from(state, page(about=about)).to_text()
    assert "cause      Shared cause of: the node's agent is unreachable" in text
    assert "what to do " in text
    assert "where      cell (12 nodes)" in text


def test_a_given_up_incident_says_that_a_person_must_act() -> None:
    """When the ladder is used up, the page says so."""
    message = compose(page(about=incident(IncidentState.NEEDS_HUMAN)), runs=[run(RunState.EXHAUSTED)])
    assert message.proposed == ("gpu-lost has nothing left to try: a person must fix it",)


@pytest.mark.parametrize(
    ("worked", "unproven", "label", "proposed"),
    [
        ("", False, "UPDATE: ", "nothing: the fault is over, and n1 stays out of service until you give it back"),
        ("", True, "GAVE UP: ", "gpu-lost has nothing left to try: a person must fix it"),
        ("reset worked", False, "GAVE UP: ", "gpu-lost has nothing left to try: a person must fix it"),
    ],
    ids=["over by facts", "only silence says so", "a test before the return has failed"],
)  # fmt: skip
def test_a_node_that_waits_for_a_word_only(worked: str, unproven: bool, label: str, proposed: str) -> None:
    """Its card is replaced: the page does not say that gpuward gave up, nor to replace the card; it says what to type."""
    about = replace(
        incident(IncidentState.NEEDS_HUMAN), symptoms=["gpu_off_bus@gpu/n1/0000:3b:00"], unproven=unproven
    )
    tried = replace(run(RunState.EXHAUSTED), worked=worked, spent=True)
    message = compose(page("update", about=about), rule=rule(), runs=[tried])
    assert message.title == f"[P1] {label}gpu lost on gpu/n1/0000:3b:00"
    assert message.proposed == (proposed,)
    over = label == "UPDATE: "
    assert ("gpuward return n1    # the node is healthy: give it back" in message.to_text()) == over
    assert ("reseat the GPU" in message.to_text()) != over


def test_a_step_that_waits_says_for_what() -> None:
    """Whoever reads the page at night sees which jobs the drain waits for."""
    waits = run(RunState.PERFORMING)
    waits.steps[0].outcome, waits.steps[0].why, waits.steps[0].doing = "", "", "waiting for 2 jobs: 71, 72"
    assert compose(page(), runs=[waits]).tried[0].endswith("-> under way: waiting for 2 jobs: 71, 72")


def test_a_page_names_the_hold_and_the_window() -> None:
    """Whoever is woken by a node under somebody's hands reads whose they are; of a resolution nobody needs it."""
    about = replace(page().subject, stops=("bob holds node/n1: new card", "pod/p1 is in maintenance: busbar"))
    text = compose(replace(page(), subject=about)).to_text()
    assert "  stopped    bob holds node/n1: new card\n             pod/p1 is in maintenance: busbar\n" in text
    assert "holds" not in compose(replace(page("resolve"), subject=about)).to_text()


def test_the_page_of_a_wide_fault_names_the_place_that_its_nodes_share() -> None:
    """In a cell of two leaves one dead leaf is many of all nodes: the page says which leaf it is."""
    about = replace(page().subject, scope="cell", node="", nodes=8, common=("leaf/l1", "pod/p1"))
    text = compose(replace(page(), subject=about)).to_text()
    assert "where      cell (8 nodes, all of them of leaf/l1 and pod/p1)" in text


def test_a_storm_of_evidence_is_bounded_and_keeps_the_first_fact() -> None:
    """A thousand facts give a handful of lines: the first one, then the newest of each kind."""
    facts = [
        Evidence(
            id=f"n{n}:a:1", at=T0 + n, node=f"n{n}", kind="ib.sm_lid", component="port/mlx5_0.1", text="7"
        )
        for n in range(1000)
    ]
    message = compose(page(about=incident(evidence=facts)))
    assert len(message.evidence) == MAX_EVIDENCE_LINES
    assert message.evidence_ids[0] == "n0:a:1"
    assert message.evidence_ids[-1] == "n999:a:1"


def test_odd_text_stays_one_line_and_short() -> None:
    """A kernel line with line breaks and 10,000 characters does not break the page's shape."""
    fact = Evidence(
        id="n1:a:1", at=T0, node="n1", kind="gpu.xid", component="gpu/0000:3b:00", text="a\nb " * 5000
    )
    (line,) = compose(page(about=incident(evidence=[fact]))).evidence
    assert "\n" not in line
    assert len(line) <= 300


def test_a_page_says_who_is_hit_in_a_line() -> None:
    """Whoever is woken reads whose job it is and how much of it; where that is not known nothing stands there, and at the end
    nobody needs it.
    """
    about = replace(page().subject, hit="alice's 4711 (1 of its 16 nodes), and 2 more jobs")
    message = compose(replace(page(), subject=about), rule=rule())
    assert "  hit        alice's 4711 (1 of its 16 nodes), and 2 more jobs\n" in message.to_text()
    assert "  受影响     alice's 4711" in message.to_text("zh")
    assert json.loads(message.to_json())["hit"] == about.hit
    assert "alice's 4711" in message.to_text(limit=900), "with little room, too"
    over = compose(replace(page("resolve"), subject=about))
    assert "  hit  " not in over.to_text()
    assert "  hit  " not in compose(page()).to_text()
    long = compose(replace(page(), subject=replace(about, hit="x\n\x1b[2J" * 9000)))
    assert max(map(len, long.to_text().splitlines())) < 1000
