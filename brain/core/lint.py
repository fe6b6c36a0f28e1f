"""Everything that can be wrong with a pack beyond its types, found before it is in force. Pure.

`gpuward check` prints the findings with file and line; the brain refuses a pack that has any.
"""

from collections.abc import Iterator, Mapping

from agent.contract.actions.spec import ActionSpec
from agent.contract.errors import ConfigError
from brain.core import lint_overrides, lint_rules, lint_runbooks, lint_symptoms
from brain.core.conditions import symptoms_in
from brain.core.finding import Finding
from brain.core.rulebook import Rulebook
from brain.core.spec import Pack, Rule


def problems(pack: Pack, actions: Mapping[str, ActionSpec]) -> list[str]:
    """What is wrong, one sentence each; `actions` are those of the nodes and of the brain."""
    return [str(finding) for finding in findings(pack, actions)]


def findings(pack: Pack, actions: Mapping[str, ActionSpec]) -> list[Finding]:
    """What is wrong and where."""
    found = [
        *lint_symptoms.findings(pack),
        *lint_rules.findings(pack),
        *lint_runbooks.findings(pack, actions),
        *lint_overrides.findings(pack),
    ]
    return found if found else list(_matcher(pack))


def symptoms_of(rule: Rule) -> list[str]:
    """The symptoms that a rule names."""
    return list(dict.fromkeys(symptoms_in(rule.when)))


def _matcher(pack: Pack) -> Iterator[Finding]:
    """Can the matcher take each rule?"""
    for rule in pack.rules:
        try:
            Rulebook((rule,)).close()
        except ConfigError as error:
            yield Finding(path=("rules", rule.name, "when"), text=str(error))
