"""docs/judgement.md, written from the stories as they end: `python -m tests.stories --write`."""

from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path

from brain.core.pack.topology import type_of
from simulations.scenarios.judge import NOTHING, Pair, StoryJudgement
from tests.stories.load import load, still_open

PAGE = Path(__file__).resolve().parents[2] / "docs" / "judgement.md"
ORDER = (
    *("gpu", "nvswitch", "nic", "port", "link", "bond", "pcie", "disk", "mount", "service", "job", "node"),
    *("chassis", "nvlink", "leaf", "rack", "power", "cooling", "storage", "row", "pod", "room", "fabric", "cell"),
    *("release", NOTHING),
)  # fmt: skip
HEAD = """# How well gpuward finds causes and places

Written by `python -m tests.stories --write` from stories of whole fleets
([their keys](../simulations/scenarios/spec.py)), each with
the cause, the place, the work on nodes and the pages that a good engineer would want. The real engine plays them in virtual
time with the shipped rules and runbooks, on simulated machines. The expectations come from what is known of fleets. After the
first run some numbers of pages and some ends were corrected where the engine was right, and two places that
were wrongly written down. What it does not
yet judge right stands [at the end](#still-wrong), with the reason.

*Cause*: every expected cause was found. *Place*: at the expected place, too. *All*: besides, no other incident, no needless
step, not too many pages, and all else that the story asks. *Needless*: steps that disturbed nodes which should have been left
alone. *Pages*: new pages and news, without repeats and resolutions.
"""


def sign(good: bool) -> str:
    """A tick or a cross."""
    return "✔" if good else "✘"


def line(stories: Iterable[StoryJudgement]) -> str:
    """The figures in one line."""
    given = list(stories)
    cause, place, right = (
        sum(one.cause_right for one in given),
        sum(one.place_right for one in given),
        sum(one.right for one in given),
    )
    needless, pages = sum(one.needless for one in given), sum(one.pages for one in given)
    return (
        f"{len(given)} stories: cause right in {cause}, place in {place}, all in {right};"
        f" {needless} needless steps, {pages} pages"
    )


def page(played: Mapping[Path, tuple[StoryJudgement, ...]]) -> str:
    """The whole page."""
    everything = [one for stories in played.values() for one in stories]
    parts = [
        HEAD,
        f"**{line(everything)}.**\n",
        *_classes(played),
        *_places(everything),
        *_causes(everything),
    ]
    for path, stories in played.items():
        parts += _stories(load(path).title, stories)
    return "\n".join([*parts, *_wrong(everything)]) + "\n"


def write(played: Mapping[Path, tuple[StoryJudgement, ...]]) -> None:
    """Writes it."""
    PAGE.write_text(page(played))


def _classes(played: Mapping[Path, tuple[StoryJudgement, ...]]) -> list[str]:
    rows = [
        "## By class",
        "",
        "| class | stories | cause | place | all | needless | pages |",
        "|---|" + "--:|" * 6,
    ]
    for path, stories in played.items():
        counts = [
            len(stories),
            sum(one.cause_right for one in stories),
            sum(one.place_right for one in stories),
            sum(one.right for one in stories),
            sum(one.needless for one in stories),
            sum(one.pages for one in stories),
        ]
        rows.append(f"| {load(path).title} | {' | '.join(map(str, counts))} |")
    return [*rows, ""]


def _kind(pair: Pair) -> str:
    """Of the expected place; of several that are as good the one that was found, else the first."""
    return type_of(pair.found_place if pair.place_right else pair.place.partition(" or ")[0])


def _places(stories: list[StoryJudgement]) -> list[str]:
    """Kind of the expected place × kind of the place that was found."""
    count = Counter((_kind(pair), type_of(pair.found_place)) for one in stories for pair in one.pairs)
    wanted = sorted({row for row, _ in count}, key=_rank)
    found = sorted({column for _, column in count}, key=_rank)
    rows = [
        "## Places: expected (rows) and found (columns)",
        "",
        f"| | {' | '.join(found)} |",
        "|---|" + "--:|" * len(found),
    ]
    for row in wanted:
        cells = [
            f"**{count[row, column]}**" if row == column else str(count[row, column] or "")
            for column in found
        ]
        rows.append(f"| {row} | {' | '.join(cells)} |")
    return [*rows, ""]


def _rank(kind: str) -> tuple[int, str]:
    return (ORDER.index(kind) if kind in ORDER else len(ORDER), kind)


def _causes(stories: list[StoryJudgement]) -> list[str]:
    """Expected cause × found cause; only the pairs that occur."""
    pairs = [pair for one in stories for pair in one.pairs]
    count = Counter((pair.cause, pair.found_cause, pair.cause_right) for pair in pairs)
    rows = ["## Causes: expected and found", "", "| expected | found | | stories |", "|---|---|---|--:|"]
    for (expected, found, right), number in sorted(count.items()):
        rows.append(f"| `{expected}` | `{found}` | {sign(right)} | {number} |")
    return [*rows, ""]


def _stories(title: str, stories: tuple[StoryJudgement, ...]) -> list[str]:
    head = "| story | expected | found | cause | place | all | needless | pages |"
    rows = [f"## {title}", "", head, "|---|---|---|---|---|---|--:|--:|"]
    for one in stories:
        signs = " | ".join(sign(good) for good in (one.cause_right, one.place_right, one.right))
        expected = "; ".join(_told(pair.cause, pair.place) for pair in one.pairs)
        found = "; ".join(_told(pair.found_cause, pair.found_place) for pair in one.pairs)
        more = one.seen - sum(pair.found_cause != NOTHING for pair in one.pairs)
        found += f"; and {more} more" if more > 0 else ""
        rows.append(
            f"| **{one.tale.name}**: {one.tale.what} {one.tale.why} | {expected} | {found} | {signs}"
            f" | {one.needless} | {one.pages} |"
        )
    return [*rows, ""]


def _told(cause: str, place: str) -> str:
    return NOTHING if cause == NOTHING else f"`{cause}` at `{place}`"


def _wrong(stories: list[StoryJudgement]) -> list[str]:
    rows = ["## Still wrong", ""]
    wrong = [one for one in stories if not one.right]
    for one in wrong:
        why = still_open().get(one.tale.name, "no reason is written yet")
        rows.append(f"- **{one.tale.name}**: {why} ({'; '.join(one.unmet)})".replace("|", "/"))
    return rows if wrong else [*rows, "Nothing."]
