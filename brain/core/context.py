"""What the parts of the engine share while they handle one input. No decision is made here."""

from collections.abc import Callable, Mapping

from agent.contract.actions.spec import ActionSpec
from brain.core.effects import Effect, Note, SendPage, SetTimer, ShowIncident, ShowRun
from brain.core.index import Index
from brain.core.pack.compiled import Compiled
from brain.core.pack.spec import Scalar
from brain.core.state import Incident, Run, State, SymptomState

_PLACE_OF_PAGE = SetTimer(name="", due=0.0)  # stands among the effects until `finish` composes the page


class Context:
    """The state, the compiled pack, the time, and the effects collected so far."""

    __slots__ = (
        "_incidents",
        "_pages",
        "_runs",
        "actions",
        "cause",
        "changed",
        "compiled",
        "effects",
        "ended",
        "freed",
        "index",
        "left",
        "let_go",
        "now",
        "observe_all",
        "released",
        "state",
        "vouched",
    )

    def __init__(
        self,
        state: State,
        compiled: Compiled,
        index: Index,
        actions: Mapping[str, ActionSpec],
        cause: str,
        *,
        observe_all: bool,
    ) -> None:
        self.state = state
        self.compiled = compiled
        self.index = index
        self.actions = actions
        self.observe_all = observe_all
        self.now = state.now
        self.cause = cause  # id of the input
        self.effects: list[Effect] = []
        # Work that one part leaves to another; the engine goes on until all three lists are empty.
        self.changed: list[SymptomState] = []  # symptoms that began, ended or carry something new
        self.ended: list[Run] = []  # runs that are over
        self.let_go: list[Incident] = []  # incidents whose node an operator's return has given back
        # (node, incident that is over and had drained it, whether an operator closed it)
        self.left: list[tuple[str, Incident, bool]] = []
        # (node that an operator says is healthy, who, since when the node has looked again, the run that was asked for)
        self.vouched: list[tuple[str, str, float, Run | None]] = []
        self.freed = False  # a run gave its claim back: those that a gate holds may go on
        self.released: list[Incident] = []  # incidents that are over or remedied
        self._incidents: dict[str, Incident] = {}
        self._pages: dict[int, Callable[[], SendPage]] = {}  # place among the effects -> page
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
        """Adds one audit line, caused by this input."""
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
        """Sets a timer to fire at `due` (seconds since 1970); one of the same name is replaced."""
        self.state.timers[name] = due
        self.effects.append(SetTimer(name=name, due=due))

    def cancel_timer(self, name: str) -> None:
        """Forgets a timer. The shell may still fire it; then it is ignored."""
        self.state.timers.pop(name, None)

    def page(self, compose: Callable[[], SendPage]) -> None:
        """Adds a page in its place among the effects. `finish` composes it, when the input is completely handled: so people
        also read what followed at once, such as the run that was started.
        """
        self._pages[len(self.effects)] = compose
        self.effects.append(_PLACE_OF_PAGE)

    def show(self, incident: Incident) -> None:
        """Marks an incident as changed: its newest form is shown once, by `finish`."""
        self._incidents[incident.id] = incident

    @property
    def shown(self) -> list[Incident]:
        """The incidents that have changed so far."""
        return list(self._incidents.values())

    def show_run(self, run: Run) -> None:
        """Marks a run as changed."""
        self._runs[run.id] = run

    def finish(self) -> list[Effect]:
        """All effects; last come the changed runs and incidents in their final form."""
        for place, compose in self._pages.items():
            self.effects[place] = compose()
        for run in self._runs.values():
            self.effects.append(ShowRun(run=run))
        for incident in self._incidents.values():
            self.effects.append(ShowIncident(incident=incident))
        return self.effects
