"""All checks of a pack beyond its types, before it is put into force. Pure.

`gpuward check` prints the findings with file and line; the brain refuses a pack that has any.
"""

from collections.abc import Iterator, Mapping

from agent.contract.actions.spec import ActionSpec
from agent.contract.errors import ConfigError
from brain.core.pack import lint_overrides, lint_rules, lint_runbooks, lint_symptoms
from brain.core.pack.conditions import symptoms_in
from brain.core.pack.finding import Finding
from brain.core.pack.rulebook import MATCHER
from brain.core.pack.spec import Pack, Rule


def problems(pack: Pack, actions: Mapping[str, ActionSpec]) -> list[str]:
    """What is wrong with a pack, one sentence each. `actions`: those of the nodes and of the brain."""
    return [str(finding) for finding in findings(pack, actions)]


def findings(pack: Pack, actions: Mapping[str, ActionSpec]) -> list[Finding]:
    """What is wrong with a pack and where. The matcher is tried only if everything else is right."""
    found = [
        *lint_symptoms.findings(pack),
        *lint_rules.findings(pack),
        *lint_runbooks.findings(pack, actions),
        *lint_overrides.findings(pack),
    ]
    return found if found else list(_matcher(pack))


def symptoms_of(rule: Rule) -> list[str]:
    """The symptoms that a rule names, each once."""
    return list(dict.fromkeys(symptoms_in(rule.when)))


def _matcher(pack: Pack) -> Iterator[Finding]:
    """Rules that the matcher cannot compile."""
    for rule in pack.rules:
        try:
            MATCHER.build((rule,)).close()
        except ConfigError as error:
            yield Finding(path=("rules", rule.name, "when"), text=str(error))
