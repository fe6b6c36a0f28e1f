"""Situations of the people beside the machine: their drains and repairs by hand, what they are told, and what waits for them."""

from collections.abc import Callable
from dataclasses import replace

from agent.contract.commands import Outcome
from agent.contract.messages import Severity
from brain.core.pack.spec import Mode, ModeSetting, Pack, Window
from simulations import changes as ch
from simulations.drills.drill import JOB
from simulations.events import event
from simulations.scenarios.moves import (
    GPU,
    Moves,
    answers,
    change,
    job,
    kernel,
    lasting,
    node,
    reload,
    says,
    says_of,
    scheduler,
    together,
    xid,
)
from simulations.scenarios.troubles import INFO, gpu_lost, gpu_wants_reset, port_down, rows_spent
from simulations.virtual_fleet import START
from tests.situations import checks as c
from tests.situations.situation import Situation

HOUR_S = 3600.0
N = node(1)
APPROVE = (ModeSetting(mode=Mode.APPROVE),)
_DRAIN, _RESET, _RESUME = "scheduler.drain", "gpu.reset", "scheduler.resume"
_BRAKE = event("gpu.throttle", GPU, Severity.WARNING, active=True, thermal=False, reasons="hw_power_brake")
_FULL_SPEED = event("gpu.throttle", GPU, INFO, active=False, thermal=False, reasons="")


def _without(cause: str) -> Callable[[Pack], Pack]:
    def edit(pack: Pack) -> Pack:
        rules = tuple(rule for rule in pack.rules if cause not in (rule.name, rule.cause))
        return replace(pack, rules=rules, version=f"{pack.version}-without-{cause}")

    return edit


def _untested(at_s: float) -> Moves:
    """Nodes have none of the tools that test them."""
    tests = ("gpu.diagnose", "node.accept", "gpu.links_check")
    return tuple(move for one in tests for move in answers(at_s, one, Outcome.REFUSED, "it is not installed"))


SITUATIONS = (
    Situation(
        what="A hold is put on a node whose drain waits for its jobs",
        expected="no job is ended under the hold, however long it stands; the node stays drained",
        moves=together(
            job(1, JOB, [N]),
            gpu_wants_reset(60, [N]),
            says(HOUR_S, "hold", scope=f"node/{N}", why="this training must end"),
        ),
        until_s=8 * HOUR_S,
        checks=(c.runs_on(N, JOB), c.never(_RESET), c.out(N)),
    ),
    Situation(
        what="A site goes to observe mode while a drain waits for jobs",
        expected="no job is ended in observe mode",
        moves=together(
            job(1, JOB, [N]), gpu_wants_reset(60, [N]), says(HOUR_S, "mode", runbook="*", mode="observe")
        ),
        until_s=8 * HOUR_S,
        checks=(c.runs_on(N, JOB), c.never(_RESET)),
    ),
    Situation(
        what="A maintenance window opens while a drain waits for jobs",
        expected="no job is ended in the window without an approval, which is asked for with its reason",
        settings={
            "maintenance": (
                Window(scope="all", since=START + 3 * HOUR_S, until=START + 7 * HOUR_S, why="cables"),
            )
        },
        moves=together(job(1, JOB, [N]), gpu_wants_reset(60, [N])),
        until_s=7 * HOUR_S,
        checks=(c.runs_on(N, JOB), c.told("approval wanted", "all is in maintenance: cables")),
    ),
    Situation(
        what="A protected job runs on a node with a dead GPU, nobody approves, and it ends after three hours",
        expected="people are asked once, and read which job it is; then the GPU is healed by itself",
        moves=together(
            job(1, "9", [N], protected=True),
            gpu_wants_reset(60, [N]),
            change(3 * HOUR_S, [N], ch.JobEnds(job="9")),
        ),
        until_s=6 * HOUR_S,
        checks=(
            c.never(_DRAIN, _RESET, until_s=3 * HOUR_S),
            c.told("approval wanted", "protected job 9 runs there"),
            c.pages(2),
            c.does(N, _DRAIN, _RESET, _RESUME),
            c.ends("gpu-fatal-xid", "closed"),
        ),
    ),
    Situation(
        what="A card must be replaced, and the scheduler does not answer for an hour",
        expected="a person is asked, and reads why; when it answers again the node is drained",
        moves=together(scheduler(1, silent=True), rows_spent(60, [N]), scheduler(HOUR_S, silent=False)),
        until_s=3 * HOUR_S,
        checks=(
            c.told("approval wanted", "it is not known what runs there"),
            c.told("n001 gets no new jobs"),
            c.out(N),
        ),
    ),
    Situation(
        what="A port dies for good under a hold of everything",
        expected="nothing is done, and somebody is told of the port and of the hold",
        moves=together(says(10, "hold", scope="all", why="an audit"), port_down(60, [N])),
        until_s=24 * HOUR_S,
        checks=(c.untouched(), c.told("not healed after 30 minutes", "ann holds all: an audit"), c.pages(1)),
    ),
    Situation(
        what="A port dies for good on a node whose job runs on for days",
        expected="the drain waits for the job, and somebody is told that the node waits",
        moves=together(job(1, JOB, [N]), port_down(60, [N])),
        until_s=24 * HOUR_S,
        checks=(c.told("not healed after", f"waiting for {JOB}"), c.pages(1), c.out(N), c.runs_on(N, JOB)),
    ),
    Situation(
        what="A rule is removed while a node is drained for it, and the node has no tools to test it",
        expected="a removed rule proves nothing: the node stays out, and a person is told",
        moves=together(
            _untested(1),
            job(1, JOB, [N]),
            gpu_wants_reset(60, [N]),
            reload(600, _without("gpu-fatal-xid")),
            change(HOUR_S, [N], ch.JobEnds(job=JOB)),
        ),
        until_s=6 * HOUR_S,
        checks=(c.never(_RESUME), c.out(N), c.told("rule gpu-fatal-xid was removed")),
    ),
    Situation(
        what="An operator works on a node that she has drained by hand, and one of its GPUs is lost",
        expected="nothing is rebooted under her hands without an approval, whose page names her drain; the drain stays",
        moves=together(change(10, [N], ch.DrainSet(reason="ann: new DIMMs")), gpu_lost(60, [N])),
        until_s=3 * HOUR_S,
        checks=(
            c.never("node.reboot", "bmc.power_cycle", "node.isolate"),
            c.told("approval wanted", "somebody else has drained n001 (ann: new DIMMs)"),
            c.pages(2),
            c.out(N),
        ),
    ),
    Situation(
        what="An operator gives a drained node back by hand in a maintenance window, and a job starts there",
        expected="when the window ends, the job is not ended without an approval, whose page says that the node was given back",
        settings={
            "maintenance": (Window(scope="all", since=START + 62.02, until=START + HOUR_S, why="cables"),)
        },
        moves=together(
            gpu_wants_reset(60, [N]),
            change(300, [N], ch.DrainSet(reason="")),
            job(310, "77", [N]),
        ),
        until_s=3 * HOUR_S,
        checks=(
            c.does(N, _DRAIN),
            c.runs_on(N, "77"),
            c.told("approval wanted", "somebody has given n001 back since it was drained"),
            c.pages(3),
        ),
    ),
    Situation(
        what="A fatal error of an NVSwitch, with errors on the links of four GPUs",
        expected="all GPUs are reset together, not the fabric manager alone restarted; one drain, one return",
        moves=together(
            kernel(
                60,
                [N],
                "nvidia-nvswitch0: SXid (PCI:0000:c1:00.0): 12028, Fatal, Link 32 egress non-posted PRIV error",
            ),
            *(
                kernel(
                    60.2,
                    [N],
                    xid(
                        74,
                        f"gpu/0000:{bus}:00",
                        "pid=1, NVLink: fatal error detected on link 5(0x10000, 0x0)",
                    ),
                )
                for bus in ("1b", "29", "45", "4e")
            ),
        ),
        until_s=3 * HOUR_S,
        checks=(
            c.does(N, _DRAIN, _RESET, _RESUME),
            c.ends("nvswitch-fatal", "closed"),
            c.pages(1),
            c.sees_at_most(1),
        ),
    ),
    Situation(
        what="A GPU is healed on a node that has none of the tools that test it",
        expected="it is given back, and the page that resolves the alert says what was not tested",
        moves=together(_untested(1), gpu_wants_reset(60, [N])),
        until_s=HOUR_S,
        checks=(
            c.does(N, _DRAIN, _RESET, _RESUME),
            c.out(),
            c.said("incident.closed", "not tested: links: it is not installed", "diagnosis", "acceptance"),
        ),
    ),
    Situation(
        what="The validation of a node fails after the reset, and again after the reboot",
        expected="a person, and the page says which test failed and that the node gets no new jobs",
        moves=together(
            answers(1, "gpu.diagnose", Outcome.FAILED, "memory test failed at GPU 3"),
            gpu_wants_reset(60, [N]),
        ),
        until_s=2 * HOUR_S,
        checks=(
            c.does(N, _DRAIN, _RESET, "node.reboot"),
            c.out(N),
            c.told("memory test failed at GPU 3", "n001 gets no new jobs"),
        ),
    ),
    Situation(
        what="An operator denies a repair whose drain waits for a job, and the GPU falls off the bus later",
        expected="the wait ends, the page says how the drain stands; the worse fault is judged for itself, with one drain",
        moves=together(
            job(1, JOB, [N]),
            gpu_wants_reset(60, [N]),
            says_of(120, "deny", "gpu-fatal-xid", why="I look myself"),
            change(500, [N], ch.JobEnds(job=JOB)),
            gpu_lost(600, [N]),
        ),
        until_s=3 * HOUR_S,
        checks=(
            c.never(_RESET),
            c.told("ann denied it: I look myself", "The drain of n001 did not end well"),
            c.ends("gpu-lost", "closed"),
            c.counts(N, _RESUME, 1),
            c.out(),
        ),
    ),
    Situation(
        what="The same fault comes back in the moment in which its node is given back",
        expected="the node is drained again before anything else is done to it",
        moves=together(gpu_wants_reset(60, [N]), gpu_wants_reset(95.3, [N])),
        until_s=HOUR_S,
        checks=(
            c.does(N, _DRAIN, _RESET, _RESUME, _DRAIN, _RESET, _RESUME),
            c.ends("gpu-fatal-xid", "closed"),
            c.out(),
        ),
    ),
    Situation(
        what="An approval is given under a hold that outlasts it",
        expected="nothing is done with it: people are asked again",
        settings={"modes": APPROVE},
        moves=together(
            says(10, "hold", scope=f"node/{N}", why="a look", for_s=2 * HOUR_S),
            gpu_wants_reset(60, [N]),
            says_of(120, "approve", "gpu-fatal-xid"),
        ),
        until_s=5 * HOUR_S,
        checks=(c.untouched(), c.told("approval wanted", "the approval of ann is void: its time is over")),
    ),
    Situation(
        what="A rack lacks power, a node more every 5 minutes, and has it again after two hours",
        expected="one incident; the nodes that had been drained by then come back, and nothing stays open",
        moves=together(
            *(
                lasting(60 + 300.0 * n, [node(n)], _BRAKE, _FULL_SPEED, for_s=7200 - 300.0 * n)
                for n in range(10)
            )
        ),
        until_s=4 * HOUR_S,
        checks=(
            c.out(),
            c.touches_at_most(3),
            c.ends("left-drained", "closed"),
            c.ends("shared-gpu-power-brake-rack", "closed"),
        ),
    ),
    Situation(
        what="A GPU dies for good, and the BMC of its node does not answer",
        expected="the page says that the node gets no new jobs and was not switched off; nothing is tried again",
        moves=together(
            answers(1, "bmc.power_cycle", Outcome.UNREACHABLE, "BMC: no route to host"),
            answers(1, "node.isolate", Outcome.UNREACHABLE, "BMC: no route to host"),
            gpu_lost(60, [N], dead=True),
        ),
        until_s=6 * HOUR_S,
        checks=(
            c.does(N, "scheduler.drain", "node.reboot", "bmc.power_cycle", "node.isolate"),
            c.told("n001 gets no new jobs", "was NOT switched off (BMC: no route to host)"),
            c.out(N),
        ),
    ),
)
