"""What surrounds simulated machines: scheduler, BMCs, switches, subnet managers. Pure.

The brain's own actions are performed here on simulated machines, and nothing else can be reached (law 9).
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass

from brain.core.inputs import JobsAnswer
from brain.core.jobs_seen import JobSeen, listed
from simulations.actions import FABRIC_ACTIONS, INFRASTRUCTURE_ACTIONS
from simulations.actions.base import ActionRequest, Params, SimulatedResult, refused
from simulations.actions.infrastructure import MARK
from simulations.machines import Machine

SCHEDULER = "simulated"  # its name


@dataclass(frozen=True, slots=True, kw_only=True)
class Performed:
    """The result of an action of the brain, and the nodes that may have something new to report."""

    result: SimulatedResult
    nodes: tuple[str, ...] = ()


class Infrastructure:
    """Of one cell. It keeps no state: drain, jobs and power are part of each machine's."""

    def __init__(self, machines: Mapping[str, Machine]) -> None:
        self._machines = machines

    def perform(
        self, action: str, node: str, params: Params, why: str, now: float, *, waited_s: float = math.inf
    ) -> Performed:
        """Begins an action of the brain, or asks one that waits again; what it changes on machines comes while it runs.

        `waited_s`: for how long it has waited; by default it does not wait for jobs, so that a rehearsal takes seconds.
        """
        if action in FABRIC_ACTIONS:
            return self._on_fabric(action, now)
        machine, simulated = self._machines.get(node), INFRASTRUCTURE_ACTIONS.get(action)
        if machine is None or simulated is None:
            return Performed(result=refused(f"no simulated {action} for {node or 'a fabric'}"))
        request = ActionRequest(machine=machine.state, params=params, why=why, waited_s=waited_s)
        return Performed(result=machine.begin(simulated, request, now), nodes=(node,))

    def jobs(self, node: str) -> tuple[JobSeen, ...]:
        """What its scheduler knows of the jobs on a node: whose they are, and on how many nodes each runs."""
        machine = self._machines.get(node)
        if machine is None:
            return ()
        return listed(
            JobSeen(
                id=job, user=user, nodes=sum(job in other.state.jobs for other in self._machines.values())
            )
            for job, user in machine.state.jobs.items()
        )

    def answer(self, node: str, id_: str, *, people: bool) -> JobsAnswer:
        """The scheduler's answer about a node, as the input `id_`. No job is protected."""
        seen, machine = self.jobs(node), self._machines.get(node)
        reason = machine.state.drain_reason if machine is not None else ""
        return JobsAnswer(
            id=id_,
            node=node,
            known=True,
            jobs=tuple(job.id for job in seen),
            drained=reason,
            ours=reason.startswith(MARK),
            people=people,
            seen=seen,
            scheduler=SCHEDULER,
        )

    def _on_fabric(self, action: str, now: float) -> Performed:
        result = FABRIC_ACTIONS[action]([machine.state for machine in self._machines.values()])
        if not result.changes:
            return Performed(result=result)
        for machine in self._machines.values():
            machine.apply(result.changes, now)
        return Performed(result=result, nodes=tuple(self._machines))
