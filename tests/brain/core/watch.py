"""Facts go in, symptoms come out: the part of the engine that makes one of the other, by itself, in the test's time."""

from collections.abc import Mapping
from typing import Any

from agent.contract.messages import Event, Severity
from brain.core import ids
from brain.core.context import Context
from brain.core.effects import Note
from brain.core.faults import drift, symptoms
from brain.core.index import Index
from brain.core.pack.actions import ACTIONS
from brain.core.pack.compiled import Compiled
from brain.core.pack.spec import Match, Override, Pack, Place, Settings, Symptom
from brain.core.state import State, SymptomState

BAD, GOOD = (Match(kind="x.bad"),), (Match(kind="x.good"),)


def symptom(**changes: Any) -> Symptom:
    """Begins with x.bad on a GPU, ends with x.good."""
    fields: dict[str, Any] = {
        "name": "sick",
        "scope": "gpu",
        "summary": "a GPU is sick",
        "on": BAD,
        "clear": GOOD,
    }
    return Symptom(**(fields | changes))


class Watch:
    """Each call says what changed: `+` a symptom began, or carries something new; `-` it ended."""

    def __init__(
        self,
        *watched: Symptom,
        places: Mapping[str, Place] | None = None,
        overrides: tuple[Override, ...] = (),
    ) -> None:
        pack = Pack(
            version="p",
            symptoms=watched,
            rules=(),
            runbooks=(),
            settings=Settings(),
            places=places or {},
            overrides=overrides,
        )
        self.compiled = Compiled(pack)
        self.state = State(now=0.0)
        self.index = Index(self.state)
        self.notes: list[Note] = []

    def ctx(self, at: float) -> Context:
        """The engine's view, then."""
        self.state.now = at
        return Context(self.state, self.compiled, self.index, ACTIONS, "input-1", observe_all=False)

    def fact(self, at: float, kind: str = "x.bad", where: str = "n1 gpu/0", **fields: Any) -> list[str]:
        """A fact arrives from a component of a node. What is no field of an event is its data."""
        own = {
            name: fields.pop(name) for name in ("severity", "age_s", "count", "evidence") if name in fields
        }
        node, _, component = where.partition(" ")
        whole: dict[str, Any] = {
            "id": f"{node}:s:{at:.0f}", "node": node, "kind": kind, "component": component,
            "severity": Severity.ERROR, "at": "", "age_s": 0.0, "boot": "b", "count": 1, "data": fields,
        }  # fmt: skip
        event = Event(**(whole | own))
        ctx = self.ctx(at)
        return self._said(ctx, [*symptoms.feed(ctx, event), *drift.feed(ctx, event)])

    def fire(self, at: float, key: str = "sick@gpu/n1/0") -> list[str]:
        """A symptom's timer fires, due or not."""
        ctx = self.ctx(at)
        return self._said(ctx, symptoms.tick(ctx, key))

    def wait(self, until: float) -> list[tuple[float, str]]:
        """Every timer fires when it is due; (when, what changed)."""
        changed: list[tuple[float, str]] = []
        while due := sorted((due, name) for name, due in self.state.timers.items() if due <= until):
            at, name = due[0]
            del self.state.timers[name]
            kind, _, key = name.partition(":")
            if kind == "recovered":
                ctx = self.ctx(at)
                changed += [(at, one) for one in self._said(ctx, symptoms.recovered_long_ago(ctx, key))]
            else:
                changed += [(at, one) for one in self.fire(at, key)]
        self.state.now = until
        return changed

    def _said(self, ctx: Context, changed: list[SymptomState]) -> list[str]:
        self.notes += [effect for effect in ctx.effects if isinstance(effect, Note)]
        return [f"{'+' if state.active else '-'}{ids.key(state.name, state.scope)}" for state in changed]

    def known(self, key: str = "sick@gpu/n1/0") -> SymptomState:
        """A symptom, active or on its way."""
        return self.state.symptoms[key]

    def due(self, key: str = "sick@gpu/n1/0") -> float | None:
        """When its timer fires."""
        return self.state.timers.get(f"symptom:{key}")

    def told(self) -> list[tuple[str, str]]:
        """(kind, text) of the audit lines so far."""
        return [(note.kind, note.text) for note in self.notes]

    @property
    def active(self) -> list[str]:
        """The keys of what is active, by the index."""
        return sorted(key for here in self.index.active.values() for key in here)
