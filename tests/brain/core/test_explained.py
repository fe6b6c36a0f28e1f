"""What an incident explains: the symptoms behind the matches that it inhibits, on its own node and within its reach."""

import pytest

from brain.core import explaining, incidents
from brain.core.context import Context
from brain.core.faults import situations
from brain.core.index import Index
from brain.core.pack.actions import ACTIONS
from brain.core.pack.compiled import Compiled
from brain.core.pack.spec import Match, Pack, Paging, Place, Priority, Runbook, Settings, Symptom
from brain.core.pack.topology import Topology
from brain.core.state import Incident, IncidentState, Run, RunState, State, SymptomState
from tests.brain.world import rule

SWITCH, GPU = "nvswitch/n1/c1", "gpu/n1/0"
SYMPTOMS = tuple(
    Symptom(name=name, scope="gpu", summary=name, on=(Match(kind=f"x.{name}"),)) for name in ("a", "b", "c")
)
RULES = (
    rule("link", "gpu", {"symptom": "a"}),
    rule("link-twice", "gpu", {"all": [{"symptom": "a"}, {"symptom": "b"}]}, cause="link"),
    rule("heat", "gpu", {"symptom": "c"}),
)


def looks(state: State) -> Context:
    """The engine's view of two nodes of a leaf."""
    places = {"n1": Place(leaf="l1"), "n2": Place(leaf="l1")}
    pack = Pack(version="p", symptoms=SYMPTOMS, rules=RULES, runbooks=(), settings=Settings(), places=places)
    return Context(state, Compiled(pack), Index(state), ACTIONS, "input", observe_all=False)


def opened(name: str, scope: str, node: str, inhibits: list[str], at: float = 0) -> Incident:
    """An incident of a cause that no rule here has."""
    return Incident(
        id=name, cause="c", state=IncidentState.HEALING, severity=Priority.P1, scope=scope, node=node, rule="r",
        because="tests", runbook="", pack="p", opened_at=at, hold_off_until=0, inhibits=inhibits, page=Paging.OPEN,
        resolve_delay_s=60,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("scope", "inhibits", "active", "matched", "explained"),
    [
        pytest.param(
            SWITCH, ["link"], {"a": GPU}, {GPU: ["link"]}, [f"a@{GPU}"], id="a GPU of the switch's node"
        ),
        pytest.param(
            SWITCH,
            ["link"],
            {"a": GPU, "b": GPU},
            {GPU: ["link-twice"]},
            [f"a@{GPU}", f"b@{GPU}"],
            id="another rule of the same cause, with all its symptoms",
        ),
        pytest.param(
            SWITCH, ["link"], {"a": GPU}, {GPU: ["link-twice"]}, [f"a@{GPU}"], id="one of two is active"
        ),
        pytest.param(SWITCH, ["link"], {"c": GPU}, {GPU: ["heat"]}, [], id="another cause"),
        pytest.param(SWITCH, [], {"a": GPU}, {GPU: ["link"]}, [], id="it inhibits nothing"),
        pytest.param(
            SWITCH, ["link"], {"a": "gpu/n2/0"}, {"gpu/n2/0": ["link"]}, [], id="a GPU of another node"
        ),
        pytest.param("gpu/n1/1", ["link"], {"a": GPU}, {GPU: ["link"]}, [], id="another GPU of the node"),
        pytest.param(
            "leaf/l1", ["link"], {"a": GPU}, {GPU: ["link"]}, [], id="of a whole leaf: no node's remedy"
        ),
        pytest.param(SWITCH, ["link"], {"a": GPU}, {GPU: ["gone"]}, [], id="a rule that was removed"),
    ],
)
def test_the_symptoms_that_an_incident_explains(
    scope: str,
    inhibits: list[str],
    active: dict[str, str],
    matched: dict[str, list[str]],
    explained: list[str],
) -> None:
    """By the rules that match, not by the symptoms' names."""
    state = State(now=1)
    state.matched |= matched
    for name, where in active.items():
        state.symptoms[f"{name}@{where}"] = SymptomState(name=name, scope=where, active=True)
    node = "" if scope.startswith("leaf") else "n1"
    assert situations.explained_symptoms(looks(state), opened("i", scope, node, inhibits)) == explained


def test_of_several_that_explain_it_the_first_does() -> None:
    """However late it came to inhibit it: after a restart the engine must not take the other one."""
    for late in (False, True):
        state = State(now=10)
        first, second = (opened(name, "node/n1", "n1", ["link"], at) for name, at in (("b", 1), ("a", 2)))
        state.incidents |= {one.id: one for one in (first, second)}
        ctx = looks(state)
        if late:
            ctx.index.remove_incident(first)
            ctx.index.add_incident(first)
        assert incidents.match_began(ctx, RULES[0], GPU) is None
        assert (first.explains, second.explains) == (1, 0)


@pytest.mark.parametrize(
    ("node", "worked", "matching", "explains"),
    [
        pytest.param("n1", "", {}, True, id="its remedy is under way"),
        pytest.param("n1", "reset worked", {}, False, id="its remedy was verified: what is there still is another fault"),
        pytest.param("n1", "reset worked", {f"c@{SWITCH}": "c"}, True, id="the fault is back"),
        pytest.param("", "reset worked", {}, True, id="a remedy of no node"),
    ],
)  # fmt: skip
def test_what_a_remedy_leaves(node: str, worked: str, matching: dict[str, str], explains: bool) -> None:
    """Of another rule of the same cause, too."""
    state = State(now=10)
    switch = opened("i", SWITCH, "n1", ["link"])
    switch.runs, switch.matching_rules = ["i.r1"], matching
    state.incidents["i"] = switch
    state.runs["i.r1"] = Run(
        id="i.r1", incident="i", runbook=Runbook(name="x", summary="x", rungs=()), pack="p", scope=SWITCH, node=node,
        params={}, state=RunState.PERFORMING, started_at=0, worked=worked,
    )  # fmt: skip
    found = explaining.explained_by(looks(state), RULES[1], GPU)
    assert found == (switch if explains else None)


def test_what_a_fault_shows_at() -> None:
    """Within it, and at all GPUs that an NVSwitch links; not the other way round, nor at other parts of the node."""
    topology = Topology({"n1": Place(leaf="l1")})
    assert topology.serves(SWITCH, GPU)
    assert topology.serves("leaf/l1", GPU)
    assert topology.serves("node/n1", SWITCH)
    assert not topology.serves(SWITCH, "gpu/n2/0")
    assert not topology.serves(GPU, SWITCH)
    assert not topology.serves(SWITCH, "nic/n1/mlx5_0")


def test_an_incident_that_is_over_explains_nothing_on_its_node() -> None:
    """What it explained anywhere on its node has an incident of its own from then on, also before the next restart."""
    one = opened("i", GPU, "n1", ["hot"])
    one.inhibits_on_node = ["agent-trouble"]
    index = Index(State())
    index.add_incident(one)
    assert [*index.inhibitors["agent-trouble"]] == [*index.inhibitors["hot"]] == ["i"]
    index.remove_incident(one)
    assert index.inhibitors == {}
