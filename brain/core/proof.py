"""May a pack be put into force? Lint first; on a pack without any its rules' examples. Pure."""

from collections.abc import Mapping

from agent.contract.actions.spec import ActionSpec
from brain.core import examples, lint
from brain.core.spec import Pack


def failures(pack: Pack, actions: Mapping[str, ActionSpec]) -> list[str]:
    """What speaks against it, one line each; empty: nothing."""
    found = lint.problems(pack, actions)
    if found:
        return found
    return [
        f"rules.{outcome.rule}.examples.{outcome.number}: {outcome.example}: {outcome.text}"
        for outcome in examples.run_all(pack, actions)
        if not outcome.ok
    ]
