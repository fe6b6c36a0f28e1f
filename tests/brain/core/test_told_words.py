"""The words of a page, one by one: what each says of what the incident's runs have done."""

from dataclasses import replace
from typing import Any

import pytest

from brain.core.healing import told
from brain.core.state import OwnedDrain, StepRecord
from tests.brain.core.cell import NOW, Cell, Given
from tests.brain.core.givens import on

DRAIN, OFF, POWER_OFF = "scheduler.drain", "node.isolate", "bmc.power_off"
COLLECT, OF_BMC = "evidence.collect", "bmc.evidence"


def did(action: str, outcome: str, why: str = "so it is", run: str = "inc-1.r1", **more: Any) -> Given:
    """A run of the incident has performed a step; without another id it is the one whose page is written."""

    def given(cell: Cell) -> None:
        if run not in cell.incident.runs:
            cell.incident.runs.append(run)
        of = cell.state.runs.setdefault(run, replace(cell.run, id=run, steps=[]))
        name = more.pop("rung", action.rpartition(".")[2])
        of.steps.append(
            StepRecord(id="x", rung=name, action=action, params={}, at=NOW, outcome=outcome, why=why, **more)
        )

    return given


def owned(node: str = "n1", *, sure: bool = False) -> Given:
    """An incident keeps the node out of service; the scheduler has said that it is."""

    def given(cell: Cell) -> None:
        cell.state.drains[node] = {"inc-1": OwnedDrain(since=NOW, sure=sure)}

    return given


def anothers() -> Given:
    """Another incident has asked for a drain, and the scheduler has not said what came of it."""
    return lambda cell: cell.state.drains.update(n1={"inc-2": OwnedDrain(since=NOW, marks=["inc-2"])})


def inherited() -> Given:
    """An incident that is over has left its mark on the node."""
    return lambda cell: cell.state.drains.update(
        n1={"inc-1": OwnedDrain(since=NOW, marks=["inc-1", "inc-0"])}
    )


def forgotten_run() -> Given:
    """The incident had a run that nobody knows any more."""

    def given(cell: Cell) -> None:
        cell.incident.runs.append("inc-1.r0")

    return given


def says(text: str, *givens: Given) -> str:
    """The text as people read it."""
    cell = Cell(*givens)
    return told.fill(cell.ctx(), cell.run, text)


NO_NEW = "n1 gets no new jobs (so it is)."
NOT_DRAINED = "n1 was not drained: new jobs may start there."
NOT_WELL = "The drain of n1 did not end well (so it is): check whether new jobs may start there."
COULD_NOT = "n1 could NOT be drained (so it is): new jobs may start there."
UNSURE = "It is not certain that n1 is drained: check whether new jobs may start there."
UNSURE_WHY = "It is not certain that n1 is drained (so it is): check whether new jobs may start there."
KEPT = "The evidence is kept (`gpuward evidence x`)."
MAYBE = "It is not certain that there is evidence of this run (so it is): see `gpuward evidence x`."
OUT = owned(sure=True)
BACK = "n1 was drained and has been given back: new jobs may start there."


@pytest.mark.parametrize(
    ("givens", "text"),
    [
        pytest.param([], NOT_DRAINED, id="nobody tried"),
        pytest.param([owned("n2", sure=True)], NOT_DRAINED, id="another node is drained"),
        pytest.param([OUT], "n1 gets no new jobs.", id="another incident has drained it"),
        pytest.param([did(DRAIN, "ok"), OUT], NO_NEW, id="it is drained"),
        pytest.param([did(DRAIN, "ok", why=""), OUT], "n1 gets no new jobs.", id="with no more to say"),
        pytest.param([did(DRAIN, "ok"), did(OFF, "failed", why="dead"), OUT], NO_NEW, id="what fails later undoes no drain"),
        pytest.param([did(DRAIN, "refused"), OUT], "n1 gets no new jobs.", id="ours was refused: another has drained it"),
        pytest.param([did("gpu.reset", "ok"), OUT], "n1 gets no new jobs.", id="another step is no drain"),
        pytest.param([owned()], UNSURE, id="the scheduler has not said so"),
        pytest.param([did(DRAIN, "ok"), owned()], UNSURE, id="it is about to be given back"),
        pytest.param([did("gone.by", "failed"), owned()], UNSURE, id="a step that nobody knows is no drain"),
        pytest.param([did(DRAIN, "withdrawn", why="a hold"), owned()], UNSURE, id="one that never left is none"),
        pytest.param([did(DRAIN, "ok")], BACK, id="it was drained"),
        pytest.param([did(DRAIN, "ok"), did(DRAIN, "withdrawn")], BACK, id="and the next one never left"),
        pytest.param([did(DRAIN, "ok", run="inc-1.r0")], BACK, id="by an earlier run"),
        pytest.param([forgotten_run(), did(DRAIN, "ok")], BACK, id="an earlier run is forgotten"),
        pytest.param([did(DRAIN, "failed"), owned()], NOT_WELL, id="its jobs did not end"),
        pytest.param([did(DRAIN, "unknown"), owned()], NOT_WELL, id="nobody knows"),
        pytest.param([did(DRAIN, "unreachable"), owned()], COULD_NOT, id="the scheduler is away"),
        pytest.param(
            [did(DRAIN, "unknown", run="inc-1.r0"), did(DRAIN, "unreachable"), owned()],
            NOT_WELL,
            id="the scheduler is away, but an earlier step may have drained it",
        ),
        pytest.param(
            [did(DRAIN, "refused"), did(DRAIN, "withdrawn"), did(DRAIN, "unreachable"), owned()],
            COULD_NOT,
            id="no step has begun",
        ),
        pytest.param([did(DRAIN, "refused"), anothers()], UNSURE_WHY, id="ours was refused, another's may stand"),
        pytest.param([did(DRAIN, "unreachable"), inherited()], UNSURE_WHY, id="one that was left to it may stand"),
        pytest.param([did(DRAIN, "failed")], COULD_NOT, id="it was undone"),
        pytest.param([did(DRAIN, "refused")], COULD_NOT, id="the scheduler refused"),
        pytest.param([did(DRAIN, "ok", run="inc-1.r0"), did(DRAIN, "refused")], COULD_NOT, id="the last one counts"),
        pytest.param([did(OFF, "refused")], COULD_NOT, id="to fence it is a drain, too"),
        pytest.param(
            [on("leaf/l1", ""), did(DRAIN, "refused")],
            "The node could NOT be drained (so it is): new jobs may start there.",
            id="the incident is about no single node",
        ),
    ],
)  # fmt: skip
def test_whether_new_jobs_may_come(givens: list[Given], text: str) -> None:
    """Who reads it decides by it whether to call the users: it must not promise more than is known."""
    assert says("$drained", *givens) == text


@pytest.mark.parametrize(
    ("givens", "text"),
    [
        pytest.param([], "Nothing else was done.", id="nothing was"),
        pytest.param([did("gpu.reset", "ok")], "What was done: reset: done.", id="not verified"),
        pytest.param([did("gpu.reset", "ok", verified=True)], "What was done: reset: done, it helped.", id="it helped"),
        pytest.param(
            [did("gpu.reset", "ok", verified=False)], "What was done: reset: done, it did not help.", id="it did not"
        ),
        pytest.param([did("gpu.reset", "refused")], "What was done: reset: refused (so it is).", id="refused"),
        pytest.param([did("gpu.reset", "", why="")], "What was done: reset: under way.", id="it goes on"),
        pytest.param(
            [did("gpu.reset", "failed"), did("node.reboot", "ok"), did("gpu.reset", "ok")],
            "What was done: reset: done; reboot: done.",
            id="each rung once, by its last attempt",
        ),
        pytest.param(
            [did(action, "ok") for action in ("page", COLLECT, OF_BMC, DRAIN)],
            "Nothing else was done.",
            id="pages, evidence and drains are no remedies",
        ),
        pytest.param(
            [did(OFF, "ok"), did(POWER_OFF, "ok")],
            "What was done: isolate: done; power_off: done.",
            id="to switch a node off is one, though it drains",
        ),
        pytest.param([did("gone.by", "ok")], "What was done: by: done.", id="what nobody knows any more is one"),
        pytest.param([did("gpu.reset", "ok", run="inc-1.r0")], "Nothing else was done.", id="another run's is not this one's"),
    ],
)  # fmt: skip
def test_what_was_done(givens: list[Given], text: str) -> None:
    """The ladder of this run, in a line for a phone."""
    assert says("$done", *givens) == text


@pytest.mark.parametrize(
    ("givens", "text"),
    [
        pytest.param([], "There is NO evidence of this run.", id="none was collected"),
        pytest.param([did(COLLECT, "ok")], KEPT, id="the node's"),
        pytest.param([did(OF_BMC, "ok")], KEPT, id="the BMC's"),
        pytest.param([did(COLLECT, "failed")], "There is NO evidence of this run (so it is).", id="it failed"),
        pytest.param([did(COLLECT, "ok"), did(OF_BMC, "failed")], KEPT, id="the node's is kept, though the BMC has none"),
        pytest.param([did(COLLECT, "unknown"), did(OF_BMC, "failed")], MAYBE, id="nobody knows"),
        pytest.param([did(COLLECT, "withdrawn")], "There is NO evidence of this run.", id="it never left"),
        pytest.param([did("gpu.reset", "ok")], "There is NO evidence of this run.", id="another step is none"),
        pytest.param([did(COLLECT, "ok", run="inc-1.r0")], "There is NO evidence of this run.", id="another run's"),
    ],
)  # fmt: skip
def test_whether_there_is_evidence(givens: list[Given], text: str) -> None:
    """Else people look for a bundle that is not there."""
    assert says("$evidence", *givens) == text


@pytest.mark.parametrize(
    ("givens", "text"),
    [
        pytest.param([], "n1 was NOT switched off.", id="nobody tried"),
        pytest.param([did(OFF, "ok")], "n1 is switched off.", id="fenced"),
        pytest.param([did(POWER_OFF, "ok")], "n1 is switched off.", id="by its BMC"),
        pytest.param(
            [did(OFF, "unknown")], "Nobody knows whether n1 is switched off (so it is).", id="nobody knows"
        ),
        pytest.param([did(OFF, "failed")], "n1 was NOT switched off (so it is).", id="it failed"),
        pytest.param([did(DRAIN, "ok")], "n1 was NOT switched off.", id="a drain is no switch"),
        pytest.param([on("leaf/l1", ""), did(OFF, "ok")], "the node is switched off.", id="no single node"),
    ],
)
def test_whether_the_node_is_off(givens: list[Given], text: str) -> None:
    """Who goes to the rack must know."""
    assert says("$switched_off", *givens) == text


@pytest.mark.parametrize(
    ("why", "text"),
    [
        pytest.param("two\nlines  and\ta tab", " (two lines and a tab)", id="in one line"),
        pytest.param("x" * 140, f" ({'x' * 140})", id="as long as may be"),
        pytest.param("x" * 141, f" ({'x' * 139}…)", id="cut"),
    ],
)
def test_a_reason_fits_a_phone(why: str, text: str) -> None:
    """Whatever a scheduler says."""
    assert says("$switched_off", did(OFF, "refused", why=why)) == f"n1 was NOT switched off{text}."


def test_words_stand_anywhere_in_a_text() -> None:
    """Each of them, as often as it comes; what is no such word stays."""
    assert says("Look. $evidence $evidence $done, $else $5 $DONE") == (
        "Look. There is NO evidence of this run. There is NO evidence of this run. Nothing else was done., $else $5 $DONE"
    )


def stands_in(*steps: StepRecord) -> Given:
    """The run is the last resort in place of the fault's own remedy, which may not be tried."""

    def given(cell: Cell) -> None:
        own = replace(cell.run.runbook, name="own", last_resort=cell.run.runbook.name)
        cell.state.runs["inc-1.r0"] = replace(
            cell.run, id="inc-1.r0", runbook=own, steps=[*steps], why="n1 had 3 remedies within a day"
        )
        cell.incident.runs = ["inc-1.r0", cell.run.id]

    return given


RESET = StepRecord(id="y", rung="reset", action="gpu.reset", params={}, at=NOW)


@pytest.mark.parametrize(
    ("givens", "text"),
    [
        pytest.param(
            [],
            "n1 cannot be trusted (gpu-lost). Open a ticket for the part; after its replacement `gpuward return n1` gives it "
            "back.",
            id="the fault's own remedy: a part is broken",
        ),
        pytest.param(
            [stands_in()],
            "No remedy was tried for it (n1 had 3 remedies within a day). Find out why n1 needs one remedy after the other; "
            "when it is well, `gpuward return n1` gives it back.",
            id="the last resort before anything was tried: no part is known to be broken",
        ),
        pytest.param(
            [stands_in(RESET)],
            "No further remedy is tried for it (n1 had 3 remedies within a day). Find out why n1 needs one remedy after the "
            "other; when it is well, `gpuward return n1` gives it back.",
            id="the last resort after something was tried",
        ),
    ],
)
def test_why_a_node_is_kept_out_and_what_is_left_to_do(givens: list[Given], text: str) -> None:
    """A person reads what the matter is, and the command that ends it with the node's name in it."""
    assert says("$distrust $repair", *givens) == text
