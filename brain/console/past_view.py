"""What the console asks the read model about past times: a part of the port of brain_view.py."""

from collections.abc import Mapping, Sequence
from typing import Any, Protocol


class Past(Protocol):
    """The engine's fields as JSON objects."""

    def oldest(self) -> float | None:
        """Returns the time of the oldest note, in seconds since 1970; None: there is none."""
        ...

    def incidents_at(self, at: float, limit: int) -> list[dict[str, Any]]:
        """Returns the incidents that were open at a time (seconds since 1970), as they are now, the newest first."""
        ...

    def last_kind(self, incident: str, at: float, kinds: Sequence[str]) -> str:
        """Returns the kind of the newest note of an incident up to a time that is one of these; empty: there is none."""
        ...

    def holds_at(self, at: float) -> list[str]:
        """Returns the scopes on which operators' holds stood at a time."""
        ...

    def modes_said(self) -> Mapping[str, float]:
        """Returns what people said of modes lately, as the audit has it -> when last, in seconds since 1970."""
        ...

    def incident_figures(self) -> list[tuple[str, str, str, float]]:
        """Returns (id, rule, state, when it opened) of all incidents."""
        ...

    def run_figures(self) -> list[tuple[str, str, str, float, float]]:
        """Returns (incident, runbook, state, when it began, when it ended or 0) of all runs."""
        ...

    def said(self) -> list[dict[str, Any]]:
        """Returns the newest notes of what people said, the newest first; bounded."""
        ...

    def incidents_of(self, node: str, limit: int) -> list[dict[str, Any]]:
        """Returns the incidents of a node, newest first; not those of wider scopes."""
        ...

    def runs_on(self, node: str, limit: int) -> list[dict[str, Any]]:
        """Returns the runs on a node, newest first."""
        ...

    def parts_of(self, node: str) -> list[dict[str, Any]]:
        """Returns what a node told of itself and its parts, the newest first: node, component, serial, since, seen, data."""
        ...

    def places_of(self, serial: str) -> list[dict[str, Any]]:
        """Returns where a part with this serial number has been, by what nodes told, the newest first; bounded."""
        ...

    def closed_since(self, at: float, limit: int) -> list[dict[str, Any]]:
        """Returns the incidents that were closed after a time (seconds since 1970), newest first; none that others explain."""
        ...

    def incidents_between(self, since: float, until: float, limit: int) -> list[dict[str, Any]]:
        """Returns the incidents that were open at any moment of a time (seconds since 1970), newest first."""
        ...


class Named(Protocol):
    """What the console asks the read model about an id that is no incident's."""

    def one_note(self, id_: str) -> dict[str, Any] | None:
        """Returns one note."""
        ...

    def notes_of_hold(self, id_: str) -> list[dict[str, Any]]:
        """Returns the notes by which a hold was set and has ended."""
        ...

    def incidents_of_event(self, id_: str) -> list[str]:
        """Returns the ids of the incidents of which an event is evidence."""
        ...

    def tried_since(self, at: float, limit: int) -> list[Mapping[str, Any]]:
        """Returns what was tried since a time (seconds since 1970), the newest first: see brain/adapters/outcomes.py."""
        ...

    def boots_of(self, node: str, since: float, until: float) -> list[float]:
        """Returns when a node started anew within a time."""
        ...

    def runs_since(self, at: float, limit: int) -> list[dict[str, Any]]:
        """Returns the runs that began since a time (seconds since 1970), newest first."""
        ...

    def said_about(self, incident: str, node: str, since: float, until: float) -> list[dict[str, Any]]:
        """Returns what people said within a time about an incident, or about its node, in order."""
        ...

    def stopped(self, run: str, incident: str) -> list[str]:
        """Returns the gates that stood in the way of a run, in order, each once; not the mode, nor what passes by itself."""
        ...
