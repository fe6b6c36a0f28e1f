"""The fault of a rehearsal: the facts of a rule's own example, as they are told at first, again, and when they end. Pure."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from agent.contract.errors import ConfigError
from agent.contract.messages import Event
from brain.core.faults import facts
from brain.core.inputs import EventSeen, Input, NodeState
from brain.core.pack.feeds import Where
from brain.core.pack.lint_symptoms import KINDS
from brain.core.pack.spec import Example, Match, Pack, Rule
from brain.core.pack.topology import node_of
from brain.core.pack.vocabulary import NODE_RETURNED
from brain.core.rehearsal import examples
from brain.core.state import State, SymptomState

HEALTHY = "n1"  # the node of an example without facts


def leading_to(pack: Pack, runbook: str) -> dict[str, tuple[Rule, Example]]:
    """Cause -> (rule, example) of the faults that lead to a runbook: by the pack's own examples, the freshest facts first."""
    found: dict[str, tuple[Rule, Example]] = {}
    for rule in pack.rules:
        cause = rule.cause or rule.name
        shown = [
            one
            for one in rule.examples
            if one.expect.incident == cause and (one.expect.runbook or rule.runbook) == runbook
        ]
        if shown and cause not in found:
            found[cause] = rule, min(shown, key=lambda one: max(given.age_s for given in one.given))
    return found


class ToldFault:
    """What an example tells. Every fact gets an id of its own, however often it is told."""

    def __init__(self, pack: Pack, example: Example) -> None:
        self.example = example
        self._symptoms = {one.name: one for one in pack.symptoms}
        self._told: dict[str, Event] = {}
        self._count = 0
        self.facts = list(examples.facts(example))
        self.nodes = list(dict.fromkeys(_node(fact) for _, fact in self.facts)) or [HEALTHY]
        self.lasts_s = max((at for at, _ in self.facts), default=0.0)

    def told(self, at: float, boots: Mapping[str, int]) -> Iterator[tuple[float, Input]]:
        """(time, input) of all its facts, the first of them at this time."""
        first = self.facts[0][0] if self.facts else 0.0
        for after_s, fact in self.facts:
            yield at + after_s - first, self._anew(fact, boots)

    def shown(self, at: float, node: str, boots: Mapping[str, int]) -> Iterator[tuple[float, Input]]:
        """The newest fact of each kind and part of a node again: who looks sees what is there."""
        newest: dict[tuple[str, str], EventSeen | NodeState] = {}
        for _, fact in self.facts:
            if _node(fact) == node:
                newest[_what(fact)] = fact
        for fact in newest.values():
            yield at, self._anew(fact, boots)

    def over(self, at: float, state: State, boots: Mapping[str, int]) -> Iterator[tuple[float, Input]]:
        """What is told when it is gone: facts that end the active symptoms of its nodes. ConfigError: none can be made up."""
        for name in self.nodes:
            if name in state.nodes and not state.nodes[name].alive:
                yield at, NodeState(id=self._id("heard", name), node=name, alive=True)
        for symptom in state.symptoms.values():
            spec = self._symptoms.get(symptom.name)
            told = [match for match in spec.clear if match.kind != NODE_RETURNED] if spec is not None else []
            if symptom.active and spec is not None and told and node_of(symptom.scope) in self.nodes:
                yield at, EventSeen(event=self._ending(symptom, told, boots))

    def _ending(self, symptom: SymptomState, clear: Sequence[Match], boots: Mapping[str, int]) -> Event:
        began = [self._told[one.id] for one in symptom.evidence if one.id in self._told]
        for match in clear:
            for before in began:
                kind = KINDS[match.kind]
                data = (
                    dict(before.data)
                    if before.kind == match.kind
                    else dict(kind.example or {}) | dict(before.data)
                )
                for field, want in match.where.items():
                    data[field] = _value(want)
                made = replace(
                    before, kind=match.kind, data=data, severity=kind.severity, age_s=0.0, evidence=""
                )
                if facts.matches(Where(match.where), made):
                    return self._event(made, boots)
        raise ConfigError(
            f"{symptom.name}: no fact that ends it can be made up from its `clear` and this example "
            f"({self.example.name!r}): give the rule an example whose facts have the fields that `clear` asks for"
        )

    def _anew(self, fact: EventSeen | NodeState, boots: Mapping[str, int]) -> Input:
        if isinstance(fact, NodeState):
            return replace(fact, id=self._id("silent", fact.node))
        return EventSeen(event=self._event(fact.event, boots))

    def _event(self, event: Event, boots: Mapping[str, int]) -> Event:
        return replace(event, boot=f"boot-{boots.get(event.node, 0)}", evidence=event.evidence or event.kind)

    def sent(self, event: Event) -> Event:
        """An event as it leaves its node: each has a number above those before it."""
        made = replace(event, id=self._id(event.node, "rehearsal"))
        self._told[made.id] = made
        return made

    def _id(self, *parts: str) -> str:
        self._count += 1
        return ":".join((*parts, str(self._count)))


def _node(fact: EventSeen | NodeState) -> str:
    return fact.node if isinstance(fact, NodeState) else fact.event.node


def _what(fact: EventSeen | NodeState) -> tuple[str, str]:
    return ("", "") if isinstance(fact, NodeState) else (fact.event.kind, fact.event.component)


def _value(want: Any) -> Any:
    """A value that passes a test of `where`."""
    if isinstance(want, (list, tuple)):
        return _value(want[0])
    if not isinstance(want, Mapping):
        return want
    if "in" in want or "eq" in want:
        return _value(want.get("in", want.get("eq")))
    low, high = want.get("gte", want.get("gt")), want.get("lte", want.get("lt"))
    if low is not None:
        return low + 1 if "gt" in want else low
    if high is not None:
        return high - 1 if "lt" in want else high
    return "another" if "ne" in want else True
