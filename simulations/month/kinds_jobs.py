"""Kinds of faults that jobs bring themselves: their programs, their memory, how they hang and connect. Pure."""

from simulations import changes as ch
from simulations.changes import after
from simulations.month.kinds import Cured, FaultKind, Harm
from simulations.month.signs import Shows, Sign, logs, says, shows, well

_LOG = "/var/log/jobs/{job}.log"
_KILLED = (
    "Out of memory: Killed process 4711 (python3) total-vm:70312344kB, anon-rss:61203456kB, file-rss:0kB, "
    "shmem-rss:0kB, UID:1000"
)
_OF_ITS_GROUP = (
    "Memory cgroup out of memory: Killed process 4712 (python3) total-vm:70312344kB, anon-rss:61203456kB, "
    "file-rss:0kB, shmem-rss:0kB, UID:1000"
)
_IS_REFUSED = says("job.rdma_error", "job/{job}", name="RDMA_CM_EVENT_CONNECT_ERROR", job="{job}", file=_LOG)
_NCCL = "an NCCL timeout takes 30 minutes to notice: arXiv 2401.00134"

KINDS: tuple[FaultKind, ...] = (
    FaultKind(
        name="script-fails",
        summary="an exception in the job's own script ends it; nothing on the node says so",
        plan=shows("node"),
        harm=Harm.KILLS,
        cured=Cured.JOB,
        alerts=False,
        checked=False,
        source="script errors dominate Acme's counts (NSDI '24)",
    ),
    FaultKind(
        name="job-stops",
        summary="XID 43: the driver stops a program's channels, and its job ends",
        plan=logs("NVRM: Xid (PCI:{gpu}): 43, pid=1234, name=python3, Ch 00000008"),
        harm=Harm.KILLS,
        cured=Cured.JOB,
        alerts=False,
        checked=False,
        source="a third of Fire-Flyer's XIDs: arXiv 2408.14158",
    ),
    FaultKind(
        name="job-cleaned-up",
        summary="XID 45: the driver cleans up after a program that has ended (noise)",
        plan=logs("NVRM: Xid (PCI:{gpu}): 45, pid=1234, name=python3, Ch 00000010"),
        harm=Harm.NONE,
        cured=Cured.TIME,
        lasts=(1.0, 0.0),
        alerts=False,
        checked=False,
        source="245 and 240 of Fire-Flyer's XIDs are 63 and 45: arXiv 2408.14158",
    ),
    FaultKind(
        name="job-spins",
        summary="a collective hangs: a GPU shows full use at idle power, until the watchdog ends the job",
        plan=Shows(
            first=Sign(),
            grows=(
                (
                    600.0,
                    Sign(
                        bad=(
                            says(
                                "gpu.spinning", "gpu/{gpu}", active=True, lasted_s=600.0, utilization=100,
                                power_w=118.0, limit_w=700.0, job="{job}", unit="",
                            ),
                        ),
                        well=(
                            well(
                                "gpu.spinning", "gpu/{gpu}", active=False, lasted_s=0.0, utilization=0,
                                power_w=90.0, limit_w=700.0, job="", unit="",
                            ),
                        ),
                    ),
                ),
            ),
        ),
        harm=Harm.HANGS,
        cured=Cured.JOB,
        seen_as="gpu-spinning",
        lasts=(1800.0, 0.0),
        alerts=False,
        checked=False,
        source=_NCCL,
    ),
    FaultKind(
        name="job-waits",
        summary="a rank waits for something for ever: its GPU is held and idle, until the watchdog ends the job",
        plan=Shows(
            first=Sign(),
            grows=(
                (
                    600.0,
                    Sign(
                        bad=(
                            says("gpu.idle", "gpu/{gpu}", idle_s=600.0, memory_mb=70_000, processes=1, job="{job}", unit=""),
                        ),
                        well=(well("gpu.busy", "gpu/{gpu}", utilization=0),),
                    ),
                ),
            ),
        ),
        harm=Harm.HANGS,
        cured=Cured.JOB,
        seen_as="gpu-stuck-job",
        lasts=(1800.0, 0.0),
        alerts=False,
        checked=False,
        source=_NCCL,
    ),
    FaultKind(
        name="job-connects-in-vain",
        summary="a node's RDMA connections are refused again and again, and its job ends",
        plan=Shows(first=Sign(bad=(_IS_REFUSED,), every_s=20.0)),
        harm=Harm.KILLS,
        cured=Cured.TIME,
        seen_as="rdma-connect-failed",
        lasts=(900.0, 0.6),
        alerts=False,
        checked=False,
    ),
    FaultKind(
        name="job-eats-memory",
        summary="a job takes the memory of the whole node, and the kernel ends it",
        plan=Shows(first=Sign(), changes=(after(0.1, ch.KernelLogs(text=_KILLED)),)),
        harm=Harm.KILLS,
        cured=Cured.JOB,
        seen_as="memory-exhausted",
        alerts=False,
        checked=False,
    ),
    FaultKind(
        name="job-at-its-limit",
        summary="a job's own memory limit ends one of its processes, and it with them",
        plan=Shows(first=Sign(), changes=(after(0.1, ch.KernelLogs(text=_OF_ITS_GROUP)),)),
        harm=Harm.KILLS,
        cured=Cured.JOB,
        alerts=False,
        checked=False,
        source="data loaders that are killed are 4.38 % of the GPU time that Acme lost (NSDI '24)",
    ),
    FaultKind(
        name="gpu-slow",
        summary="a GPU is a tenth slower than its peers, and nothing says so",
        plan=shows("gpu/{gpu}"),
        harm=Harm.SLOWS,
        alerts=False,
        checked=False,
        source="0.5 % of machines, 10 % slower: MegaScale (NSDI '24)",
    ),
)  # fmt: skip
