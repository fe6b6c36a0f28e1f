"""Law vocabulary: what is said is declared, and what is declared is said by somebody."""

from pathlib import Path

import agent
from agent.collectors import collectors
from agent.collectors.readings import Reading
from agent.contract.components import TYPES
from agent.contract.kinds import KINDS

# The agent itself says these (app, uplink, commands), not a collector.
OWN = {
    "agent.started",
    "agent.dropped",
    "agent.source_failed",
    "agent.bad_command",
    "command.progress",
    "command.result",
}


def test_every_kind_of_a_collector_is_declared() -> None:
    """A collector cannot claim a kind that no rule could name."""
    for collector in collectors():
        assert set(collector.kinds) <= set(KINDS), collector.name


def test_every_declared_kind_is_claimed() -> None:
    """The table holds nothing that nobody says."""
    claimed = {kind for collector in collectors() for kind in collector.kinds}
    assert claimed | OWN == set(KINDS)
    assert not claimed & OWN


def test_what_the_agent_says_itself_stands_in_its_code() -> None:
    """Each of its own kinds is named in a module outside the contract and the collectors."""
    root = Path(agent.__file__).parent
    modules = [
        path
        for path in root.rglob("*.py")
        if path.relative_to(root).parts[0] not in ("contract", "collectors")
    ]
    code = "\n".join(path.read_text() for path in modules)
    assert {kind for kind in OWN if f'"{kind}"' not in code} == set()


def test_collectors_have_names_of_their_own_and_want_readings() -> None:
    """`list` and the metrics tell them apart; a reading type that does not exist would never come."""
    names = [collector.name for collector in collectors()]
    assert len(names) == len(set(names))
    readings = set(Reading.__args__)
    for collector in collectors():
        assert set(collector.wants) <= readings, collector.name


def test_kinds_are_well_formed() -> None:
    """Component types exist, and each example has the declared fields."""
    for kind in KINDS.values():
        assert set(kind.component.split(",")) <= set(TYPES), kind.name
        assert kind.example is not None, kind.name
        assert set(kind.example) <= {field.name for field in kind.fields}, kind.name
        assert {field.name for field in kind.fields if field.always} <= set(kind.example), kind.name
