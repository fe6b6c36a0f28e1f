"""The words of a timeline: what happens, when, on which nodes. Times are seconds after the start."""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from agent.contract.commands import Outcome
from agent.contract.messages import Event, Scalar, Severity, UnsentEvent
from brain.core.inputs import EventSeen, Malformed, Reported
from brain.core.pack.spec import Pack, Place
from brain.core.state import IncidentState
from simulations import changes as ch
from simulations.faults import Fault, Fix
from simulations.scenarios.scene import FixedAnswer, Scene, auto

Moves = tuple["Move", ...]
GPU = "gpu/0000:1b:00"
GPU_2 = "gpu/0000:29:00"
ENDED = (IncidentState.CLOSED, IncidentState.EXPLAINED)


@dataclass(frozen=True, slots=True, kw_only=True)
class Move:
    """Something happens."""

    at_s: float
    do: Callable[[Scene], None]


def node(number: int) -> str:
    """The name of a node."""
    return f"n{number:03}"


def nodes(first: int, count: int, step: int = 1) -> tuple[str, ...]:
    """Names of nodes: neighbours, or every `step`th."""
    return tuple(node(first + step * n) for n in range(count))


def _each(
    at_s: float, names: Iterable[str], every_s: float, do: Callable[[Scene, tuple[str, ...]], None]
) -> Moves:
    """On all nodes at once, or (every_s) one after the other."""
    given = tuple(names)
    if not every_s:
        return (Move(at_s=at_s, do=lambda scene: do(scene, given)),)

    def one(name: str) -> Callable[[Scene], None]:
        return lambda scene: do(scene, (name,))

    return tuple(Move(at_s=at_s + n * every_s, do=one(name)) for n, name in enumerate(given))


def drill(at_s: float, name: str, *on: str, every_s: float = 0) -> Moves:
    """A drill begins."""

    def do(scene: Scene, names: tuple[str, ...]) -> None:
        for each in names:
            scene.inject(name, each, at_s=scene.at_s)

    return _each(at_s, on, every_s, do)


def change(at_s: float, on: Iterable[str], *changes: ch.Change, every_s: float = 0) -> Moves:
    """Machines change."""
    return _each(at_s, on, every_s, lambda scene, names: scene.change(names, changes))


def kernel(at_s: float, on: Iterable[str], text: str, *, every_s: float = 0) -> Moves:
    """A line in the kernel log."""
    return change(at_s, on, ch.KernelLogs(text=text), every_s=every_s)


def xid(code: int, gpu: str = GPU, text: str = "pid=1234, name=python3, something happened") -> str:
    """A line of the NVIDIA driver."""
    return f"NVRM: Xid (PCI:{gpu.removeprefix('gpu/')}): {code}, {text}"


def lasting(
    at_s: float,
    on: Iterable[str],
    bad: UnsentEvent,
    well: UnsentEvent | None = None,
    *,
    fixes: tuple[Fix, ...] = (),
    for_s: float = math.inf,
    every_s: float = 0,
    repeat_s: float = 0,
) -> Moves:
    """A condition that is there until it is fixed or its time is over."""
    given = tuple(on)
    name = f"{bad.kind} {bad.component} {at_s}"
    fault = Fault(
        name=name,
        target=name,
        component=bad.component,
        fixes=(*fixes, Fix.TIME),
        symptoms=(bad,),
        recovery=(well,) if well is not None else (),
        repeat_s=repeat_s,
    )
    begins = change(at_s, given, ch.FaultBegins(fault=fault), every_s=every_s)
    if for_s == math.inf:
        return begins
    end = ch.FixApplied(fix=Fix.TIME, component=bad.component, target=name)
    return begins + change(at_s + for_s, given, end, every_s=every_s)


def silent(at_s: float, on: Iterable[str], for_s: float, *, every_s: float = 0) -> Moves:
    """Nodes neither send nor receive anything for so long."""
    return change(at_s, on, ch.GoesUnreachable(for_s=for_s), every_s=every_s)


def says(at_s: float, verb: str, who: str = "ann", **args: Scalar) -> Moves:
    """An operator's command."""

    def do(scene: Scene) -> None:
        scene.command(verb, at_s=scene.at_s, who=who, **args)

    return (Move(at_s=at_s, do=do),)


def says_of(at_s: float, verb: str, cause: str, **args: Scalar) -> Moves:
    """An operator's command about each open incident of a cause."""

    def do(scene: Scene) -> None:
        for one in list(scene.log.incidents.values()):
            if one.cause == cause and one.state not in ENDED:
                scene.command(verb, at_s=scene.at_s, who="ann", id=one.id, **args)

    return (Move(at_s=at_s, do=do),)


def says_about(at_s: float, verb: str, on: str, **args: Scalar) -> Moves:
    """An operator's command about each open incident of a node."""

    def do(scene: Scene) -> None:
        for one in list(scene.log.incidents.values()):
            if one.node == on and one.state not in ENDED:
                scene.command(verb, at_s=scene.at_s, who="ann", id=one.id, **args)

    return (Move(at_s=at_s, do=do),)


def answers(
    at_s: float,
    action: str,
    outcome: Outcome,
    why: str,
    *,
    on: str = "*",
    times: float = math.inf,
    took_s: float = 1.0,
) -> Moves:
    """From now on an action answers this instead of being done. `took_s` inf: it never answers."""

    def do(scene: Scene) -> None:
        scene.answers.insert(
            0, FixedAnswer(action=action, outcome=outcome, why=why, nodes=on, left=times, took_s=took_s)
        )

    return (Move(at_s=at_s, do=do),)


def works_again(at_s: float) -> Moves:
    """Every action is done again."""

    def do(scene: Scene) -> None:
        scene.answers.clear()

    return (Move(at_s=at_s, do=do),)


def scheduler(at_s: float, *, silent: bool) -> Moves:
    """The scheduler does not answer, or answers again: neither to questions nor to drains."""
    why = "the scheduler does not answer"

    def do(scene: Scene) -> None:
        scene.scheduler_silent = silent

    asked = (Move(at_s=at_s, do=do),)
    if not silent:
        return asked + works_again(at_s)
    return asked + tuple(
        move
        for action in ("scheduler.drain", "scheduler.resume")
        for move in answers(at_s, action, Outcome.UNREACHABLE, why)
    )


def job(at_s: float, name: str, on: Iterable[str], *, protected: bool = False) -> Moves:
    """A job starts."""

    def do(scene: Scene) -> None:
        if protected:
            scene.protected.add(name)

    return (Move(at_s=at_s, do=do), *change(at_s, on, ch.JobStarts(job=name)))


def new_leader(at_s: float) -> Moves:
    """Another brain leads."""
    return (Move(at_s=at_s, do=Scene.lead),)


def nobody_leads(at_s: float, for_s: float) -> Moves:
    """No brain leads for so long; then one reads the log and leads."""
    return (
        Move(at_s=at_s, do=lambda scene: scene.nobody_leads(for_s)),
        Move(at_s=at_s + for_s, do=Scene.somebody_leads),
    )


def reload(at_s: float, edit: Callable[[Pack], Pack] = lambda pack: pack, **settings: Any) -> Moves:
    """New rules or settings are in force."""

    def do(scene: Scene) -> None:
        pack = edit(auto(scene.size, **{**scene.settings, **settings}))
        scene.load(replace(pack, version=pack.version if edit is None else f"{pack.version}"))

    return (Move(at_s=at_s, do=do),)


def stand(at_s: float, on: Iterable[str], where: Mapping[str, str]) -> Moves:
    """The topology says from now on that nodes stand elsewhere: kind -> name."""
    given, kinds = tuple(on), dict[str, Any](where)

    def do(scene: Scene) -> None:
        scene.stand({node: replace(scene.places.get(node, Place()), **kinds) for node in given})

    return (Move(at_s=at_s, do=do),)


def sends(
    at_s: float, name: str, kind: str, component: str, *, boot: str = "boot-0", **data: Scalar
) -> Moves:
    """A node sends an event that its machine did not make."""
    event = Event(
        id=f"{name}:odd-{at_s}:1",
        node=name,
        kind=kind,
        component=component,
        severity=Severity.ERROR,
        at="",
        age_s=0.0,
        boot=boot,
        count=1,
        data=data,
        evidence=kind,
    )
    return (Move(at_s=at_s, do=lambda scene: scene.tell(EventSeen(event=event))),)


def forges(at_s: float, by: str) -> Moves:
    """A node reports that the step under way on another node has succeeded."""

    def do(scene: Scene) -> None:
        for move in sends(
            at_s,
            by,
            "command.result",
            "node",
            command=scene.done[-1].step.id,
            outcome="ok",
            why="done",
            took_s=0.1,
        ):
            move.do(scene)

    return (Move(at_s=at_s, do=do),)


def reports(at_s: float, on: str, kind: str, component: str, severity: Severity, **data: Scalar) -> Moves:
    """UFM reports a fact."""
    return reports_by("ufm", at_s, on, kind, component, severity, data)


def reports_by(
    source: str,
    at_s: float,
    on: str,
    kind: str,
    component: str,
    severity: Severity,
    data: Mapping[str, Scalar],
) -> Moves:
    """Something else than a node reports a fact: UFM, a BMC, a scheduler."""

    def do(scene: Scene) -> None:
        given = Reported(
            id=f"{source}-{kind}-{on}-{component}-{at_s:g}",
            source=source,
            node=on,
            kind=kind,
            component=component,
            severity=severity,
            data=data,
        )
        scene.log.feed(given, scene.log.now)

    return (Move(at_s=at_s, do=do),)


def garbage(at_s: float, on: str, count: int) -> Moves:
    """A node sends messages that cannot be read."""

    def do(scene: Scene) -> None:
        for n in range(count):
            given = Malformed(
                id=f"bad-{on}-{at_s}-{n}", subject=f"ward.default.event.{on}", node=on, why="not JSON"
            )
            scene.log.feed(given, scene.log.now)

    return (Move(at_s=at_s, do=do),)


def together(*parts: Sequence[Move]) -> Moves:
    """One timeline of several."""
    return tuple(move for part in parts for move in part)
