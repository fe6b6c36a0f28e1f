"""A site in whose places nodes fall ill, for the tables of the judgement of places (brain/core/faults/wider.py).

The site has 64 nodes: eight of them on each leaf switch (l0: n0 to n7), sixteen in each pod (p0: n0 to n15), and one of each
leaf switch in each rack, so that racks cross leaf switches (r0: n0, n8, n16, ...). Nodes are `sick`, which the site's generated
rules count.
"""

from collections.abc import Iterable

from brain.core.context import Context
from brain.core.faults import wider
from brain.core.index import Index
from brain.core.pack.actions import ACTIONS
from brain.core.pack.compiled import Compiled
from brain.core.pack.spec import Match, Pack, Paging, Place, Priority, Settings, Symptom
from brain.core.state import Incident, IncidentState, Node, State, SymptomState
from tests.brain.world import rule

NOW = 10_000.0
PLACES = {f"n{at}": Place(leaf=f"l{at // 8}", rack=f"r{at % 8}", pod=f"p{at // 16}") for at in range(64)}
SYMPTOMS = tuple(
    Symptom(name=name, scope="node", summary=name, ttl_s=9e9, on=(Match(kind=f"x.{name}"),), clear=(Match(kind="x.well"),))
    for name in ("sick", "slow")
)  # fmt: skip
RULES = (rule("node-sick", "node", {"symptom": "sick"}), rule("node-slow", "node", {"symptom": "slow"}))
PACK = Pack(version="p", symptoms=SYMPTOMS, rules=RULES, runbooks=(), settings=Settings(), places=PLACES)
COMPILED = Compiled(PACK)


def match(scope: str, of: str = "sick") -> str:
    """That many nodes of a place show it."""
    return f"shared-{of}-{scope.partition('/')[0]}@{scope}"


def named(scope: str, of: str = "sick") -> str:
    """The rule of that match."""
    return match(scope, of).partition("@")[0]


class Site:
    """Which nodes are ill, in which places that is a shared cause, and which of these has an incident."""

    def __init__(self, *ill: Iterable[int], began: float = NOW - 1000) -> None:
        self.state = State(now=NOW, nodes={node: Node(name=node) for node in PLACES})
        self.ill = {f"n{at}": began for group in ill for at in group}
        self._made: Context | None = None

    def spread(self, *scopes: str, of: str = "sick", active: bool = True, cause_at: float = 0.0) -> "Site":
        """In these places it is a shared cause; or only counted, where it is not `active`."""
        for scope in scopes:
            kind = scope.partition("/")[0]
            above = COMPILED.topology.above
            members = {node: at for node, at in self.ill.items() if scope in above(node)}
            name = f"shared_{of}_{kind}"
            self.state.symptoms[f"{name}@{scope}"] = SymptomState(
                name=name,
                scope=scope,
                active=active,
                since=NOW,
                arrived=NOW,
                members=members,
                cause_at=cause_at,
            )
            if active:
                self.state.matched[scope] = [*self.state.matched.get(scope, ()), named(scope, of)]
        return self

    def incident(
        self, scope: str, *stands_for: str, of: str = "sick", inhibits: Iterable[str] = ()
    ) -> Incident:
        """It has an incident, which stands for these matches, too."""
        node = scope.partition("/")[2] if scope.startswith("node/") else ""
        made = Incident(
            id=f"inc-{len(self.state.incidents)}", cause="c", state=IncidentState.OPEN, severity=Priority.P1, scope=scope,
            node=node, rule=f"node-{of}" if node else named(scope, of), because="tests", runbook="", pack="p", opened_at=NOW,
            hold_off_until=NOW, resolve_delay_s=60, page=Paging.OPEN, inhibits=list(inhibits), stands_for=list(stands_for),
            matching_rules={} if node else {match(scope, of): named(scope, of)},
        )  # fmt: skip
        self.state.incidents[made.id] = made
        return made

    def ctx(self) -> Context:
        """As the engine sees it, from now on."""
        if self._made is None:
            self._made = Context(self.state, COMPILED, Index(self.state), ACTIONS, "input", observe_all=False)
        return self._made

    def explainer(self, scope: str, of: str = "sick") -> str:
        """The match that explains this place."""
        return wider.explainer(self.ctx(), COMPILED.rules[named(scope, of)], scope)
