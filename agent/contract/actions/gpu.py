"""Actions on GPUs and their driver."""

from agent.contract.actions.spec import ActionSpec, Disrupts, Param, Repeat, Right

_GPU = Param(name="gpu", type="component", summary="`gpu/<bdf>`")

ACTIONS = (
    ActionSpec(
        name="gpu.reset",
        summary="Resets one GPU, or all where the topology requires it (A100 with NVSwitch); stops the services that hold "
        "it and starts them again whatever the outcome. Refused while a process holds it.",
        disrupts=Disrupts.NODE,
        repeat=Repeat.PROBE,
        timeout_s=300,
        needs=(Right.ROOT, Right.SYS_ADMIN),
        params=(
            Param(name="gpu", type="component", summary="`gpu/<bdf>`; `node`: all GPUs", required=False),
        ),
    ),
    ActionSpec(
        name="gpu.power_limit",
        summary="Sets the power limit of one GPU, or of all, within what the card allows, and remembers the limit before.",
        disrupts=Disrupts.JOB,
        repeat=Repeat.SAFE,
        timeout_s=60,
        needs=(Right.ROOT, Right.SYS_ADMIN),
        params=(
            Param(name="gpu", type="component", summary="`gpu/<bdf>`; `node`: all GPUs that answer"),
            Param(
                name="percent",
                type="float",
                summary="of the card's default limit, 40 to 100",
            ),
        ),
    ),
    ActionSpec(
        name="gpu.power_restore",
        summary="Gives GPUs back the power limits that gpu.power_limit has lowered; one that somebody has changed since is "
        "left as it is.",
        disrupts=Disrupts.NOTHING,
        repeat=Repeat.SAFE,
        timeout_s=60,
        needs=(Right.ROOT, Right.SYS_ADMIN),
        params=(Param(name="gpu", type="component", summary="`gpu/<bdf>` (default: all)", required=False),),
    ),
    ActionSpec(
        name="gpu.persistence",
        summary="Switches persistence mode on, for one GPU or all.",
        disrupts=Disrupts.NOTHING,
        repeat=Repeat.SAFE,
        timeout_s=30,
        needs=(Right.ROOT, Right.SYS_ADMIN),
        params=(Param(name="gpu", type="component", summary="`gpu/<bdf>` (default: all)", required=False),),
    ),
    ActionSpec(
        name="gpu.diagnose",
        summary="Runs NVIDIA's diagnostics (`dcgmi diag`), not while a process holds a GPU. Without DCGM nothing is tested, "
        "and the result says so.",
        disrupts=Disrupts.NODE,
        repeat=Repeat.SAFE,
        timeout_s=1800,
        params=(
            Param(name="level", type="int", summary="1 (seconds), 2 (minutes) or 3 (a quarter of an hour)"),
        ),
        heals=False,
        tests=True,
    ),
    ActionSpec(
        name="gpu.links_check",
        summary="Checks by NVML that every GPU on the PCI bus answers, with its full PCIe width and speed, all NVLinks at one "
        "speed, and the NVLink fabric completed. Waits a minute for it. Reads only.",
        disrupts=Disrupts.NOTHING,
        repeat=Repeat.SAFE,
        timeout_s=180,
        params=(
            Param(
                name="gpu",
                type="component",
                summary="`gpu/<bdf>`; any other component, e.g. `node`: all GPUs (default)",
                required=False,
            ),
        ),
        heals=False,
        tests=True,
        measures=True,
    ),
    ActionSpec(
        name="pci.rescan",
        summary="Removes what is left of a lost GPU and lets the kernel scan the PCI buses for it.",
        disrupts=Disrupts.JOB,
        repeat=Repeat.SAFE,
        timeout_s=60,
        needs=(Right.ROOT,),
        params=(_GPU,),
    ),
    ActionSpec(
        name="driver.reload",
        summary="Unloads and loads the NVIDIA driver in the documented order, and restarts the services that need it; "
        "refused while a process holds a GPU.",
        disrupts=Disrupts.NODE,
        repeat=Repeat.PROBE,
        timeout_s=300,
        needs=(Right.ROOT, Right.SYS_MODULE),
    ),
    ActionSpec(
        name="fabricmanager.restart",
        summary="Restarts NVIDIA's fabric manager and waits until every GPU's fabric state is completed.",
        disrupts=Disrupts.NODE,
        repeat=Repeat.SAFE,
        timeout_s=180,
        needs=(Right.ROOT,),
    ),
)
