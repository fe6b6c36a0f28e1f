"""What came of a situation: what people see, what was done to which node, and the one line that says so."""

import collections
from collections.abc import Iterable
from dataclasses import dataclass

from brain.core.effects import SendPage
from brain.core.pack.topology import type_of
from brain.core.state import Incident, IncidentState
from simulations.scenarios.scene import Done, Scene

LISTED = 3
WORDS = 230


@dataclass(frozen=True, slots=True, kw_only=True)
class SceneEnd:
    """The end of a situation."""

    scene: Scene

    @property
    def seen(self) -> list[Incident]:
        """Incidents that people see: not those explained by another, nor those over within their hold-off."""
        log = self.scene.log
        quiet = {one.incident for one in log.notes if one.kind == "incident.closed" and one.data.get("quiet")}
        hidden = (IncidentState.EXPLAINED, IncidentState.SETTLING)
        return [one for one in log.incidents.values() if one.state not in hidden and one.id not in quiet]

    @property
    def pages(self) -> list[SendPage]:
        """What wakes people: new alerts and news; neither repeats of what nobody acknowledged nor resolutions."""
        return [one for one in self.scene.log.pages if one.what in ("open", "update")]

    @property
    def work(self) -> list[Done]:
        """The steps that disturbed something, and the returns to service."""
        return [one for one in self.scene.done if one.disturbs or one.step.action == "scheduler.resume"]

    def actions(self, node: str) -> list[str]:
        """What was done on a node, in order."""
        return [one.step.action for one in self.work if one.step.node == node]

    @property
    def touched(self) -> list[str]:
        """Nodes on which something was disturbed."""
        return list(dict.fromkeys(one.step.node for one in self.scene.done if one.disturbs and one.step.node))

    @property
    def out(self) -> list[str]:
        """Nodes that are out of service at the end."""
        return [name for name, one in self.scene.machines.items() if one.state.drain_reason]

    def reasons(self, kind: str) -> list[str]:
        """Different texts of the notes of a kind."""
        return list(dict.fromkeys(one.text for one in self.scene.log.notes if one.kind == kind))

    def line(self) -> str:
        """What happened and why, in a few sentences made of what the engine said."""
        return " ".join([self._incidents(), self._done(), self._told(), self._why()]).strip()

    def _incidents(self) -> str:
        explained = sum(one.state is IncidentState.EXPLAINED for one in self.scene.log.incidents.values())
        by_cause = collections.Counter((one.cause, type_of(one.scope), one.state.value) for one in self.seen)
        parts = [
            f"{f'{count} × ' if count > 1 else ''}`{cause}` of a {scope}, {state.replace('_', ' ')}"
            for (cause, scope, state), count in by_cause.items()
        ]
        text = _listed(parts, "; ", 5) or "No incident"
        return text + (f" ({explained} explained by it)." if explained else ".")

    def _done(self) -> str:
        if not self.work:
            return "No node is disturbed."
        by_node: dict[str, list[str]] = {}
        for one in self.work:
            by_node.setdefault(one.step.node or "the fabric", []).append(one.step.action)
        same: dict[tuple[str, ...], list[str]] = {}
        for node, actions in by_node.items():
            same.setdefault(tuple(actions), []).append(node)
        parts = [
            f"{_listed(names, ', ', 2) if len(names) <= 2 else f'{len(names)} nodes'}: {_listed(list(actions), ', ', 9)}"
            for actions, names in same.items()
        ]
        out = f" Out of service at the end: {_listed(self.out, ', ', LISTED)}." if self.out else ""
        return f"{_listed(parts, '; ', LISTED)}.{out}"

    def _told(self) -> str:
        if not self.pages:
            return "Nobody is paged."
        count = collections.Counter(one.subject.severity.value for one in self.pages)
        return f"Pages: {', '.join(f'{count[one]} × {one}' for one in sorted(count))}."

    def _why(self) -> str:
        """The reason that counts: of the widest incident, else of the gates, else of the end."""
        wide = [one for one in self.seen if not one.node]
        if wide:
            return _short(f"Why: {wide[0].because}.")
        held = self.reasons("run.held") + self.reasons("run.approval")
        if held:
            return _short(f"Why: {held[-1]}.")
        ends = [one.closed_why for one in self.seen if one.closed_why]
        runs = [run.why for run in self.scene.log.runs.values() if run.why]
        return _short(f"Why: {(runs or ends or ['nothing that a rule knows'])[-1]}.")


def _listed(parts: Iterable[str], comma: str, most: int) -> str:
    given = list(parts)
    more = f"{comma}and {len(given) - most} more" if len(given) > most else ""
    return comma.join(given[:most]) + more


def _short(text: str) -> str:
    text = " ".join(text.split()).replace("|", "/")
    return text if len(text) <= WORDS else f"{text[: WORDS - 1].rstrip()}…"
