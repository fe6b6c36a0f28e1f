"""Situations of the brain itself in the middle of a run: other leaders, other rules, no leader at all."""

from dataclasses import replace

from brain.core.pack.spec import Pack
from simulations.scenarios.moves import new_leader, nobody_leads, node, reload, says, together
from simulations.scenarios.troubles import gpu_wants_reset
from tests.situations import checks as c
from tests.situations.situation import Situation

HOUR_S = 3600.0
_DRAIN, _RESET, _RESUME = "scheduler.drain", "gpu.reset", "scheduler.resume"
_HEALED = (_DRAIN, _RESET, _RESUME)
N = node(1)


def _without_reset(pack: Pack) -> Pack:
    rules = tuple(
        replace(rule, runbook="keep-evidence") if rule.runbook == "reset-gpu" else rule for rule in pack.rules
    )
    return replace(pack, rules=rules, version=f"{pack.version}-no-reset")


def _peaceful(pack: Pack) -> Pack:
    return replace(pack, version=f"{pack.version}-again")


LEADERS = tuple(
    Situation(
        what=f"The leader changes {when}",
        expected="every step once, the repair goes on",
        moves=together(gpu_wants_reset(60, [N]), new_leader(at_s)),
        until_s=HOUR_S,
        checks=(c.ends("gpu-fatal-xid", "closed"), c.out(), c.counts(N, _RESET, 1)),
    )
    for at_s, when in (
        (61.2, "while the evidence is collected"),
        (62.03, "while a node is drained"),
        (63.0, "while a GPU is reset"),
        (80.0, "while the reset is verified"),
        (95.8, "while the node is given back"),
    )
)

SITUATIONS = (
    *LEADERS,
    Situation(
        what="Rules are reloaded in the middle of a run, and lead elsewhere now",
        expected="the run ends as it began",
        moves=together(gpu_wants_reset(60, [N]), reload(63, _without_reset)),
        until_s=HOUR_S,
        checks=(c.does(N, *_HEALED), c.ends("gpu-fatal-xid", "closed")),
    ),
    Situation(
        what="The same rules are loaded again every minute while a node is healed",
        expected="nothing changes",
        moves=together(gpu_wants_reset(60, [N]), *(reload(40 + 20.0 * n, _peaceful) for n in range(5))),
        until_s=HOUR_S,
        checks=(c.does(N, *_HEALED), c.sees({"gpu-fatal-xid": 1})),
    ),
    Situation(
        what="A site goes back to observe mode in the middle of a run",
        expected="nothing further is disturbed; people are told what stands",
        moves=together(gpu_wants_reset(60, [N]), says(62.8, "mode", runbook="*", mode="observe")),
        until_s=2 * HOUR_S,
        checks=(c.never("node.reboot", _DRAIN, after_s=63), c.counts(N, _RESET, 1)),
    ),
    Situation(
        what="No brain for ten minutes in the middle of a reset",
        expected="the step is not done twice; the next brain goes on",
        moves=together(gpu_wants_reset(60, [N]), nobody_leads(62.8, 600)),
        until_s=2 * HOUR_S,
        checks=(c.counts(N, _RESET, 1), c.ends("gpu-fatal-xid", "closed"), c.out()),
    ),
    Situation(
        what="No brain for two hours, and the fault is still there",
        expected="the node is asked first; then it is healed",
        moves=together(nobody_leads(30, 2 * HOUR_S), gpu_wants_reset(60, [N])),
        until_s=5 * HOUR_S,
        checks=(
            c.never(_DRAIN, until_s=2 * HOUR_S),
            c.said("run.looked", "looked again"),
            c.ends("gpu-fatal-xid", "closed"),
            c.out(),
        ),
    ),
)
