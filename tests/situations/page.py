"""docs/safety.md, written from the situations as they end: `python -m tests.situations --write`."""

from pathlib import Path

from tests.laws import oracles
from tests.situations.situation import Situation, Verdict
from tests.situations.table import THEMES, judged

PAGE = Path(__file__).resolve().parents[2] / "docs" / "safety.md"
MARK = "<!-- long-run -->"  # between two of them stands what people add: the figures of the long run
SIGNS = {Verdict.AS_EXPECTED: "✔", Verdict.MOSTLY: "◐", Verdict.NOT: "✘"}
LAWS = {
    1: "Never two disruptive runs on one node, nor more than the budgets",
    2: "Never under a hold; in a maintenance window or beside a protected job only with an approval",
    3: "Only our own drains are undone; a drain is owned by the incidents that want it, and ends with the last of them",
    4: "No rung with repeat class `never` is performed twice for one decision",
    5: "An unknown code or kind never leads to an action",
    6: "A symptom that many nodes show has a shared cause: one incident, no action on the nodes, a page",
    7: "A tripped breaker, a hold or a storm never blocks the way back",
    8: "A node returns to service only after facts newer than the step; a remedy that failed is not tried again and again",
    9: "Shadow, backtest and simulation cannot reach a real actuator",
    10: "A page is never lost",
    11: "Every action can be explained",
    12: "The agent survives a hung NVML, a full disk, a lost broker and its own restart, and says so",
    13: "Age and circumstances are judged when a step begins; an approval ends with what it was given for",
    14: "Every state that waits has an end, and what was taken out of service is never forgotten",
    15: "A node speaks for itself only",
    16: "A brain that has lost its lease touches nothing",
}
# Laws that no random story attacks, and what tests them instead.
ELSEWHERE = {
    3: "`tests/brain/test_return_to_service.py`",
    7: "`tests/brain/core/test_gates_of_counts.py`",
    9: "`tests/simulations/test_virtual_time.py`",
    11: "`tests/brain/shell/test_explain.py`",
    12: "`tests/agent/`",
    13: "`tests/brain/core/test_gates_of_evidence.py`",
    15: "`tests/brain/test_step_results.py`",
}
HEAD = """# What gpuward does when things go wrong

Written by `make safety` from [tests/situations](../tests/situations/table.py): the real engine plays each situation in
virtual time with the shipped rules and runbooks in auto mode, on simulated machines that really break and heal.

## The laws, and what attacks them

Random stories of whole cells (storms, slow patterns, lies, partitions, operators, changes of leaders, restarts) are judged by one
oracle for each law, written from the law's text alone: `python -m tests.laws --stories N`.

| law | | tested by |
|---|---|---|
"""


# Why one number of law 6 grows with the cell, and one does not (brain/core/healing/limits.py).
COUNTED = (
    "Law 6 counts one fault after the other in two ways. Within an hour five nodes are enough in a cell of any size "
    "(`same_cause_nodes`): a fixed number is the safer one there. One node in 1,000 a day needs the commonest remedy, so in"
    " the largest cell (10,000 nodes) 0.4 an hour; five come by chance about three times a year, and cost an approval, "
    "while a share of the cell would let a bad release treat 40 nodes before anybody is asked. Within a day, where chance "
    "grows with the cell, ten nodes or 1 % of the cell's are enough (`same_cause_nodes_per_day`); of one job five, or one "
    "node in 250 of it."
)


def _laws() -> list[str]:
    judges: dict[int, list[str]] = {}
    for judge in oracles.all_of_them():
        judges.setdefault(judge.law, []).append(f"`{type(judge).__name__}`")
    return [
        f"| {law} | {text} | {', '.join([*judges.get(law, []), *([ELSEWHERE[law]] if law in ELSEWHERE else [])])} |"
        for law, text in LAWS.items()
    ]


def _row(number: int, situation: Situation) -> str:
    found = judged(situation.what)
    reason = f" **{situation.reason}**" if situation.reason else ""
    return f"| {number} | {situation.what} | {situation.expected} | {found.line}{reason} | {SIGNS[found.verdict]} |"


def page(figures: str = "") -> str:
    """The whole page. `figures`: what stands between the marks."""
    lines = [HEAD.rstrip(), *_laws(), "", COUNTED, "", MARK, figures.strip(), MARK, "", "## Situations", ""]
    every = [one for theme in THEMES.values() for one in theme]
    count = {verdict: sum(judged(one.what).verdict is verdict for one in every) for verdict in Verdict}
    lines += [
        f"{len(every)} situations: {count[Verdict.AS_EXPECTED]} as expected (✔), {count[Verdict.MOSTLY]} mostly (◐), "
        f"{count[Verdict.NOT]} not (✘); bold: why. Not counted: repeats of pages that nobody acknowledges.",
        "",
    ]
    number = 0
    for theme, situations in THEMES.items():
        lines += [
            f"### {theme}",
            "",
            "| # | situation | expected | what happens, and why | |",
            "|---|---|---|---|---|",
        ]
        for situation in situations:
            number += 1
            lines.append(_row(number, situation))
        lines.append("")
    return "\n".join(lines)


def figures() -> str:
    """What stands between the marks of the page as it is."""
    parts = PAGE.read_text().split(MARK) if PAGE.exists() else []
    return parts[1].strip() if len(parts) > 2 else ""


def write() -> None:
    """Writes the page; what stands between the marks stays."""
    PAGE.write_text(page(figures()))
