"""The tree of a runbook, as data with stable keys and as lines for a terminal. Pure: the same pack gives the same bytes."""

from collections import Counter
from collections.abc import Iterator
from typing import Any

from rich.cells import cell_len, set_cell_size

from agent.contract.actions.spec import Disrupts
from agent.shared.words import later, many, span, t
from brain.cli.terminal import hanging
from brain.core.pack.spec import Pack
from simulations.ladder.played import TriedStep
from simulations.ladder.tree import GOOD, Fork, Leaf, Round, StepBranch, Tree, Way, WayEnd

LEAVES_OUT = (
    later(
        "jobs on the node, protected jobs, holds, maintenance windows, budgets: each step is let through at once"
    ),
    later("whoever is asked for an approval gives it within a minute"),
    later("two ends at once, and faults of other parts meanwhile"),
    later("people who mend the fault meanwhile: what a drain waits for"),
    later(
        "the time that passed: where the same step is reached sooner or later in the same circumstances, it is shown once"
    ),
)
# Of a ladder with more than MOST_FINE ways.
COARSE = later(
    "of the many ways of this ladder: in how many seconds the fault is back, whether a node is away then, and what else the "
    "remedies have led to; ways that differ in nothing else are shown once, and a bad end of the others would not be seen"
)
_DISRUPTS = {
    Disrupts.NOTHING: later("nothing is disrupted"),
    Disrupts.JOB: later("jobs on this part are disrupted"),
    Disrupts.NODE: later("jobs on the node are disrupted"),
    Disrupts.FABRIC: later("jobs on other nodes are disrupted too"),
}


def bad(tree: Tree) -> list[tuple[Way, WayEnd | Round]]:
    """The ways that end without a page or a heal, or never end and nobody is told."""
    ends = [(way, end if isinstance(end, Round) else end.verdict) for way, end in tree.leaves()]
    return [(way, end) for way, end in ends if end not in (*GOOD, Round.TOLD)]


def left_out(tree: Tree) -> tuple[str, ...]:
    """What the tree does not show."""
    return LEAVES_OUT if tree.fine else (*LEAVES_OUT, COARSE)


def _leaves(tree: Tree) -> list[Leaf]:
    return [end for _, end in tree.leaves() if isinstance(end, Leaf)]


def data(tree: Tree, pack: Pack) -> dict[str, Any]:
    """All of it."""
    leaves = _leaves(tree)
    return {
        "runbook": tree.runbook,
        "pack": pack.version,
        "cause": tree.cause,
        "plays": tree.plays,
        "ends": {verdict.name.lower(): sum(leaf.verdict is verdict for leaf in leaves) for verdict in WayEnd},
        "longest_s": round(max((leaf.after_s for leaf in leaves), default=0.0), 1),
        "circumstances": "fine" if tree.fine else "coarse",
        "leaves_out": list(left_out(tree)),
        "tree": _data(tree.root),
    }


def _data(node: Fork | Leaf) -> dict[str, Any]:
    if isinstance(node, Leaf):
        return {
            "end": node.verdict.name.lower(), "after_s": round(node.after_s, 1), "incidents": list(node.states),
            "pages": node.pages, "told": node.text, "out_of_service": node.out_of_service, "disrupted": node.disrupted.value,
        }  # fmt: skip
    asked = node.asked
    return {
        "step": node.number, "run": asked.run, "runbook": asked.runbook, "rung": asked.rung.name, "attempt": asked.attempt,
        "returning": asked.returning, "action": asked.step.action, "on": asked.step.node, "disrupts": asked.disrupts.value,
        "approved": asked.approved, "after_s": round(node.after_s, 1),
        "ends": [{"end": branch.end.name.lower()} | _follows(branch) for branch in node.branches],
    }  # fmt: skip


def _follows(branch: StepBranch) -> dict[str, Any]:
    if branch.then is not None:
        return {"then": _data(branch.then)}
    return {"as_step": branch.again, "round": branch.rounds.name.lower() if branch.rounds is not None else ""}


def page(tree: Tree, width: int) -> list[str]:
    """Lines for a terminal: what it is, the tree, and what must not be. Of a page's text what fits stands there."""
    leaves = _leaves(tree)
    counts = Counter(leaf.verdict for leaf in leaves)
    lines = [
        t("{runbook}, started by a person", runbook=tree.runbook)
        if not tree.cause
        else t("{runbook} against {cause}", runbook=tree.runbook, cause=tree.cause),
        "; ".join(
            f"{t(verdict.value)}: {counts[verdict]}"
            for verdict in WayEnd
            if counts[verdict] or verdict in (WayEnd.HEALED, WayEnd.PAGED)
        )
        + ". "
        + t("The longest takes {time}.", time=span(max((leaf.after_s for leaf in leaves), default=0.0))),
        "",
    ]
    lines += [
        line if cell_len(line) <= width else f"{set_cell_size(line, width - 1)}…"
        for line in _lines(tree.root, "", "")
    ]
    lines += ["", *hanging("", f"{t('Left out:')} " + "; ".join(map(t, left_out(tree))) + ".", width)]
    for way, end in bad(tree):
        must_not = t("MUST NOT BE: {verdict}: {way}", verdict=t(end.value), way=told(way))
        lines += hanging("", must_not, width)
    return lines


def told(way: Way) -> str:
    """A way, for people."""
    return " → ".join(f"{rung} {t(end.value)}" for rung, end in way)


def _lines(node: Fork | Leaf, head: str, below: str) -> Iterator[str]:
    if isinstance(node, Leaf):
        yield f"{head}{_end(node)}"
        return
    yield f"{head}{node.number} {_step(node.asked)} ({_clock(node.after_s)})"
    for branch in node.branches:
        last = branch is node.branches[-1]
        yield from _branch(branch, f"{below}{'└─' if last else '├─'} ", f"{below}{'   ' if last else '│  '}")


def _branch(branch: StepBranch, head: str, below: str) -> Iterator[str]:
    said = f"{head}{t(branch.end.value)}: "
    if branch.then is None:
        rounds = f"; {t(branch.rounds.value)}" if branch.rounds is not None else ""
        yield said + t("as at {number}", number=branch.again) + rounds
    else:
        yield from _lines(branch.then, said, below)


def _step(asked: TriedStep) -> str:
    parts = [f"{asked.rung.name}: {asked.step.action}"]
    if asked.run > 1:
        parts.append(t("{runbook}, run {number}", runbook=asked.runbook, number=asked.run))
    if asked.attempt > 1:
        parts.append(t("attempt {number}", number=asked.attempt))
    if asked.returning:
        parts.append(t("on the way back"))
    if asked.approved:
        parts.append(t("approved"))
    if asked.disrupts is not Disrupts.NOTHING:
        parts.append(t(_DISRUPTS[asked.disrupts]))
    return ", ".join(parts)


def _end(leaf: Leaf) -> str:
    parts = [t(leaf.verdict.value)]
    if leaf.out_of_service:
        parts.append(t("the node is out of service"))
    if leaf.pages:
        parts.append(many(leaf.pages, "page"))
    text = f" “{leaf.text}”" if leaf.verdict is WayEnd.PAGED and leaf.text else ""
    return f"■ {', '.join(parts)} ({_clock(leaf.after_s)}){text}"


def _clock(seconds: float) -> str:
    """`h:mm:ss`, `m:ss` below an hour."""
    minutes, left = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{left:02}" if hours else f"{minutes}:{left:02}"
