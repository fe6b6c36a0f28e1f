"""A drill: which nodes a fault befalls, and what the person who asked is told. No I/O."""

from collections.abc import Mapping
from typing import Any

from agent.contract.errors import ConfigError, GpuwardError, Refused
from brain.console.drill import EAR as EAR
from simulations.facilities import Facilities
from simulations.faults import FAULTS, Fault
from simulations.node import SimulatedNode


def answer(
    nodes: Mapping[str, SimulatedNode], request: Any, around: Facilities, now: float
) -> dict[str, Any]:
    """The reply to `{"do": "list"}` or `{"do": "inject", "name": ..., "node": ...}`; empty node: any.

    And to the brain's own `{"do": "perform", "action": ..., "node": ..., "params": ..., "why": ...}`.

    `{"ok": true, ...}`, or `{"ok": false, "error": sentence}` for what cannot be done.
    """
    try:
        match request:
            case {"do": "list"}:
                return {
                    "ok": True,
                    "drills": [_row(fault) for fault in FAULTS.values()],
                    "nodes": list(nodes),
                }
            case {"do": "inject", "name": str(name), "node": str(node)}:
                return _inject(nodes, name, node)
            case {
                "do": "perform",
                "action": str(action),
                "node": str(node),
                "params": dict(params),
                "why": str(why),
            }:
                deed = around.perform(action, node, params, why, now)
                for name in deed.touched:
                    nodes[name].look()
                done = deed.performed
                return {"ok": True, "outcome": done.outcome.value, "why": done.why, "took_s": done.took_s}
            case _:
                raise ConfigError("want {do: list} or {do: inject, name: ..., node: ...}")
    except GpuwardError as error:
        return {"ok": False, "error": str(error)}


def _inject(nodes: Mapping[str, SimulatedNode], name: str, node: str) -> dict[str, Any]:
    fault = FAULTS.get(name)
    if fault is None:
        raise ConfigError(f"there is no drill {name[:60]!r} (have: {', '.join(FAULTS)})")
    if fault.nodes == "all":
        if node:
            raise ConfigError(f"{name} befalls all nodes: leave --node away")
        targets = list(nodes.values())
    elif node:
        if node not in nodes:
            raise ConfigError(f"{node[:63]!r} is not a simulated node (have: {', '.join(nodes)})")
        targets = [nodes[node]]
    else:
        healthy = {name: one.machine.healthy() and one.hears() for name, one in nodes.items()}
        targets = [nodes[name] for name, well in healthy.items() if well == fault.breaks][:1]
        if not targets and fault.breaks:
            raise Refused("every simulated node has a fault already: `repair` one, or name one with --node")
        if not targets:
            raise Refused("no simulated node is broken")
    plans = [(target, fault.plan(target.machine)) for target in targets]  # all or none
    for target, plan in plans:
        target.inject(plan)
    return {"ok": True, "nodes": [target.name for target in targets]} | _row(fault)


def _row(fault: Fault) -> dict[str, Any]:
    return {
        "name": fault.name,
        "summary": fault.summary,
        "befalls": fault.nodes,
        "ends": fault.ends,
        "heals": fault.heals,
        "approval": fault.approval,
        "breaks": fault.breaks,
    }
