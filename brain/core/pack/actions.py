"""All actions by name: those of the nodes, and those that the brain performs itself (`brain/actions`).

Only declarations: what rules, gates, rehearsals and documents need to know. Scheduler actions are the same for
Slurm and Kubernetes; the brain's configuration says which of them manages a node.
"""

from collections.abc import Mapping

from agent.contract.actions import ACTIONS as NODE_ACTIONS
from agent.contract.actions.spec import ActionSpec, Disrupts, Param, Repeat
from brain.core.pack.spec import PAGE

_JOB = Param(name="job", type="text", summary="job id (Slurm) or namespace/pod (Kubernetes)")
_PORT = Param(
    name="component",
    type="component",
    summary="the node's own port, `port/<device>.<port>` or `link/<interface>`; the switch port is its other end",
)
_FABRIC = Param(
    name="fabric",
    type="text",
    summary="its name in [subnet_managers], also as `fabric/<name>` (default: the only one)",
    required=False,
)


def _spec(
    name: str,
    summary: str,
    disrupts: Disrupts,
    repeat: Repeat,
    timeout_s: float,
    params: tuple[Param, ...] = (),
    *,
    takes_node_away: bool = False,
    heals: bool = True,
    drains: bool = False,
    returns: bool = False,
) -> ActionSpec:
    return ActionSpec(
        name=name,
        summary=summary,
        disrupts=disrupts,
        repeat=repeat,
        timeout_s=timeout_s,
        params=params,
        where="brain",
        takes_node_away=takes_node_away,
        heals=heals,
        drains=drains,
        returns=returns,
    )


BRAIN_ACTIONS: Mapping[str, ActionSpec] = {
    spec.name: spec
    for spec in (
        _spec(
            "scheduler.drain",
            "No new jobs on the node, with the incident's mark in the reason; then waits for its jobs. A drain of "
            "another incident gets a second mark; a drain of somebody else is left as it is. A scheduler that is "
            "away is asked again.",
            Disrupts.NODE,
            Repeat.SAFE,
            7200,
            (
                Param(
                    name="fault",
                    type="text",
                    summary="degraded or dead: wait_s and then come from `settings.drains`",
                    required=False,
                ),
                Param(
                    name="wait_s",
                    type="float",
                    summary="how long jobs may go on, 0 to 2,592,000 s (default 0: do not wait)",
                    required=False,
                ),
                Param(
                    name="then",
                    type="text",
                    summary="with jobs left after it: fail (the drain stays), undo (it goes), requeue or go_on (default fail)",
                    required=False,
                ),
            ),
            heals=False,
            drains=True,
        ),
        _spec(
            "scheduler.idle",
            "Waits until the node has no jobs, without a drain: jobs run on, and new ones may start.",
            Disrupts.NOTHING,
            Repeat.SAFE,
            604_800,
            (
                Param(
                    name="wait_s",
                    type="float",
                    summary="at most so long, 0 to 604,800 s (default 604,800)",
                    required=False,
                ),
            ),
        ),
        _spec(
            "scheduler.resume",
            "Takes the incident's mark off our drain of the node, and with the last mark the drain; a drain of "
            "somebody else stays.",
            Disrupts.NOTHING,
            Repeat.SAFE,
            60,
            (
                Param(
                    name="owners",
                    type="text",
                    summary="incidents whose marks go, separated by spaces; `all`: every mark of ours "
                    "(default: the step's own incident)",
                    required=False,
                ),
            ),
            returns=True,
        ),
        _spec(
            "scheduler.requeue",
            "Requeues one job (Slurm) or evicts one pod (Kubernetes, honouring its disruption budget).",
            Disrupts.JOB,
            Repeat.PROBE,
            120,
            (_JOB,),
            heals=False,
        ),
        _spec(
            "scheduler.reboot",
            "Lets the scheduler reboot the node as soon as it is idle (Slurm), and waits until it is back; it stays "
            "drained with our mark.",
            Disrupts.NODE,
            Repeat.NEVER,
            3600,
            takes_node_away=True,
            drains=True,
        ),
        _spec(
            "scheduler.jobs",
            "Lists the jobs of the node with their users and GPUs; reads only.",
            Disrupts.NOTHING,
            Repeat.SAFE,
            30,
        ),
        _spec(
            "bmc.evidence",
            "Reads power state, sensors and event log of the node's BMC. Sensors that are not well fail the step.",
            Disrupts.NOTHING,
            Repeat.SAFE,
            60,
        ),
        _spec(
            "bmc.power_on",
            "Switches the node on by its BMC and sees that it is on.",
            Disrupts.NODE,
            Repeat.SAFE,
            180,
            takes_node_away=True,
        ),
        _spec(
            "bmc.power_off",
            "Switches the node off by its BMC (hard) and sees that it is off.",
            Disrupts.NODE,
            Repeat.SAFE,
            180,
            takes_node_away=True,
            heals=False,
        ),
        _spec(
            "bmc.power_cycle",
            "Cuts the node's power and gives it back, and sees that it is on.",
            Disrupts.NODE,
            Repeat.NEVER,
            300,
            takes_node_away=True,
        ),
        _spec(
            "bmc.restart",
            "Restarts the node by its BMC, in an orderly way where the BMC can, and sees that it is on.",
            Disrupts.NODE,
            Repeat.NEVER,
            300,
            takes_node_away=True,
        ),
        _spec(
            "bmc.nmi",
            "Sends a non-maskable interrupt by the BMC: a hung kernel writes its crash dump.",
            Disrupts.NODE,
            Repeat.NEVER,
            60,
            takes_node_away=True,
            heals=False,
        ),
        _spec(
            "node.isolate",
            "Fences the node: drain in the scheduler, orderly shutdown with a deadline, power off by the BMC, "
            "and sees that it is off.",
            Disrupts.NODE,
            Repeat.SAFE,
            900,
            (
                Param(
                    name="shutdown_s",
                    type="float",
                    summary="how long the operating system may take, 0 to 600 s (default 120)",
                    required=False,
                ),
            ),
            takes_node_away=True,
            heals=False,
            drains=True,
        ),
        _spec(
            "sm.status",
            "Finds the state of all subnet managers that the site names; reads only.",
            Disrupts.NOTHING,
            Repeat.SAFE,
            60,
            (_FABRIC,),
        ),
        _spec(
            "fabric.inspect",
            "Lets one node look over a whole InfiniBand fabric (ib.inspect): links and error counters of all ports, and "
            "ibdiagnet where it is configured. What it finds fails the step.",
            Disrupts.NOTHING,
            Repeat.SAFE,
            1900,
            (_FABRIC,),
        ),
        _spec(
            "sm.start_standby",
            "Starts a subnet manager on a host where none runs, and waits until the fabric has a master.",
            Disrupts.FABRIC,
            Repeat.SAFE,
            120,
            (_FABRIC,),
        ),
        _spec(
            "sm.stop_master",
            "Stops the service of a master that does not answer, and waits until another one is master.",
            Disrupts.FABRIC,
            Repeat.PROBE,
            180,
            (_FABRIC,),
        ),
        _spec(
            "switch.port_bounce",
            "Takes the switch's end of a node's cable down and up again.",
            Disrupts.NODE,
            Repeat.PROBE,
            120,
            (_PORT,),
        ),
        _spec(
            "switch.port_disable",
            "Takes the switch's end of a node's cable down, so that its errors hurt nobody else.",
            Disrupts.NODE,
            Repeat.SAFE,
            60,
            (_PORT,),
            heals=False,
        ),
        _spec(
            "switch.port_enable",
            "Takes the switch's end of a node's cable up again.",
            Disrupts.NOTHING,
            Repeat.SAFE,
            60,
            (_PORT,),
        ),
    )
}
# Performed by the engine itself: pages people.
PAGE_ACTION = ActionSpec(
    name=PAGE,
    summary="Tells people, with the incident and its evidence.",
    disrupts=Disrupts.NOTHING,
    repeat=Repeat.SAFE,
    timeout_s=0,
    params=(
        Param(name="to", type="text", summary="channel group (default oncall)", required=False),
        Param(
            name="text",
            type="text",
            summary="what to say (default: runbook and rung); $drained, $done, $evidence and $switched_off say what happened",
            required=False,
        ),
    ),
    where="engine",
)

ACTIONS: Mapping[str, ActionSpec] = {**NODE_ACTIONS, **BRAIN_ACTIONS}
