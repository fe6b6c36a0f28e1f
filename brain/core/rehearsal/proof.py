"""Whether a pack may be put into force: the checks of lint and, if they find nothing, the rules' examples. Pure."""

from collections.abc import Mapping

from agent.contract.actions.spec import ActionSpec
from brain.core.pack import lint
from brain.core.pack.spec import Pack
from brain.core.rehearsal import examples


def failures(pack: Pack, actions: Mapping[str, ActionSpec]) -> list[str]:
    """Why the pack must not be put into force, one line each; empty: it may."""
    found = lint.problems(pack, actions)
    if found:
        return found
    return [
        f"rules.{result.rule}.examples.{result.number}: {result.example}: {result.text}"
        for result in examples.run_all(pack, actions)
        if not result.ok
    ]
