"""Actions on services, modules, processes and the node as a whole."""

from agent.contract.actions.spec import ActionSpec, Disrupts, Param, Repeat, Right

_UNIT = Param(name="unit", type="text", summary="unit name; must be listed in the agent's `services`")
_STAY = Param(
    name="stay_s",
    type="float",
    summary="how long it must stay active, 0 to 60 s (default 2)",
    required=False,
)

ACTIONS = (
    ActionSpec(
        name="service.restart",
        summary="Restarts one systemd unit and waits until it has stayed active.",
        disrupts=Disrupts.JOB,
        repeat=Repeat.SAFE,
        timeout_s=60,
        needs=(Right.ROOT,),
        params=(_UNIT, _STAY),
    ),
    ActionSpec(
        name="service.start",
        summary="Starts one systemd unit and waits until it has stayed active; a running unit is left alone.",
        disrupts=Disrupts.NOTHING,
        repeat=Repeat.SAFE,
        timeout_s=60,
        needs=(Right.ROOT,),
        params=(_UNIT, _STAY),
    ),
    ActionSpec(
        name="service.stop",
        summary="Stops one systemd unit and waits until it is inactive.",
        disrupts=Disrupts.JOB,
        repeat=Repeat.SAFE,
        timeout_s=60,
        needs=(Right.ROOT,),
        params=(_UNIT,),
        heals=False,
    ),
    ActionSpec(
        name="module.load",
        summary="Loads kernel modules that the agent's configuration lists, and checks that they are there.",
        disrupts=Disrupts.NOTHING,
        repeat=Repeat.SAFE,
        timeout_s=60,
        needs=(Right.ROOT, Right.SYS_MODULE),
        params=(
            Param(
                name="module",
                type="text",
                summary="e.g. mlx5_ib, rdma_cm, nvidia_peermem; several by blanks apart",
            ),
        ),
    ),
    ActionSpec(
        name="node.reboot",
        summary="Reboots the node in an orderly way; it has ended when the node is back with another boot id.",
        disrupts=Disrupts.NODE,
        repeat=Repeat.NEVER,
        timeout_s=1200,
        needs=(Right.ROOT,),
        takes_node_away=True,
    ),
    ActionSpec(
        name="process.signal",
        summary="Sends a signal to the processes of one job on this node; refused for any other process.",
        disrupts=Disrupts.JOB,
        repeat=Repeat.NEVER,
        timeout_s=30,
        needs=(Right.KILL,),
        params=(
            Param(name="job", type="text", summary="the job that the incident names; its processes only"),
            Param(name="pid", type="int", summary="only this one of them (default: all)", required=False),
            Param(
                name="signal",
                type="text",
                summary="ABRT, INT, TERM, KILL or USR1 (default TERM)",
                required=False,
            ),
        ),
        heals=False,
    ),
    ActionSpec(
        name="evidence.collect",
        summary="Collects a bounded bundle (kernel log window, GPU, link and InfiniBand state, firewall, processes, jobs, "
        "NVIDIA's bug report) and uploads it to the bus' object store; `gpuward evidence` fetches it.",
        disrupts=Disrupts.NOTHING,
        repeat=Repeat.SAFE,
        timeout_s=120,
        params=(
            Param(name="component", type="component", summary="what the evidence is about"),
            Param(
                name="window_s",
                type="float",
                summary="how far back in the kernel log, 1 to 86,400 s (default 600)",
                required=False,
            ),
        ),
    ),
    ActionSpec(
        name="node.accept",
        summary="Runs the acceptance programs that the agent's configuration lists (`acceptance`: bandwidth, all-reduce, "
        "burn-in), reads their figures and holds them to the site's limits. What they print goes into a bundle. Not while a "
        "process holds a GPU. A program that is not installed is not run, and the result says so.",
        disrupts=Disrupts.NODE,
        repeat=Repeat.SAFE,
        timeout_s=1800,
        needs=(Right.ROOT,),
        params=(
            Param(
                name="suite",
                type="text",
                summary="`quick`: only programs with `quick = true` (half an hour at most in all); `full`: every program "
                "(default quick)",
                required=False,
            ),
        ),
        heals=False,
        tests=True,
        measures=True,
    ),
    ActionSpec(
        name="agent.look",
        summary="Looks again: every source takes its samples now, and the node tells afresh which conditions are present and "
        "which are well; these facts stand on the log before the result, which names the sources that could not look.",
        disrupts=Disrupts.NOTHING,
        repeat=Repeat.SAFE,
        timeout_s=30,
        params=(
            Param(
                name="component",
                type="component",
                summary="only what concerns it is told; of an interface, bond, port or network card all of them "
                "(default: everything)",
                required=False,
            ),
        ),
        heals=False,
    ),
    ActionSpec(
        name="fs.usage",
        summary="Finds the largest directories of a watched mount, within a time limit; reads only.",
        disrupts=Disrupts.NOTHING,
        repeat=Repeat.SAFE,
        timeout_s=120,
        params=(
            Param(name="mount", type="text", summary="mount point; must be watched by the agent"),
            Param(name="depth", type="int", summary="levels below it, 1 to 4 (default 2)", required=False),
        ),
    ),
)
