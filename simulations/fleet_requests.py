"""The simulated fleet's answers: to `gpuward drill`, and to a brain that performs its own actions on it. No I/O."""

from collections.abc import Mapping
from typing import Any

from agent.contract.errors import ConfigError, GpuwardError, Refused
from agent.contract.messages import UnsentEvent
from brain.core.operators import scopes
from simulations.drills import DRILLS, Drill
from simulations.drills.drill import of_one_leaf
from simulations.infrastructure import Infrastructure
from simulations.node import SimulatedNode


def answer(
    nodes: Mapping[str, SimulatedNode], request: Any, infrastructure: Infrastructure, now: float
) -> dict[str, Any]:
    """The reply to one request: `{"ok": true, ...}`, or `{"ok": false, "error": sentence}`.

    `{"do": "list"}`                                       the drills and the nodes
    `{"do": "inject", "name": ..., "node": ...}`           starts a drill; empty node: the first healthy one
    `{"do": "perform", "action": ..., "node": ..., "params": ..., "why": ...}`
                                                           performs an action of the brain
    `{"do": "bmc"}`                                        what the BMCs of all nodes have said last
    `{"do": "jobs", "node": ...}`                          what the scheduler knows of a node: its jobs, and why it is drained
    """
    try:
        match request:
            case {"do": "list"}:
                return {
                    "ok": True,
                    "drills": [_row(drill) for drill in DRILLS.values()],
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
                performed = infrastructure.perform(action, node, params, why, now)
                for name in performed.nodes:
                    nodes[name].advance()
                result = performed.result
                return {
                    "ok": True,
                    "outcome": result.outcome.value,
                    "why": result.why,
                    "took_s": result.took_s,
                }
            case {"do": "bmc"}:
                return {
                    "ok": True,
                    "facts": [_fact(*one) for node in nodes.values() for one in node.bmc_says()],
                }
            case {"do": "jobs", "node": str(node)} if node in nodes:
                jobs = [
                    {"id": job.id, "user": job.user, "nodes": job.nodes} for job in infrastructure.jobs(node)
                ]
                return {"ok": True, "jobs": jobs, "drained": nodes[node].machine.state.drain_reason}
            case _:
                raise ConfigError("want {do: list} or {do: inject, name: ..., node: ...}")
    except GpuwardError as error:
        return {"ok": False, "error": str(error)}


def _fact(number: str, unsent: UnsentEvent) -> dict[str, Any]:
    return {
        "id": number,
        "node": number.partition(":")[0],
        "kind": unsent.kind,
        "component": unsent.component,
        "severity": unsent.severity.value,
        "data": dict(unsent.data),
    }


def _inject(nodes: Mapping[str, SimulatedNode], name: str, node: str) -> dict[str, Any]:
    drill = DRILLS.get(name)
    if drill is None:
        meant = scopes.have(name[:60], list(DRILLS), shown=len(DRILLS))
        raise ConfigError(f"there is no drill {name[:60]!r}{meant}")
    targets = _targets(nodes, drill, node)
    if drill.nodes == "leaf":
        targets = [nodes[name] for name in of_one_leaf(list(nodes), targets[0].name)]
    plans = [(target, drill.plan(target.machine.state)) for target in targets]  # all or none
    for target, plan in plans:
        target.inject(plan)
    return {"ok": True, "nodes": [target.name for target in targets]} | _row(drill)


def _targets(nodes: Mapping[str, SimulatedNode], drill: Drill, node: str) -> list[SimulatedNode]:
    """The nodes that the drill affects, or on whose leaf it does: all, the named one, or the first one that is fit for it."""
    if drill.nodes == "all":
        if node:
            raise ConfigError(f"{drill.name} affects all nodes: leave --node away")
        return list(nodes.values())
    if node:
        if node not in nodes:
            raise ConfigError(f"{node[:63]!r} is not a simulated node (have: {', '.join(nodes)})")
        return [nodes[node]]
    for one in nodes.values():
        if (one.machine.healthy() and not one.unreachable()) == drill.breaks:
            return [one]
    if drill.breaks:
        raise Refused("every simulated node has a fault already: `repair` one, or name one with --node")
    raise Refused("no simulated node is broken")


def _row(drill: Drill) -> dict[str, Any]:
    return {
        "name": drill.name,
        "summary": drill.summary,
        "affects": drill.nodes,
        "ends": drill.ends,
        "heals": drill.heals,
        "approval": drill.approval,
        "breaks": drill.breaks,
    }
