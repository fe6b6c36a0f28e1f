"""Actions of the brain on one node: by its scheduler, its BMC, and the switch at the other end of its cables. Pure."""

import math
from collections.abc import Callable, Mapping
from dataclasses import replace

from simulations import changes as ch
from simulations.actions.base import (
    ASK_S,
    TRAIN_S,
    ActionRequest,
    SimulatedAction,
    SimulatedResult,
    failed,
    refused,
    succeeded,
    waiting,
)
from simulations.changes import ScheduledChange, after
from simulations.faults import Fix

MARK = "gpuward"  # begins the reason of our own drains, as in brain/actions/base.py
BMC_S = 0.5  # a request to a BMC


def _ok(why: str, took_s: float = ASK_S, *changes: ScheduledChange) -> SimulatedResult:
    return succeeded(f"{why} (simulated)", took_s, *changes)


def _drained(request: ActionRequest) -> ScheduledChange:
    return after(0, ch.DrainSet(reason=f"{MARK}: {request.why}"))


def drain(request: ActionRequest) -> SimulatedResult:
    """Waits for the node's jobs as long as it is to, unless it is not to wait at all."""
    machine, then = request.machine, str(request.params.get("then", "fail"))
    theirs = machine.drain_reason if not machine.drain_reason.startswith(MARK) else ""
    jobs = ", ".join(machine.jobs)
    left_s = request.number("wait_s", 0) - request.waited_s
    if 0 < request.waited_s < math.inf and not machine.drain_reason:
        return refused(f"someone has taken the drain off {machine.name}")
    if jobs and left_s > 0:
        began = () if machine.drain_reason else (_drained(request),)
        return waiting(request, f"drained; waiting for {jobs}", left_s, *began)
    if theirs and jobs and then != "go_on":
        return failed(f"drained by someone else, left as it is ({theirs}), and there still run {jobs}", ASK_S)
    if theirs:
        return replace(_ok(f"drained by someone else, left as it is ({theirs})"), kept_out=theirs)
    if not jobs or then == "go_on":
        return _ok("drained", ASK_S, _drained(request))
    if then == "requeue":
        ends = (after(ASK_S, ch.JobEnds(job=job)) for job in machine.jobs)
        return _ok(f"drained; requeued {jobs}", ASK_S, _drained(request), *ends)
    undone = (after(ASK_S, ch.DrainSet(reason="")),) if then == "undo" else ()
    return failed(f"jobs are left: {jobs}", ASK_S, _drained(request), *undone)


def wait_until_idle(request: ActionRequest) -> SimulatedResult:
    """Fails when jobs still run after its time."""
    left_s = request.number("wait_s", 0) - request.waited_s
    if request.machine.jobs and left_s > 0:
        return waiting(request, f"waiting for {', '.join(request.machine.jobs)}", left_s)
    if request.machine.jobs:
        return failed(f"never idle: {', '.join(request.machine.jobs)}", ASK_S)
    return _ok("no jobs")


def resume(request: ActionRequest) -> SimulatedResult:
    """Law 3: only our own drain."""
    reason = request.machine.drain_reason
    if not reason.startswith(MARK):
        return _ok(f"there is no drain of ours: {reason or 'none at all'}")
    return _ok("resumed", ASK_S, after(0, ch.DrainSet(reason="")))


def requeue(request: ActionRequest) -> SimulatedResult:
    """Refused when the job does not run on the node."""
    job = request.text("job")
    if job not in request.machine.jobs:
        return refused(f"no job {job} runs on {request.machine.name}")
    return _ok(f"job {job} was requeued", ASK_S, after(ASK_S, ch.JobEnds(job=job)))


def list_jobs(request: ActionRequest) -> SimulatedResult:
    """Changes nothing."""
    return _ok("; ".join(f"{job} of {user}" for job, user in request.machine.jobs.items()) or "no jobs")


def reboot_when_idle(request: ActionRequest) -> SimulatedResult:
    """Fails while jobs run, as they do not end by themselves; the node stays drained."""
    if request.machine.jobs:
        return failed(f"never idle: {', '.join(request.machine.jobs)}", ASK_S)
    boot_s = request.times.boot_s
    down = after(ASK_S, ch.GoesDown(for_s=boot_s))
    return _ok("rebooted", boot_s + 2 * ASK_S, _drained(request), down)


def read_bmc(request: ActionRequest) -> SimulatedResult:
    """Changes nothing."""
    power = "off" if request.machine.off else "on"
    return _ok(f"power {power}; fans and power supplies are fine; no new events")


def power_on(request: ActionRequest) -> SimulatedResult:
    """Changes nothing on a node that is on."""
    if not request.machine.off:
        return _ok("it is on already")
    return _ok("switched on", BMC_S, after(0, ch.GoesDown(for_s=request.times.boot_s, power=True)))


def power_off(_: ActionRequest) -> SimulatedResult:
    """The node is off until it is switched on."""
    return _ok("switched off", BMC_S, after(0, ch.GoesDown(for_s=math.inf)))


def power_cycle(request: ActionRequest) -> SimulatedResult:
    """Power is cut and restored."""
    return _ok("off and on again", BMC_S, after(0, ch.GoesDown(for_s=request.times.boot_s, power=True)))


def restart(request: ActionRequest) -> SimulatedResult:
    """Refused for a node that is off."""
    if request.machine.off:
        return refused(f"{request.machine.name} is off: bmc.power_on switches it on")
    return _ok("restarted", BMC_S, after(0, ch.GoesDown(for_s=request.times.boot_s)))


def isolate(request: ActionRequest) -> SimulatedResult:
    """The node is drained, and off until it is switched on."""
    off = after(BMC_S, ch.GoesDown(for_s=math.inf))
    return _ok("drained, shut down, off", 2 * BMC_S, _drained(request), off)


def _set_switch_port(*steps: Callable[[str], ch.Change]) -> SimulatedAction:
    """An action at the switch's end of a cable: what the node's end sees of it, step by step."""

    def action(request: ActionRequest) -> SimulatedResult:
        component = request.text("component")
        kind, _, name = component.partition("/")
        if kind == "link" and name in request.machine.links:
            return _ok(f"the switch's end of {component} was set")
        if _device(component) not in request.machine.ports:
            return refused(f"no switch port is known opposite {component}")
        changes = (after(n * TRAIN_S, step(component)) for n, step in enumerate(steps))
        return _ok(f"the switch's end of {component} was set", TRAIN_S * len(steps), *changes)

    return action


def _down(component: str) -> ch.Change:
    return ch.PortDown(device=_device(component))


def _up(component: str) -> ch.Change:
    return ch.PortUp(device=_device(component))


def _trained(component: str) -> ch.Change:
    return ch.FixApplied(fix=Fix.RESET_PORT, component=component)


def _device(component: str) -> str:
    return component.partition("/")[2].removesuffix(".1")


ACTIONS: Mapping[str, SimulatedAction] = {
    "scheduler.drain": drain,
    "scheduler.idle": wait_until_idle,
    "scheduler.resume": resume,
    "scheduler.requeue": requeue,
    "scheduler.reboot": reboot_when_idle,
    "scheduler.jobs": list_jobs,
    "bmc.evidence": read_bmc,
    "bmc.power_on": power_on,
    "bmc.power_off": power_off,
    "bmc.power_cycle": power_cycle,
    "bmc.restart": restart,
    "bmc.nmi": restart,
    "node.isolate": isolate,
    "switch.port_bounce": _set_switch_port(_down, _up, _trained),
    "switch.port_disable": _set_switch_port(_down),
    "switch.port_enable": _set_switch_port(_up),
}
