"""Situations of single nodes whose GPUs and cards are healed."""

from brain.core.pack.spec import Mode, ModeSetting
from simulations import changes as ch
from simulations.drills.drill import JOB
from simulations.scenarios.moves import GPU_2, change, job, kernel, node, nodes, says_of, together
from simulations.scenarios.troubles import gpu_lost, gpu_wants_reset, nic_broken, rows_spent
from tests.situations import checks as c
from tests.situations.situation import Situation

HOUR_S = 3600.0
APPROVE = (ModeSetting(mode=Mode.APPROVE),)
_BUSES = ("1b", "29", "45", "4e", "9b", "ab")
_DRAIN, _RESET, _RESUME = "scheduler.drain", "gpu.reset", "scheduler.resume"

SITUATIONS = (
    Situation(
        what="The same GPU fails again 20 minutes after it was healed, and again",
        expected="a second try at most, then a person, drained",
        moves=together(*(gpu_wants_reset(60 + 1200.0 * n, [node(1)]) for n in range(3))),
        until_s=2 * HOUR_S,
        checks=(
            c.does(node(1), _DRAIN, _RESET, _RESUME, _DRAIN, _RESET, _RESUME, _DRAIN),
            c.out(node(1)),
            c.told("tried"),
        ),
    ),
    Situation(
        what="Another GPU of the same node each time",
        expected="a person after the third within a day",
        moves=together(
            *(
                gpu_wants_reset(60 + HOUR_S * n, [node(1)], f"gpu/0000:{bus}:00")
                for n, bus in enumerate(_BUSES)
            )
        ),
        until_s=8 * HOUR_S,
        checks=(c.never(_RESET, after_s=3 * HOUR_S), c.out(node(1)), c.told("remedies within a day")),
    ),
    Situation(
        what="A GPU and a NIC of one node fail independently",
        expected="one after the other, one drain, one return",
        moves=together(gpu_wants_reset(60, [node(1)]), nic_broken(61, [node(1)])),
        until_s=HOUR_S,
        checks=(
            c.sees({"gpu-fatal-xid": 1, "nic-broken": 1}),
            c.ends("gpu-fatal-xid", "closed"),
            c.ends("nic-broken", "closed"),
            c.out(),
            c.counts(node(1), _RESUME, 1),
        ),
    ),
    Situation(
        what="A driver update without a reload: programs open no GPU",
        expected="after the minutes that an upgrade takes: drained, the driver reloaded, given back",
        moves=kernel(
            60,
            [node(1)],
            "NVRM: API mismatch: the client has the version 570.86.10, but this kernel module has the version 550.54.15.",
        ),
        until_s=HOUR_S,
        checks=(
            c.does(node(1), _DRAIN, "driver.reload", _RESUME),
            c.never(_DRAIN, until_s=480),
            c.ends("driver-mismatch", "closed"),
            c.out(),
        ),
    ),
    Situation(
        what="Another GPU is lost while the first is verified",
        expected="the node is not given back in between",
        moves=together(gpu_wants_reset(60, [node(1)]), gpu_lost(75, [node(1)], GPU_2)),
        until_s=HOUR_S,
        checks=(c.counts(node(1), _RESUME, 1), c.ends("gpu-lost", "closed"), c.out()),
    ),
    Situation(
        what="The same XID again during the verification",
        expected="the next rung at once",
        moves=together(gpu_wants_reset(60, [node(1)]), gpu_wants_reset(72, [node(1)])),
        until_s=HOUR_S,
        checks=(c.does(node(1), _DRAIN, _RESET, "node.reboot", _RESUME), c.ends("gpu-fatal-xid", "closed")),
    ),
    Situation(
        what="An approval arrives just as 38 other nodes show the fault",
        expected="absorbed by the shared cause, nothing done",
        nodes=256,
        settings={"modes": APPROVE},
        moves=together(
            gpu_lost(60, [node(0)]), gpu_lost(120, nodes(4, 38, 6)), says_of(120.3, "approve", "gpu-lost")
        ),
        until_s=HOUR_S,
        checks=(c.untouched(), c.ends("shared-gpu-off-bus-cell", "needs_human", "open")),
    ),
    Situation(
        what="The jobs of a node with a dead GPU end two hours later",
        expected="within the time that the site gives this class of fault: the drain waits, the GPU is reset then",
        moves=together(
            job(1, JOB, [node(1)]),
            gpu_wants_reset(60, [node(1)]),
            change(2 * HOUR_S, [node(1)], ch.JobEnds(job=JOB)),
        ),
        until_s=6 * HOUR_S,
        checks=(
            c.never(_RESET, until_s=2 * HOUR_S),
            c.counts(node(1), _RESET, 1),
            c.ends("gpu-fatal-xid", "closed"),
            c.out(),
        ),
    ),
    Situation(
        what="The jobs of a node with a dead GPU do not end within the time that the site gives them",
        expected="they are requeued at its deadline, and the GPU is reset",
        moves=together(job(1, JOB, [node(1)]), gpu_wants_reset(60, [node(1)])),
        until_s=6 * HOUR_S,
        checks=(
            c.never(_RESET, until_s=4 * HOUR_S),
            c.counts(node(1), _RESET, 1),
            c.ends("gpu-fatal-xid", "closed"),
            c.out(),
        ),
    ),
    Situation(
        what="A card waits for its replacement, and another fault of that node heals",
        expected="the node stays out of service",
        moves=together(rows_spent(60, [node(1)]), nic_broken(600, [node(1)])),
        until_s=2 * HOUR_S,
        checks=(c.out(node(1)), c.never(_RESUME), c.ends("nic-broken", "closed")),
    ),
)
