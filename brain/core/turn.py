"""One call of the engine: what its parts share while they handle one input. No decision is made here."""

from collections.abc import Mapping

from agent.contract.actions.spec import ActionSpec
from brain.core.compiled import Compiled
from brain.core.effects import Effect, Note, SetTimer, ShowIncident, ShowRun
from brain.core.index import Index
from brain.core.spec import Scalar
from brain.core.state import Incident, Run, State, SymptomState


class Turn:
    """The state, the pack, the time, and the effects that gather."""

    __slots__ = (
        "_incidents",
        "_runs",
        "actions",
        "book",
        "cause",
        "changed",
        "effects",
        "ended",
        "index",
        "lifted",
        "now",
        "observe_all",
        "state",
    )

    def __init__(
        self,
        state: State,
        book: Compiled,
        index: Index,
        actions: Mapping[str, ActionSpec],
        cause: str,
        *,
        observe_all: bool,
    ) -> None:
        self.state = state
        self.book = book
        self.index = index
        self.actions = actions
        self.observe_all = observe_all
        self.now = state.now
        self.cause = cause  # id of the input
        self.effects: list[Effect] = []
        # What one part has to tell the others; the engine works these off until all are empty.
        self.changed: list[SymptomState] = []  # symptoms that began, ended or carry something new
        self.ended: list[Run] = []  # runs that are over
        self.lifted: list[Incident] = []  # incidents that explain nothing any more
        self._incidents: dict[str, Incident] = {}
        self._runs: dict[str, Run] = {}

    def note(
        self,
        kind: str,
        text: str,
        *,
        incident: str = "",
        run: str = "",
        scope: str = "",
        data: Mapping[str, Scalar | list[str]] | None = None,
    ) -> None:
        """One audit line."""
        self.effects.append(
            Note(
                id=f"{self.cause}#{len(self.effects)}",
                at=self.now,
                kind=kind,
                text=text,
                incident=incident,
                run=run,
                scope=scope,
                caused_by=self.cause,
                data=data or {},
            )
        )

    def set_timer(self, name: str, due: float) -> None:
        """(Re)sets a timer."""
        self.state.timers[name] = due
        self.effects.append(SetTimer(name=name, due=due))

    def cancel_timer(self, name: str) -> None:
        """Forgets a timer; when the shell fires it, it is stale."""
        self.state.timers.pop(name, None)

    def show(self, incident: Incident) -> None:
        """The incident changed."""
        self._incidents[incident.id] = incident

    def show_run(self, run: Run) -> None:
        """The run changed."""
        self._runs[run.id] = run

    def finish(self) -> list[Effect]:
        """All effects, the newest forms of what changed last."""
        self.effects.extend(ShowRun(run=run) for run in self._runs.values())
        self.effects.extend(ShowIncident(incident=incident) for incident in self._incidents.values())
        return self.effects
