"""Logs of events made by chance, and an engine that plays one as fast as it goes. Pure."""

import random
from collections.abc import Iterable, Sequence

from agent.contract.messages import Event, Severity
from brain.core.engine import Engine
from brain.core.inputs import EventSeen, Input
from brain.core.rehearsal.timeline import Timeline

Log = Iterable[tuple[Input, float]]  # input and its time on the log, in order


def play(engine: Engine, log: Log, *, tail_s: float = 0.0) -> Timeline:
    """Plays a log of events only: timers fire in between, every page is delivered, steps stay unanswered.

    `tail_s`: how long to go on after the last input, so that open windows end.
    """
    timeline = Timeline(engine)
    at = 0.0
    for given, at in log:
        timeline.run(at)
        timeline.feed(given, at)
    timeline.run(at + tail_s)
    return timeline


def synthetic_events(
    nodes: Sequence[str], count: int, *, seed: int, per_s: float = 20_000.0, start: float = 1_700_000_000.0
) -> list[tuple[EventSeen, float]]:
    """`count` events of a busy fleet, `per_s` a second: mostly noise, one in a thousand a fault. The same for the same seed."""
    chance = random.Random(seed)
    shapes, weights = zip(*((shape, weight) for shape, weight in _SHAPES), strict=True)
    seq = dict.fromkeys(nodes, 0)
    log = []
    for n, shape in enumerate(chance.choices(shapes, weights, k=count)):
        node = nodes[chance.randrange(len(nodes))]
        seq[node] += 1
        log.append((EventSeen(event=_event(shape, node, seq[node], chance.randrange(8))), start + n / per_s))
    return log


def _event(
    shape: tuple[str, str, Severity, dict[str, str | int | float | bool]], node: str, seq: int, part: int
) -> Event:
    kind, component, severity, data = shape
    return Event(
        id=f"{node}:sim:{seq}",
        node=node,
        kind=kind,
        component=component.format(part, part=f"{part:02x}"),
        severity=severity,
        at="2023-11-14T22:13:20.000+00:00",
        age_s=0.0,
        boot="sim",
        count=1,
        data=data,
        evidence="synthetic",
    )


def _xid(code: int, name: str, action: str) -> dict[str, str | int | float | bool]:
    return {"code": code, "name": name, "action": action, "message": "synthetic"}


_GPU = "gpu/0000:{part}:00"
# (kind, component, severity, data), and how many of a thousand
_SHAPES: tuple[tuple[tuple[str, str, Severity, dict[str, str | int | float | bool]], float], ...] = (
    (("device.changed", "pcie/0000:{part}:00", Severity.INFO, {"change": "add", "subsystem": "pci"}), 250),
    (("gpu.busy", _GPU, Severity.INFO, {"utilization": 97}), 200),
    (
        (
            "ib.errors",
            "port/mlx5_{0}.1",
            Severity.WARNING,
            {"counter": "symbol_error", "delta": 1, "value": 7, "interval_s": 1.0, "spec_s": 30.0},
        ),
        250,
    ),
    (("gpu.xid", _GPU, Severity.WARNING, _xid(13, "GR_EXCEPTION", "RESTART_APP")), 100),
    (("job.nccl_error", "node", Severity.WARNING, {"what": "warning", "job": "1", "file": "/j/1.log"}), 149),
    (("service.state", "service/slurmd.service", Severity.INFO, {"active": "active", "sub": "running"}), 50),
    (("gpu.xid", _GPU, Severity.FATAL, _xid(79, "GPU_HAS_FALLEN_OFF_THE_BUS", "RESTART_BM")), 0.5),
    (
        (
            "link.state",
            "link/eth1",
            Severity.WARNING,
            {"up": False, "admin_up": True, "carrier": False, "operstate": "down"},
        ),
        0.5,
    ),
)
