"""Watches the safety laws while gpuward's month goes on; the first violation stops it, with the story of the node.

Judged from what leaves the engine and from the world's own account, never from the engine's state: no act under a hold
(law 2), never two disruptive runs on one node nor more than the budgets (law 1), no step without its intent (law 4), no node
given back with a fault that ends jobs (law 8).
"""

from collections.abc import Iterable

from agent.contract.actions.spec import Disrupts
from agent.contract.errors import GpuwardError
from brain.core.effects import Note, Step
from brain.core.healing.budgets import LONG_WAIT_S
from brain.core.pack.actions import ACTIONS
from brain.core.pack.spec import Pack
from brain.core.state import Run, RunState
from simulations.month.world import World

_OVER = (
    RunState.SUCCEEDED, RunState.EXHAUSTED, RunState.OBSERVED, RunState.CANCELLED, RunState.HELD, RunState.APPROVAL,
)  # fmt: skip
_TOLD_S = 6 * 3600.0  # of a node's story


class LawBrokenError(GpuwardError):
    """A safety law was broken: which one, and the story of the node."""


class Watcher:
    """The laws of one month."""

    def __init__(self, world: World, pack: Pack) -> None:
        self._world = world
        self._pack = pack
        self._at_work: dict[str, str] = {}  # run -> node
        self._waits: dict[str, float] = {}  # run that only keeps new jobs away -> since when
        self._last: dict[str, str] = {}  # run at work -> its newest step that disrupts
        self._over: dict[str, float] = {}  # step -> when it left, and then when it ended
        self._intended: dict[str, None] = {}
        self._left: dict[str, None] = {}

    def run_shown(self, run: Run) -> None:
        """A run has changed: what waits or is over disturbs nobody."""
        if run.state in _OVER:
            self._at_work.pop(run.id, None)
            self._waits.pop(run.id, None)
            self._over.pop(self._last.pop(run.id, ""), None)

    def ended(self, step: str, now: float) -> None:
        """The result of a step has come."""
        if step in self._over:
            self._over[step] = now

    def intended(self, step: str) -> None:
        """The intent of a step has come back on the log."""
        self._intended[step] = None

    def leaves(self, step: Step, now: float) -> str:
        """A step leaves: which law that breaks; empty: none."""
        if step.id not in self._intended:
            return f"law 4: {step.id} ({step.action}) leaves without its intent"
        again = step.id in self._left
        self._left[step.id] = None
        if step.disrupts is Disrupts.NOTHING or not step.node:
            if ACTIONS[step.action].tests and step.run in self._at_work:  # on the way back
                self._waits.setdefault(step.run, self._over[self._last[step.run]])
            return ""
        if hold := self._world.held(step.node, now):
            return f"law 2: {step.id} ({step.action}) leaves under the hold on {hold}"
        others = [run for run, node in self._at_work.items() if node == step.node and run != step.run]
        if others:
            return f"law 1: {step.id} ({step.action}) begins on {step.node} where {others[0]} is at work"
        self._at_work[step.run] = step.node
        if not again:
            self._over.pop(self._last.get(step.run, ""), None)
            self._last[step.run] = step.id
            self._over[step.id] = now
        if step.action != "scheduler.drain" and not ACTIONS[step.action].tests:
            self._waits.pop(step.run, None)
        elif not again:
            self._waits[step.run] = now
        return self._over_budget(step, now)

    def _over_budget(self, step: Step, now: float) -> str:
        waits = [run for run, since in self._waits.items() if now - since >= LONG_WAIT_S]
        nodes = [node for run, node in self._at_work.items() if run not in waits]
        settings, places = self._pack.settings, self._pack.places
        if len(nodes) > settings.disruptive_runs:
            return f"law 1: {step.id}: {len(nodes)} disruptive runs, at most {settings.disruptive_runs}"
        leaf = places[step.node].leaf
        here = [node for node in nodes if places[node].leaf == leaf]
        if len(here) > settings.disruptive_runs_per_leaf:
            return f"law 1: {step.id}: {len(here)} disruptive runs under {leaf}"
        return ""


def story(law: str, node: str, notes: Iterable[Note], now: float, start: float) -> str:
    """What is told when a law is broken."""
    lines = [
        f"  {note.at - start:12.1f}  {note.kind:20}  {note.text}"
        for note in notes
        if now - _TOLD_S <= note.at
        and (note.scope.startswith(f"node/{node}") or node in note.text or node in note.scope)
    ]
    return "\n".join([f"{law}. The story of {node}, in seconds since the start:", *lines])
