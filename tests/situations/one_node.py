"""Situations in which several parts of one node fail together, or one fault of a node leads to others: one incident each."""

from agent.contract.messages import Scalar, Severity
from brain.core.pack.spec import Mode, ModeSetting
from simulations import changes as ch
from simulations.events import event
from simulations.faults import Fault, Fix
from simulations.scenarios.moves import Moves, change, job, kernel, node, reports, together, xid
from simulations.scenarios.troubles import gpu_lost, gpu_wants_reset, hot, nic_broken, port_down
from tests.situations import checks as c
from tests.situations.situation import Situation

HOUR_S = 3600.0
APPROVE = (ModeSetting(mode=Mode.APPROVE),)
_GPUS = tuple(f"gpu/0000:{bus}:00" for bus in ("1b", "29", "45", "4e", "9b", "ab", "c1", "d0"))
_A, _B, _C, _D = _GPUS[:4]
_DRAIN, _RESET, _RESUME = "scheduler.drain", "gpu.reset", "scheduler.resume"
_REBOOTED = (_DRAIN, "node.reboot", "bmc.power_cycle", _RESUME)
_WAS_RESET = (_DRAIN, _RESET, _RESUME)
_N = [node(1)]
_NVLINK = "NVLink: fatal error detected on link 14(0x0, 0x0, 0x10000, 0x0, 0x0, 0x0, 0x0)"
_ROW = "Row Remapper: New row marked for remapping, reset gpu to activate."
_SXID = "nvidia-nvswitch0: SXid (PCI:0000:c5:00.0): 20001, Fatal, Link 32 TX Replay Error"
_OOM = (
    "Out of memory: Killed process 4711 (python3) total-vm:70312344kB, anon-rss:61203456kB, file-rss:0kB, "
    "shmem-rss:0kB, UID:1000"
)
_AER = "pcieport 0000:1a:01.0: AER: Uncorrected (Fatal) error received: 0000:1b:00.0"


def _line(
    at_s: float, code: int, gpu: str, text: str = "pid=1234, name=python3, something happened"
) -> Moves:
    return kernel(at_s, _N, xid(code, gpu, text))


def _lost(at_s: float, *gpus: str, apart_s: float = 0.1, dead: bool = False) -> Moves:
    """GPUs of one node fall off the bus, one shortly after the other."""
    return together(*(gpu_lost(at_s + apart_s * place, _N, gpu, dead=dead) for place, gpu in enumerate(gpus)))


def _wants_reset(at_s: float, *gpus: str) -> Moves:
    return together(*(gpu_wants_reset(at_s + 0.1 * place, _N, gpu) for place, gpu in enumerate(gpus)))


def _unit(at_s: float, name: str, active: str = "failed", result: str = "exit-code") -> Moves:
    return change(at_s, _N, ch.UnitChanges(unit=name, active=active, result=result))


def _says(at_s: float, kind: str, component: str, **data: Scalar) -> Moves:
    """A fact that happens once."""
    fault = Fault(
        name=f"{kind} {component} {at_s}",
        component=component,
        fixes=(Fix.TIME,),
        symptoms=(event(kind, component, Severity.ERROR, **data),),
    )
    return change(at_s, _N, ch.FaultBegins(fault=fault))


def _far_end(at_s: float) -> Moves:
    """UFM tells of the switch's end of the cable."""
    data = {"side": "switch", "event": "702", "name": "Port is Considered Unhealthy", "text": ""}
    return reports(at_s, node(1), "ufm.port_unhealthy", "port/mlx5_0.1", Severity.ERROR, **data)


SITUATIONS = (
    Situation(
        what="Four GPUs of a node fall off the bus at once, as behind one power supply",
        expected="one incident of the node, one page, one ladder: reboot, power cycle, back",
        moves=_lost(60, *_GPUS[:4]),
        until_s=HOUR_S,
        checks=(
            c.sees({"gpu-lost": 1}),
            c.ends("gpu-lost", "closed"),
            c.does(node(1), *_REBOOTED),
            c.pages(1, least=1),
            c.told("several parts of one node"),
            c.out(),
        ),
    ),
    Situation(
        what="All eight GPUs of a node fall off the bus within a minute",
        expected="the same",
        moves=_lost(60, *_GPUS, apart_s=0.2),
        until_s=HOUR_S,
        checks=(c.sees({"gpu-lost": 1}), c.does(node(1), *_REBOOTED), c.pages(1, least=1), c.out()),
    ),
    Situation(
        what="Two GPUs of a node are dead for good",
        expected="one ladder to its end, the node stays out, a person hears of both",
        moves=_lost(60, _A, _B, dead=True),
        until_s=HOUR_S,
        checks=(
            c.does(node(1), _DRAIN, "node.reboot", "bmc.power_cycle", "node.isolate"),
            c.ends("gpu-lost", "needs_human"),
            c.out(node(1)),
        ),
    ),
    Situation(
        what="A GPU is lost, and another one while the node waits for its jobs",
        expected="one incident of the node, one reboot when the jobs are gone",
        moves=together(
            job(1, "j7", _N),
            gpu_lost(60, _N, _A),
            gpu_lost(300, _N, _B),
            change(1000, _N, ch.JobEnds(job="j7")),
        ),
        until_s=2 * HOUR_S,
        checks=(
            c.sees({"gpu-lost": 1}),
            c.does(node(1), *_REBOOTED),
            c.never("node.reboot", until_s=1000),
            c.told("several parts of one node"),
            c.out(),
        ),
    ),
    Situation(
        what="Two GPUs of a node want a reset at once",
        expected="one drain, one reset of all GPUs, one return",
        moves=_wants_reset(60, _A, _B),
        until_s=HOUR_S,
        checks=(c.sees({"gpu-fatal-xid": 1}), c.does(node(1), *_WAS_RESET), c.pages(1, least=1), c.out()),
    ),
    Situation(
        what="Two GPUs of a node want a reset at once, and each remedy needs an approval",
        expected="one question, for the node",
        settings={"modes": APPROVE},
        moves=_wants_reset(60, _A, _B),
        until_s=600,
        checks=(c.sees({"gpu-fatal-xid": 1}), c.untouched(), c.pages(2, least=1)),
    ),
    Situation(
        what="Another GPU of the node wants a reset an hour later",
        expected="another incident of that GPU alone",
        moves=together(_wants_reset(60, _A), _wants_reset(60 + HOUR_S, _B)),
        until_s=3 * HOUR_S,
        checks=(c.sees({"gpu-fatal-xid": 2}), c.does(node(1), *_WAS_RESET, *_WAS_RESET), c.out()),
    ),
    Situation(
        what="One GPU, then two of the node, then the first again want a reset",
        expected="what was tried on the part and on the node counts together: a person, drained",
        moves=together(_wants_reset(60, _A), _wants_reset(2000, _A, _B), _wants_reset(4000, _A)),
        until_s=2 * HOUR_S,
        checks=(
            c.does(node(1), *_WAS_RESET, *_WAS_RESET, _DRAIN),
            c.ends("gpu-fatal-xid", "closed", "needs_human"),
            c.out(node(1)),
        ),
    ),
    Situation(
        what="Two GPUs of different nodes are lost in the same second",
        expected="two incidents: nodes are not taken for one",
        moves=together(gpu_lost(60, [node(1)], _A), gpu_lost(60, [node(40)], _B)),
        until_s=HOUR_S,
        checks=(c.sees({"gpu-lost": 2}), c.out()),
    ),
    Situation(
        what="A GPU's PCIe error, and the loss of that GPU two minutes later",
        expected="one incident at the end, the loss; the node comes back",
        moves=together(kernel(60, _N, _AER), gpu_lost(180, _N, _A)),
        until_s=HOUR_S,
        checks=(c.sees({"gpu-lost": 1}), c.counts(node(1), "node.reboot", 1), c.out()),
    ),
    Situation(
        what="A double-bit error and its remapped row (XID 48, 63)",
        expected="one incident, one reset",
        moves=together(_line(60, 48, _A, "pid=1, name=p, DBE"), _line(60.2, 63, _A, _ROW)),
        until_s=HOUR_S,
        checks=(c.sees({"gpu-fatal-xid": 1}), c.does(node(1), *_WAS_RESET), c.pages(1, least=1), c.out()),
    ),
    Situation(
        what="The remapped row is told before the double-bit error, with a contained error (XID 63, 94, 48)",
        expected="one incident, one reset, in whatever order the lines come",
        moves=together(
            _line(60, 63, _A, _ROW),
            _line(60.1, 94, _A, "pid=1, name=p, Contained: FBHUB (0x1). RST: Yes, D-RST: No"),
            _line(60.3, 48, _A, "pid=1, name=p, DBE"),
        ),
        until_s=HOUR_S,
        checks=(c.sees({"gpu-fatal-xid": 1}), c.does(node(1), *_WAS_RESET), c.out()),
    ),
    Situation(
        what="A double-bit error whose row cannot be remapped (XID 48, 64)",
        expected="one incident: the card is to be replaced, no reset",
        moves=together(_line(60, 48, _A, "pid=1, name=p, DBE"), _line(60.2, 64, _A, "Row Remapper Error")),
        until_s=HOUR_S,
        checks=(c.sees({"gpu-memory-replace": 1}), c.never(_RESET, "node.reboot"), c.out(node(1))),
    ),
    Situation(
        what="A GPU is lost, and its peers print NVLink errors",
        expected="the loss explains them",
        moves=together(gpu_lost(60, _N, _A), *(_line(60.3, 74, gpu, _NVLINK) for gpu in (_B, _C, _D))),
        until_s=HOUR_S,
        checks=(c.sees({"gpu-lost": 1}), c.does(node(1), *_REBOOTED), c.pages(1, least=1), c.out()),
    ),
    Situation(
        what="A peer prints its NVLink error before the loss of the GPU is told",
        expected="the same: of facts a few seconds apart, the order decides nothing",
        moves=together(_line(60, 74, _B, _NVLINK), gpu_lost(62, _N, _A)),
        until_s=HOUR_S,
        checks=(c.sees({"gpu-lost": 1}), c.does(node(1), *_REBOOTED), c.pages(1, least=1), c.out()),
    ),
    Situation(
        what="A GPU is lost, and its programs end on the others (XID 45, 43, 13)",
        expected="one incident, the loss",
        moves=together(gpu_lost(60, _N, _A), _line(60.2, 45, _B), _line(60.3, 43, _C), _line(60.4, 13, _D)),
        until_s=HOUR_S,
        checks=(c.sees({"gpu-lost": 1}), c.pages(1, least=1), c.out()),
    ),
    Situation(
        what="A GPU is lost, and another one times out (XID 79, 119)",
        expected="one reboot for both",
        moves=together(gpu_lost(60, _N, _A), _line(61, 119, _B)),
        until_s=HOUR_S,
        checks=(c.sees({"gpu-lost": 1}), c.does(node(1), *_REBOOTED), c.pages(1, least=1), c.out()),
    ),
    Situation(
        what="An NVSwitch fails, and four GPUs print NVLink errors",
        expected="one incident of the switch",
        moves=together(kernel(60, _N, _SXID), *(_line(60.3, 74, gpu, _NVLINK) for gpu in _GPUS[:4])),
        until_s=HOUR_S,
        checks=(c.sees({"nvswitch-fatal": 1}), c.does(node(1), *_WAS_RESET), c.pages(1, least=1), c.out()),
    ),
    Situation(
        what="The fabric manager fails, and four GPUs print NVLink errors",
        expected="one incident of the fabric manager, which is started again",
        moves=together(
            _unit(60, "nvidia-fabricmanager.service"),
            *(_line(60.3, 74, gpu, _NVLINK) for gpu in _GPUS[:4]),
        ),
        until_s=HOUR_S,
        checks=(
            c.sees({"fabric-manager-down": 1}),
            c.does(node(1), _DRAIN, "fabricmanager.restart", _RESUME),
            c.out(),
        ),
    ),
    Situation(
        what="Four GPUs of a node print NVLink errors, and nothing says why",
        expected="one incident of the node, evidence, one page",
        moves=together(*(_line(60.3, 74, gpu, _NVLINK) for gpu in _GPUS[:4])),
        until_s=HOUR_S,
        checks=(c.sees({"gpu-nvlink-errors": 1}), c.untouched(), c.pages(2, least=1)),
    ),
    Situation(
        what="All eight GPUs of a node are too hot",
        expected="one incident of the node, less power for all, one alert",
        moves=hot(60, _N, _GPUS, 200),
        until_s=HOUR_S,
        checks=(
            c.sees({"gpu-thermal": 1}),
            c.does(node(1), "gpu.power_limit"),
            c.pages(1, least=1),
            c.out(),
        ),
    ),
    Situation(
        what="A GPU and a network card of a node fail in the same minute",
        expected="two incidents, one after the other, one return: a GPU does not explain a card",
        moves=together(_wants_reset(60, _A), nic_broken(61, _N)),
        until_s=HOUR_S,
        checks=(
            c.sees({"gpu-fatal-xid": 1, "nic-broken": 1}),
            c.counts(node(1), _RESUME, 1),
            c.out(),
        ),
    ),
    Situation(
        what="A GPU is lost, and nvidia-persistenced fails",
        expected="one incident, the loss; the service is not restarted by itself",
        moves=together(gpu_lost(60, _N, _A), _unit(65, "nvidia-persistenced.service")),
        until_s=HOUR_S,
        checks=(c.sees({"gpu-lost": 1}), c.never("service.restart"), c.pages(1, least=1), c.out()),
    ),
    Situation(
        what="The driver's packages are upgraded without its module, and nvidia-persistenced fails",
        expected="one incident: the driver is loaded anew, and nobody restarts the service in vain before",
        moves=together(
            kernel(
                60,
                _N,
                "NVRM: API mismatch: the client has the version 570.86.10, but this kernel module has the version 550.54.15.",
            ),
            _unit(65, "nvidia-persistenced.service"),
            _unit(495, "nvidia-persistenced.service", "active", "success"),
        ),
        until_s=HOUR_S,
        checks=(
            c.sees({"driver-mismatch": 1}),
            c.does(node(1), _DRAIN, "driver.reload", _RESUME),
            c.pages(1, least=1),
            c.out(),
        ),
    ),
    Situation(
        what="nvidia-persistenced fails, and nothing explains it",
        expected="it is restarted after the minutes in which a fault of the driver would show",
        moves=_unit(60, "nvidia-persistenced.service"),
        until_s=HOUR_S,
        checks=(
            c.sees({"driver-service-failed": 1}),
            c.does(node(1), "service.restart"),
            c.pages(0),
        ),
    ),
    Situation(
        what="The machine runs out of memory, and slurmd dies of it",
        expected="one incident that names the memory; the service is started again",
        moves=together(kernel(60, _N, _OOM), _unit(61, "slurmd.service", result="oom-kill")),
        until_s=2 * HOUR_S,
        checks=(
            c.sees({"service-died-of-memory": 1}),
            c.does(node(1), "service.restart"),
            c.pages(1),
        ),
    ),
    Situation(
        what="The machine runs out of memory, and only a program dies of it",
        expected="one incident that wakes nobody, with the evidence",
        moves=kernel(60, _N, _OOM),
        until_s=2 * HOUR_S,
        checks=(c.sees({"memory-exhausted": 1}), c.untouched()),
    ),
    Situation(
        what="The kernel panics, the node is silent and boots",
        expected="one incident, one page; it is tested and comes back",
        moves=together(
            kernel(60, _N, "Kernel panic - not syncing: Fatal exception"),
            change(60.5, _N, ch.GoesDown(for_s=300)),
        ),
        until_s=HOUR_S,
        checks=(c.sees({"kernel-broke": 1}), c.pages(1, least=1), c.ends("kernel-broke", "closed"), c.out()),
    ),
    Situation(
        what="A port is down, and UFM tells of the switch's end of the same cable before",
        expected="one incident, that of the port",
        moves=together(_far_end(55), port_down(60, _N)),
        until_s=600,
        checks=(c.sees({"ib-port-down": 1}), c.pages(2)),
    ),
    Situation(
        what="A port is down, and UFM tells of the switch's end of the same cable afterwards",
        expected="the same",
        moves=together(port_down(60, _N), _far_end(150)),
        until_s=600,
        checks=(c.sees({"ib-port-down": 1}), c.pages(2)),
    ),
    Situation(
        what="A port is down, and ten minutes later a job's collective times out",
        expected="the port explains it: one incident, the job is not requeued beside it",
        moves=together(
            job(1, "j7", _N),
            port_down(60, _N),
            _says(660, "job.nccl_error", "job/j7", what="timeout", job="j7", file="/var/log/jobs/j7.log"),
        ),
        until_s=HOUR_S,
        checks=(c.sees({"ib-port-down": 1}), c.never("scheduler.requeue")),
    ),
)
