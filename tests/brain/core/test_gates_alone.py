"""The mode gate, where a runbook that asks for people may do without them; what is judged there stands in test_alone.py."""

import pytest

from brain.core.healing import alone, gates
from brain.core.healing.alone import Alone
from brain.core.healing.verdicts import Verdict
from brain.core.pack.spec import Mode
from tests.brain.core.cell import Cell, Given, ask_a_person, wait
from tests.brain.core.givens import approved, runbook, site_sets

ASKS = runbook(at_most=Mode.APPROVE)
KEPT = "by the scheduler 4711 runs there"
PLAIN = ask_a_person("mode", "reset-gpu is in approve mode")


@pytest.mark.parametrize(
    ("givens", "may", "answer"),
    [
        pytest.param([ASKS], Alone(Mode.AUTO), None, id="nothing keeps it"),
        pytest.param([ASKS], Alone(Mode.APPROVE), PLAIN, id="it would never be let"),
        pytest.param(
            [ASKS],
            Alone(Mode.APPROVE, KEPT),
            ask_a_person("mode", f"reset-gpu needs an approval ({KEPT})"),
            id="something keeps it",
        ),
        pytest.param(
            [ASKS], Alone(Mode.APPROVE, KEPT, 77.0), wait("mode", KEPT, 77.0), id="it may be let soon"
        ),
        pytest.param(
            [ASKS, approved()],
            Alone(Mode.APPROVE, KEPT, 77.0),
            None,
            id="it may be let soon, and a person agrees",
        ),
        pytest.param(
            [ASKS, site_sets("approve")],
            Alone(Mode.AUTO),
            PLAIN,
            id="the site wants approvals, whatever is let",
        ),
        pytest.param(
            [ASKS, site_sets("approve")],
            Alone(Mode.APPROVE, KEPT),
            PLAIN,
            id="the site wants approvals, so nothing else keeps it",
        ),
        pytest.param(
            [ASKS, site_sets("approve")],
            Alone(Mode.APPROVE, KEPT, 77.0),
            PLAIN,
            id="the site wants approvals, so nobody waits",
        ),
    ],
)
def test_a_runbook_that_may_do_without_people(
    givens: list[Given], may: Alone, answer: Verdict | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It waits for nobody while it may be let soon, and says what keeps it where people are asked."""
    monkeypatch.setattr(alone, "judge", lambda _ctx, _run: may)
    assert Cell(*givens).asks(gates.mode) == answer
