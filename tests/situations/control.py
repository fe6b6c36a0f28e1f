"""Situations of the brain, its schedulers and its operators: what is asked, refused, held and late."""

from agent.contract.commands import Outcome
from brain.core.pack.spec import Window
from simulations.events import event
from simulations.scenarios.moves import (
    GPU,
    answers,
    kernel,
    lasting,
    nobody_leads,
    node,
    nodes,
    says,
    scheduler,
    silent,
    together,
    xid,
)
from simulations.scenarios.troubles import gpu_wants_reset, rows_spent
from simulations.virtual_fleet import START
from tests.situations import checks as c
from tests.situations.situation import Situation

HOUR_S = 3600.0
_DRAIN, _RESET, _RESUME = "scheduler.drain", "gpu.reset", "scheduler.resume"
_95 = xid(95, GPU, "pid=1, name=python3, Uncontained: FBHUB (0x1). RST: Yes, D-RST: No")
N = node(1)
_TIMED_OUT = event("job.nccl_error", "job/4711", what="timeout", job="4711", file="/var/log/jobs/4711.log")

SITUATIONS = (
    Situation(
        what="NCCL time-outs on 200 nodes of one job",
        expected="one incident of the job",
        nodes=256,
        moves=lasting(60, nodes(0, 200), _TIMED_OUT, for_s=1),
        until_s=2 * HOUR_S,
        checks=(c.untouched(), c.sees_at_most(1)),
    ),
    Situation(
        what="A partition while a repair is verified",
        expected="not healed until the node is heard and has looked again",
        moves=together(gpu_wants_reset(60, [N]), silent(70, [N], 60)),
        until_s=HOUR_S,
        checks=(c.never(_RESUME, until_s=130), c.ends("gpu-fatal-xid", "closed"), c.out()),
    ),
    Situation(
        what="No brain for two hours, then it catches up; the fault has passed",
        expected="nothing disruptive on two-hour-old facts",
        moves=together(nobody_leads(30, 2 * HOUR_S), kernel(60, [N], _95)),
        until_s=5 * HOUR_S,
        checks=(c.untouched(), c.pages(9, least=1)),
    ),
    Situation(
        what="A maintenance window ends",
        expected="what waits is judged anew by itself",
        settings={"maintenance": (Window(scope="all", since=START, until=START + HOUR_S, why="new cables"),)},
        moves=gpu_wants_reset(60, [N]),
        until_s=3 * HOUR_S,
        checks=(
            c.never(_DRAIN, _RESET, until_s=HOUR_S),
            c.does(N, _DRAIN, _RESET, _RESUME),
            c.ends("gpu-fatal-xid", "closed"),
        ),
    ),
    Situation(
        what="The scheduler does not answer",
        expected="stops before the drain, asks again, then a person",
        moves=together(scheduler(10, silent=True), gpu_wants_reset(60, [N])),
        until_s=4 * HOUR_S,
        checks=(c.never(_RESET, "node.reboot"), c.told("approval wanted")),
    ),
    Situation(
        what="The return to service fails",
        expected="told, and the incident stays open",
        moves=together(
            answers(10, _RESUME, Outcome.FAILED, "slurmctld: unable to contact"), gpu_wants_reset(60, [N])
        ),
        until_s=2 * HOUR_S,
        checks=(c.ends("gpu-fatal-xid", "needs_human", "open"), c.out(N), c.told("unable to contact")),
    ),
    Situation(
        what="A node is silent for 3 minutes and comes back",
        expected="closed by itself, no page after the return",
        moves=silent(60, [N], 180),
        until_s=2 * HOUR_S,
        checks=(c.untouched(), c.ends("node-unreachable", "closed"), c.pages(2), c.no_page_after(245)),
    ),
    Situation(
        what="The weekly inspection meets a drained node",
        expected="left alone",
        settings={"inspect_s": 2 * HOUR_S},
        moves=rows_spent(60, [N]),
        until_s=5 * HOUR_S,
        nodes=4,
        checks=(c.out(N), c.never(_RESUME, node=N)),
    ),
    Situation(
        what="A hold for a minute beside an older open hold",
        expected="the older one stands",
        moves=together(
            says(10, "hold", scope=f"node/{N}", why="a new cable"),
            says(20, "hold", who="bob", scope=f"node/{N}", why="a look", for_s=60.0),
            gpu_wants_reset(120, [N]),
        ),
        until_s=HOUR_S,
        checks=(c.untouched(), c.said("run.held", "a new cable")),
    ),
    Situation(
        what="The API server restarts during an eviction",
        expected="goes on within its time",
        moves=together(
            answers(10, _DRAIN, Outcome.UNREACHABLE, "connection refused", times=1), gpu_wants_reset(60, [N])
        ),
        until_s=HOUR_S,
        checks=(c.does(N, _DRAIN, _DRAIN, _RESET, _RESUME), c.ends("gpu-fatal-xid", "closed")),
    ),
    Situation(
        what="The drain is refused: gpuward has no right to it",
        expected="the page says so, and the cause is named",
        moves=together(
            answers(10, _DRAIN, Outcome.REFUSED, "Access/permission denied"), gpu_wants_reset(60, [N])
        ),
        until_s=HOUR_S,
        checks=(c.never(_RESET), c.told("permission denied"), c.ends("gpu-fatal-xid", "needs_human")),
    ),
)
