"""What the lines of a timeline do to the machines of a cell."""

import hashlib
import math
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Protocol, cast

from agent.contract.lines import KernelReader
from agent.contract.messages import Scalar, Severity, UnsentEvent
from brain.core.pack.lint_symptoms import KINDS
from simulations import changes as ch
from simulations.events import event
from simulations.scenarios import troubles
from simulations.scenarios.moves import (
    Move,
    Moves,
    change,
    drill,
    job,
    kernel,
    lasting,
    nobody_leads,
    reports_by,
    says,
    says_of,
    silent,
    stand,
    xid,
)
from simulations.scenarios.names import nodes
from simulations.scenarios.spec import StoryLine
from simulations.state import MachineState

GPUS = tuple(MachineState(name="").gpus)  # addresses, by index
# A node's usual versions and parts.
USUAL: Mapping[str, Scalar] = {
    "changed": False,
    "kernel": "5.15.0-1053",
    "driver": "550.90.07",
    "gpus": 8,
    "gpu_models": "8 NVIDIA H100 80GB HBM3",
    "nics": 9,
    "nic_firmware": "8 MT4129 28.39.1002, 1 MT4125 22.39.1002",
    "cpus": 192,
    "memory_mb": 2063000,
    "product": "G593-SD0",
    "bios": "F17",
}


class LateTeller(Protocol):
    """A cell in which facts may come late."""

    def told_late(self, node: str, unsent: UnsentEvent, *, age_s: float, count: int) -> None:
        """A fact arrives `age_s` after it occurred, for so many equal ones."""


def moves(line: StoryLine) -> Moves:
    """The moves of a line, repeated as it says."""
    return tuple(
        move
        for n in range(line.times)
        for move in _VERBS[line.verb](replace(line, at=line.at + n * line.pause), nodes(line.on))
    )


def _gpus(line: StoryLine) -> list[str]:
    given = range(len(GPUS)) if line.gpu == "all" else (line.gpu,) if isinstance(line.gpu, int) else line.gpu
    return [f"gpu/{GPUS[n]}" for n in given]


def _for_s(line: StoryLine) -> float:
    return line.lasts or math.inf


def _port_down(line: StoryLine, on: tuple[str, ...]) -> Moves:
    return troubles.port_down(line.at, on, for_s=_for_s(line), every_s=line.every, port=line.port_down)


def _link_down(line: StoryLine, on: tuple[str, ...]) -> Moves:
    down = change(line.at, on, ch.CarrierLost(link=line.link_down), every_s=line.every)
    if not line.lasts:
        return down
    return down + change(line.at + line.lasts, on, ch.AdminUp(link=line.link_down), every_s=line.every)


def _gpu_lost(line: StoryLine, on: tuple[str, ...]) -> Moves:
    dead = line.gpu_lost == "for good"
    return tuple(
        move
        for gpu in _gpus(line)
        for move in troubles.gpu_lost(line.at, on, gpu, dead=dead, every_s=line.every)
    )


def _wants_reset(line: StoryLine, on: tuple[str, ...]) -> Moves:
    return tuple(
        move for gpu in _gpus(line) for move in troubles.gpu_wants_reset(line.at, on, gpu, every_s=line.every)
    )


def _xid(line: StoryLine, on: tuple[str, ...]) -> Moves:
    texts = [xid(line.xid, gpu, line.text) for gpu in _gpus(line)]
    return tuple(move for text in texts for move in _logged(line, on, text))


def _kernel(line: StoryLine, on: tuple[str, ...]) -> Moves:
    texts = [line.kernel.replace("{gpu}", gpu.removeprefix("gpu/")) for gpu in _gpus(line)]
    return tuple(move for text in texts for move in _logged(line, on, text))


def _logged(line: StoryLine, on: tuple[str, ...], text: str) -> Moves:
    if line.age or line.count > 1:
        return _late(line, on, lambda: KernelReader().read(text))
    return kernel(line.at, on, text, every_s=line.every)


def _event(line: StoryLine, on: tuple[str, ...]) -> Moves:
    found: Moves = ()
    for gpu in _gpus(line):
        component = line.component.replace("{gpu}", gpu.removeprefix("gpu/"))
        if line.source:
            found += _reported(line, on, component)
            continue
        bad = event(line.event, component, line.severity, **line.data)
        if line.age or line.count > 1:
            found += _late(line, on, lambda bad=bad: [bad])  # type: ignore[misc]  # a lambda's default has no type
            continue
        well = (
            event(line.well_kind or line.event, component, Severity.INFO, **line.well) if line.well else None
        )
        found += lasting(
            line.at, on, bad, well, fixes=line.fixed_by, for_s=_for_s(line) if line.well else 1.0, every_s=line.every
        )  # fmt: skip
    return found


def _reported(line: StoryLine, on: tuple[str, ...], component: str) -> Moves:
    """Something else than the node reports a fact about it, and its end."""
    severity = line.severity or KINDS[line.event].severity
    found: Moves = ()
    for n, name in enumerate(on):
        at_s = line.at + n * line.every
        found += reports_by(line.source, at_s, name, line.event, component, severity, line.data)
        if line.well and line.lasts:
            kind = line.well_kind or line.event
            found += reports_by(
                line.source, at_s + line.lasts, name, kind, component, Severity.INFO, line.well
            )
    return found


def _late(line: StoryLine, on: tuple[str, ...], told: Callable[[], list[UnsentEvent]]) -> Moves:
    """Facts that no machine of the cell keeps: they come when the line says."""

    def move(name: str, at_s: float) -> Move:
        def do(scene: object) -> None:
            for unsent in told():
                cast(LateTeller, scene).told_late(name, unsent, age_s=line.age, count=line.count)

        return Move(at_s=at_s, do=do)

    return tuple(move(name, line.at + n * line.every) for n, name in enumerate(on))


def _hot(line: StoryLine, on: tuple[str, ...]) -> Moves:
    parts = (
        [(line.at + n * line.every, (name,)) for n, name in enumerate(on)] if line.every else [(line.at, on)]
    )
    return tuple(move for at, names in parts for move in troubles.hot(at, names, _gpus(line), _for_s(line)))


def _unit_fails(line: StoryLine, on: tuple[str, ...]) -> Moves:
    failed = change(
        line.at,
        on,
        ch.UnitChanges(unit=line.unit_fails, active="failed", result="signal"),
        every_s=line.every,
    )
    if not line.lasts:
        return failed
    active = ch.UnitChanges(unit=line.unit_fails, active="active")
    return failed + change(line.at + line.lasts, on, active, every_s=line.every)


def _inventory(line: StoryLine, on: tuple[str, ...]) -> Moves:
    data = {**USUAL, **line.inventory}
    digest = hashlib.sha256(repr(sorted(data.items())).encode()).hexdigest()[:12]
    told = event("node.inventory", "node", None, digest=digest, **data)
    return _late(line, on, lambda: [told])


def _says(line: StoryLine, _: tuple[str, ...]) -> Moves:
    args = dict(line.args)
    who = str(args.pop("who", "ann"))
    if line.about:
        return says_of(line.at, line.says, line.about, **args)
    return says(line.at, line.says, who, **args)


_VERBS: Mapping[str, Callable[[StoryLine, tuple[str, ...]], Moves]] = {
    "port_down": _port_down,
    "link_down": _link_down,
    "gpu_lost": _gpu_lost,
    "wants_reset": _wants_reset,
    "xid": _xid,
    "kernel": _kernel,
    "event": _event,
    "hot": _hot,
    "dark": lambda line, on: troubles.dark(line.at, on, line.dark, every_s=line.every),
    "silent": lambda line, on: silent(line.at, on, line.silent, every_s=line.every),
    "agent_restarts": lambda line, on: troubles.agent_restarts(line.at, on, line.agent_restarts, every_s=line.every),
    "sm_master": lambda line, on: change(line.at, on, ch.MasterChanges(sm_lid=line.sm_master), every_s=line.every),
    "unit_fails": _unit_fails,
    "inventory": _inventory,
    "job": lambda line, on: job(line.at, line.job, on, protected=line.protected),
    "job_ends": lambda line, on: change(line.at, on, ch.JobEnds(job=line.job_ends), every_s=line.every),
    "drained": lambda line, on: change(line.at, on, ch.DrainSet(reason=line.drained), every_s=line.every),
    "drill": lambda line, on: drill(line.at, line.drill, *(on or ("",)), every_s=line.every),
    "repaired": lambda line, on: change(line.at, on, ch.Repaired(), every_s=line.every),
    "says": _says,
    "restarts": lambda line, on: troubles.restarts(line.at, on, line.restarts, every_s=line.every),
    "stands": lambda line, on: stand(line.at, on, line.stands),
    "nobody_leads": lambda line, _: nobody_leads(line.at, line.nobody_leads),
}  # fmt: skip
