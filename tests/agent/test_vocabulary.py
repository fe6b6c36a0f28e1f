"""Law vocabulary: every kind that is declared is emitted (that every one that is emitted is declared: test_registration)."""

from pathlib import Path

import agent
from agent.collectors import every_collector
from agent.collectors.samples import Sample
from agent.contract.components import TYPES
from agent.contract.kinds import KINDS

# The agent itself emits these (app, uplink, commands), not a collector.
OWN = {
    "agent.started",
    "agent.dropped",
    "agent.source_failed",
    "agent.sources_run",
    "agent.bad_command",
    "command.progress",
    "command.result",
}


def test_every_declared_kind_is_claimed() -> None:
    """The table has no kind that is never emitted."""
    claimed = {kind for collector in every_collector() for kind in collector.kinds}
    unclaimed = set(KINDS) - claimed - OWN
    assert not unclaimed, (
        f"no collector in agent/collectors has {', '.join(sorted(unclaimed))} in its `kinds`"
    )
    assert not claimed & OWN


def test_every_declared_kind_stands_in_a_test() -> None:
    """What emits it is tried with samples: the table test of CONTRIBUTING.md."""
    tests = Path(__file__).resolve().parents[1]
    tables = (tests / "contract" / "kernel_lines.py", tests / "agent" / "restate_kit.py")
    paths = [*tests.rglob("test_*.py"), *tables]
    text = "\n".join(path.read_text(encoding="utf-8") for path in paths)
    missing = sorted(kind for kind in KINDS if f'"{kind}"' not in text)
    assert not missing, (
        f"no file tests/**/test_*.py names {', '.join(missing)}: add a table test of its collector"
    )


def test_what_the_agent_emits_itself_is_in_its_code() -> None:
    """Each of its own kinds is named in a module outside the contract and the collectors."""
    root = Path(agent.__file__).parent
    modules = [
        path
        for path in root.rglob("*.py")
        if path.relative_to(root).parts[0] not in ("contract", "collectors")
    ]
    code = "\n".join(path.read_text() for path in modules)
    assert {kind for kind in OWN if f'"{kind}"' not in code} == set()


def test_collectors_have_names_of_their_own_and_want_samples() -> None:
    """`list` and the metrics distinguish them by name; a type of sample that does not exist would never come."""
    names = [collector.name for collector in every_collector()]
    assert len(names) == len(set(names))
    samples = set(Sample.__args__)
    for collector in every_collector():
        assert set(collector.wants) <= samples, collector.name


def test_kinds_are_well_formed() -> None:
    """Component types exist, and each example has the declared fields."""
    for kind in KINDS.values():
        assert set(kind.component.split(",")) <= set(TYPES), f"{kind.name}: unknown type of component"
        assert kind.example is not None, (
            f'{kind.name} needs `example={{"<field>": <value>, ...}}`, or {{}} without fields'
        )
        declared = {field.name for field in kind.fields}
        assert set(kind.example) <= declared, f"{kind.name}: its example has fields that are not declared"
        always = {field.name for field in kind.fields if field.always}
        assert always <= set(kind.example), f"{kind.name}: its example lacks {always - set(kind.example)}"
