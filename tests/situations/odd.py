"""Situations as an adversary or bad luck would choose them: floods, lies, ends that meet, changes at the wrong moment."""

from agent.contract.commands import Outcome
from agent.contract.messages import Severity
from brain.core.pack.spec import Mode, ModeSetting, Priority
from simulations import changes as ch
from simulations.events import event
from simulations.faults import Fix
from simulations.scenarios.moves import (
    GPU,
    GPU_2,
    Moves,
    answers,
    change,
    drill,
    forges,
    garbage,
    job,
    kernel,
    lasting,
    node,
    nodes,
    reports,
    says,
    says_of,
    scheduler,
    silent,
    together,
    xid,
)
from simulations.scenarios.troubles import INFO, dark, gpu_lost, gpu_wants_reset, nic_broken, rows_spent
from tests.situations import checks as c
from tests.situations.situation import Situation, Verdict

HOUR_S = 3600.0
APPROVE = (ModeSetting(mode=Mode.APPROVE),)
_DRAIN, _RESET, _RESUME = "scheduler.drain", "gpu.reset", "scheduler.resume"
_HEALED = (_DRAIN, _RESET, _RESUME)
N, M = node(1), node(40)
_RESET_WANTED = event("gpu.recovery_action", GPU, action=1, name="reset")
_WELL = event("gpu.recovery_action", GPU, INFO, action=0, name="none")
_HUNG = event("nvml.hung", "node", call="nvmlDeviceGetTemperature", waited_s=10.0, times=1)
_ANSWERS = event("nvml.answers", "node", INFO, after_s=180.0)


def _ufm_tells(at_s: float) -> Moves:
    """Two ports' errors, under UFM's own ids of them."""
    return together(
        *(
            reports(
                at_s,
                node(n),
                "ufm.port_errors",
                "port/mlx5_0.1",
                Severity.WARNING,
                side="switch",
                counter="SymbolErrorCounter",
                delta=5,
            )
            for n in range(2)
        )
    )


SITUATIONS = (
    Situation(
        what="One node floods: 3,000 unreadable messages and 2,000 XIDs, while another one needs a reset",
        expected="the flood is that node's own incident; the other is healed as ever",
        moves=together(
            garbage(60, M, 3000),
            *(
                kernel(60 + 0.01 * n, [M], xid(31, GPU, f"pid={n}, name=python3, MMU Fault"))
                for n in range(2000)
            ),
            gpu_wants_reset(65, [N]),
        ),
        until_s=HOUR_S,
        checks=(c.does(N, *_HEALED), c.untouched(M), c.sees_at_most(3)),
    ),
    Situation(
        what="A node reports results of another node's steps",
        expected="ignored; the other's step ends by its own result",
        moves=together(
            gpu_wants_reset(60, [N]),
            forges(61.3, M),
            forges(62.05, M),
            forges(63.0, M),
        ),
        until_s=HOUR_S,
        checks=(c.does(N, *_HEALED), c.untouched(M), c.ends("gpu-fatal-xid", "closed")),
    ),
    Situation(
        what="An approval comes, and the fault has passed by then",
        expected="nothing is done for it",
        settings={"modes": APPROVE},
        moves=together(
            lasting(60, [N], _RESET_WANTED, _WELL, for_s=600),
            says_of(900, "approve", "gpu-fatal-xid"),
        ),
        until_s=2 * HOUR_S,
        checks=(c.untouched(), c.ends("gpu-fatal-xid", "closed")),
    ),
    Situation(
        what="An approval is given, and a protected job starts before the step begins",
        expected="the approval is void, nothing is done",
        settings={"modes": APPROVE},
        moves=together(
            says(10, "hold", scope=f"node/{N}", why="a look", for_s=600.0),
            gpu_wants_reset(60, [N]),
            says_of(120, "approve", "gpu-fatal-xid"),
            job(300, "9", [N], protected=True),
        ),
        until_s=2 * HOUR_S,
        checks=(c.untouched(),),
    ),
    Situation(
        what="A hold is put while a GPU is reset",
        expected="the step ends, nothing further begins until it is released; then the repair ends by itself",
        moves=together(
            gpu_wants_reset(60, [N]),
            says(62.8, "hold", scope=f"node/{N}", why="wait"),
            says(1200, "release", scope=f"node/{N}"),
        ),
        until_s=2 * HOUR_S,
        checks=(c.never("node.reboot"), c.counts(N, _RESET, 1), c.ends("gpu-fatal-xid", "closed"), c.out()),
    ),
    Situation(
        what="A hold on everything while three nodes are broken",
        expected="nothing is disturbed; each goes on when it is released, after a fresh look",
        moves=together(
            says(10, "hold", scope="all", why="a demonstration"),
            gpu_wants_reset(60, nodes(1, 3, 20)),
            says(HOUR_S, "release", scope="all"),
        ),
        until_s=4 * HOUR_S,
        checks=(
            c.never(_DRAIN, _RESET, until_s=HOUR_S),
            c.ends("gpu-fatal-xid", "closed"),
            c.out(),
            c.touches_at_most(3),
        ),
    ),
    Situation(
        what="An operator drains the node by hand between our drain and our return",
        expected="the operator's drain stays",
        moves=together(gpu_wants_reset(60, [N]), change(80, [N], ch.DrainSet(reason="ann: new DIMMs"))),
        until_s=HOUR_S,
        checks=(c.out(N), c.ends("gpu-fatal-xid", "closed")),
    ),
    Situation(
        what="The scheduler says 403 at the return to service",
        expected="the node stays out, the page says why",
        moves=together(
            answers(10, _RESUME, Outcome.REFUSED, "403 Forbidden: nodes is forbidden"),
            gpu_wants_reset(60, [N]),
        ),
        until_s=HOUR_S,
        checks=(c.out(N), c.told("403 Forbidden"), c.ends("gpu-fatal-xid", "needs_human", "open")),
    ),
    Situation(
        what="The scheduler is silent for 20 minutes and answers again",
        expected="nothing without knowing what runs there; then the node is asked again, still has the fault, and is healed",
        moves=together(scheduler(10, silent=True), gpu_wants_reset(60, [N]), scheduler(1260, silent=False)),
        until_s=3 * HOUR_S,
        checks=(
            c.never(_DRAIN, _RESET, until_s=1260),
            c.does(N, *_HEALED),
            c.ends("gpu-fatal-xid", "closed"),
            c.pages(4),
        ),
    ),
    Situation(
        what="A drain never answers",
        expected="its time ends; nothing on the undrained node, then a person",
        moves=together(
            answers(10, _DRAIN, Outcome.UNKNOWN, "", took_s=float("inf")), gpu_wants_reset(60, [N])
        ),
        until_s=8 * HOUR_S,
        checks=(c.never(_RESET, "node.reboot"), c.ends("gpu-fatal-xid", "needs_human"), c.pages(4)),
    ),
    Situation(
        what="Two GPUs of a node at once",
        expected="one incident of the node, one reset of both, one return",
        moves=gpu_wants_reset(60, [N]) + gpu_wants_reset(60.5, [N], GPU_2),
        until_s=HOUR_S,
        checks=(
            c.sees({"gpu-fatal-xid": 1}),
            c.counts(N, _RESET, 1),
            c.counts(N, _RESUME, 1),
            c.ends("gpu-fatal-xid", "closed"),
            c.out(),
        ),
    ),
    Situation(
        what="A node boots again and again: every 10 minutes for a day",
        expected="one incident, no flood of pages, no remedy of ours on top",
        moves=together(*(dark(600.0 * n, [N], 60) for n in range(1, 144))),
        until_s=86400,
        checks=(c.untouched(), c.sees_at_most(4), c.pages(12)),
    ),
    Situation(
        what="A node's clock is years off",
        expected="its faults are healed as any other's: the log's clock and the age of events decide",
        moves=together(
            lasting(
                10,
                [N],
                event("node.clock", "node", well=False, synchronised=False, offset_s=-2e8, max_error_s=16.0),
            ),
            gpu_wants_reset(120, [N]),
        ),
        until_s=HOUR_S,
        checks=(c.does(N, *_HEALED), c.pages(0, Priority.P0)),
    ),
    Situation(
        what="An inspection is under way when a GPU is lost",
        expected="one at a time; the node is not given back broken",
        moves=together(says(60, "start", runbook="inspect-node", node=N), gpu_lost(60.4, [N])),
        until_s=2 * HOUR_S,
        checks=(c.ends("gpu-lost", "closed"), c.wish(c.out())),
        verdict=Verdict.MOSTLY,
        reason="the inspection has found the lost GPU too, and keeps the node until somebody has read its finding",
    ),
    Situation(
        what="An operator closes an incident whose fault is still there",
        expected="it stays closed while nothing changes, and what was drained is not forgotten",
        moves=together(rows_spent(60, [N]), says_of(600, "close", "gpu-memory-replace")),
        until_s=6 * HOUR_S,
        checks=(c.out(N), c.never(_RESUME), c.sees_at_most(2)),
    ),
    Situation(
        what="An operator closes a shared cause while 40 nodes still show it",
        expected="no node is treated for it one by one",
        nodes=256,
        moves=together(gpu_lost(60, nodes(0, 40, 6)), says_of(600, "close", "shared-gpu-off-bus-cell")),
        until_s=2 * HOUR_S,
        checks=(c.untouched(),),
    ),
    Situation(
        what="Half a cell is cut off and comes back after 3 minutes, while one of its nodes is healed",
        expected="one incident; the repair waits for the node and ends",
        moves=together(gpu_wants_reset(60, [N]), silent(70, nodes(0, 32), 180)),
        until_s=2 * HOUR_S,
        checks=(
            c.never(_RESUME, until_s=250),
            c.ends("gpu-fatal-xid", "closed"),
            c.out(),
            c.touches_at_most(1),
        ),
    ),
    Situation(
        what="The fabric manager fails, and the node falls silent when it is restarted",
        expected="not healed by silence; a person if it stays silent",
        moves=together(drill(60, "fabric-manager-down", N), silent(63.5, [N], 4 * HOUR_S)),
        until_s=3 * HOUR_S,
        checks=(
            c.never(_RESUME),
            c.ends("fabric-manager-down", "needs_human", "healing"),
            c.never("bmc.restart"),
        ),
    ),
    Situation(
        what="An XID that no catalogue has, on 500 nodes",
        expected="observed, told once, no action",
        nodes=512,
        moves=kernel(60, nodes(0, 500), xid(4242, GPU, "pid=1, name=python3, who knows")),
        until_s=HOUR_S,
        checks=(c.untouched(), c.sees_at_most(1), c.pages(1)),
    ),
    Situation(
        what="UFM restarts and reports everything again",
        expected="a report counts once",
        moves=together(_ufm_tells(60), _ufm_tells(600)),
        until_s=HOUR_S,
        checks=(c.untouched(), c.sees({"ib-far-end": 2})),
    ),
    Situation(
        what="A GPU dies for good while its node is alone in its rack",
        expected="the whole ladder once, then off and a person; nobody is paged that the node is silent",
        moves=gpu_lost(60, [N], dead=True),
        until_s=6 * HOUR_S,
        checks=(
            c.does(N, _DRAIN, "node.reboot", "bmc.power_cycle", "node.isolate"),
            c.sees({"gpu-lost": 1}),
            c.out(N),
        ),
    ),
    Situation(
        what="A BMC does not answer when a node is silent, and an operator approves its restart",
        expected="told that it does not answer; nothing else is tried on the node for ever",
        moves=together(
            answers(10, "bmc.restart", Outcome.UNREACHABLE, "BMC: no route to host"),
            answers(10, "bmc.power_on", Outcome.UNREACHABLE, "BMC: no route to host"),
            answers(10, "bmc.power_cycle", Outcome.UNREACHABLE, "BMC: no route to host"),
            answers(10, "bmc.evidence", Outcome.UNREACHABLE, "BMC: no route to host"),
            change(60, [N], ch.GoesDown(for_s=float("inf"))),
            *(says_of(120.0 + 60 * n, "approve", "node-unreachable") for n in range(20)),
        ),
        until_s=4 * HOUR_S,
        checks=(c.ends("node-unreachable", "needs_human"), c.pages(12)),
    ),
    Situation(
        what="A node is renumbered: the same name boots with an empty spool",
        expected="its new events count, its old fault is judged anew",
        moves=together(
            gpu_wants_reset(60, [N]), change(3000, [N], ch.GoesDown(for_s=30)), nic_broken(3300, [N])
        ),
        until_s=2 * HOUR_S,
        checks=(c.ends("gpu-fatal-xid", "closed"), c.ends("nic-broken", "closed"), c.out()),
    ),
    Situation(
        what="NVML hangs while a lost GPU is verified",
        expected="what cannot look proves nothing: not given back, a person",
        moves=together(
            gpu_wants_reset(60, [N]),
            lasting(
                70,
                [N],
                event("nvml.hung", "node", call="nvmlDeviceGetTemperature", waited_s=10.0, times=1),
                event("nvml.answers", "node", INFO, after_s=180.0),
                fixes=(Fix.RELOAD_DRIVER,),
            ),
        ),
        until_s=3 * HOUR_S,
        checks=(c.never(_RESUME, until_s=190), c.counts(N, _RESUME, 1)),
    ),
    Situation(
        what="Six different nodes with six different faults within a minute",
        expected="each is treated for itself, within the budget of three at once",
        moves=together(
            gpu_wants_reset(60, [node(1)]),
            gpu_lost(62, [node(10)]),
            nic_broken(64, [node(20)]),
            drill(66, "service-failed", node(30)),
            drill(68, "nvlink-down", node(40)),
            drill(70, "gpu-missing", node(50)),
        ),
        until_s=2 * HOUR_S,
        checks=(c.out(), c.touches_at_most(6), c.sees_at_most(6)),
    ),
)
