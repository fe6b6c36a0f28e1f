"""Checks of rules: can they match, do they explain the fault to people, and do their examples cover them?"""

import re
from collections.abc import Collection, Iterator, Mapping
from typing import Any

from agent.contract import components, messages
from agent.contract.errors import ConfigError, ContractError
from brain.core.pack import conditions
from brain.core.pack.finding import Finding
from brain.core.pack.lint_symptoms import BASE_FIELDS, KINDS, fits
from brain.core.pack.spec import DRAIN, NAMED, Example, Expect, Given, Pack, Rule, Symptom, Text
from brain.core.pack.topology import NODELESS, RELEASE, SCOPES, WIDE

_NAME = re.compile(r"[a-z][a-z0-9-]{0,60}")
_CHINESE = re.compile(r"[\u4e00-\u9fff]")
_SEVERITIES = ("", *(severity.value for severity in messages.Severity))
_Path = tuple[str | int, ...]


def findings(pack: Pack) -> Iterator[Finding]:
    """What is wrong with the pack's rules."""
    symptoms = {symptom.name: symptom for symptom in pack.symptoms}
    runbooks = {runbook.name for runbook in pack.runbooks}
    causes = {cause_of(rule) for rule in pack.rules}
    for rule in pack.rules:
        path: _Path = ("rules", rule.name)
        if not _NAME.fullmatch(rule.name):
            yield Finding(path=path, text="a rule's name is in kebab-case: a-z, 0-9 and -")
        if rule.scope not in SCOPES:
            yield Finding(path=(*path, "scope"), text=f"no scope {rule.scope!r} (have: {', '.join(SCOPES)})")
        yield from _when(rule, path, symptoms)
        for index, case in enumerate(rule.knowledge.advice):
            yield from condition(case.when, (*path, "knowledge", "advice", index, "when"), symptoms)
        yield from _texts(rule, path)
        if rule.runbook and rule.runbook not in runbooks:
            text = f"there is no runbook {rule.runbook!r} (have: {', '.join(sorted(runbooks)) or 'none'})"
            yield Finding(path=(*path, "runbook"), text=text)
        if rule.params and not rule.runbook:
            yield Finding(path=(*path, "params"), text="there is no runbook to give them to")
        for name in ("hold_off_s", "resolve_delay_s", "drained_s"):
            if getattr(rule, name) < 0:
                yield Finding(path=(*path, name), text="must not be negative")
        yield from _inhibits(rule, path, causes)
        fields = [
            field
            for name in conditions.symptoms_in(rule.when)
            if name in symptoms
            for field in symptoms[name].carry
        ]
        if rule.page_once and rule.page_once not in fields:
            text = f"its symptoms carry no field {rule.page_once!r} (have: {', '.join(fields) or 'none'})"
            yield Finding(path=(*path, "page_once"), text=text)
        yield from _examples(rule, path, runbooks)


def _inhibits(rule: Rule, path: _Path, causes: Collection[str]) -> Iterator[Finding]:
    """What it explains: causes that there are, and not its own; on a node, only what is on one."""
    for key in ("inhibits", "inhibits_on_node", "inhibits_together"):
        for index, cause in enumerate(getattr(rule, key)):
            here = (*path, key, index)
            if cause not in causes:
                yield Finding(path=here, text=f"no rule has the cause {cause!r}")
            elif cause == cause_of(rule):
                yield Finding(path=here, text="a cause does not explain itself")
    if rule.inhibits_on_node and rule.scope in NODELESS:
        text = f"a {rule.scope} is wider than a node: `inhibits` names what it explains on its nodes"
        yield Finding(path=(*path, "inhibits_on_node"), text=text)
    if rule.inhibits_together and rule.scope not in WIDE:
        text = f"a {rule.scope} is no place with nodes: `inhibits` names what it explains"
        yield Finding(path=(*path, "inhibits_together"), text=text)


def cause_of(rule: Rule) -> str:
    """The cause that a rule names; by default its own name."""
    return rule.cause or rule.name


def condition(when: Any, path: _Path, symptoms: Mapping[str, Symptom]) -> Iterator[Finding]:
    """What is wrong with a `when`: its form, or symptoms and fields that do not exist."""
    try:
        conditions.check(when, "when")
    except ConfigError as error:
        yield Finding(path=path, text=str(error))
        return
    for name in dict.fromkeys(conditions.symptoms_in(when)):
        if name not in symptoms:
            yield Finding(path=path, text=f"there is no symptom {name!r}")
    carried = {field for symptom in symptoms.values() for field in symptom.carry}
    counted = {f"{symptom.name}_nodes" for symptom in symptoms.values() if symptom.detect == "spread"}
    known = {*BASE_FIELDS, *carried, *counted}
    for field in _fields(when):
        if field not in known:
            have = ", ".join(sorted(known))
            yield Finding(path=path, text=f"no situation has a field {field!r} (have: {have})")


def _fields(when: Mapping[str, Any]) -> Iterator[str]:
    """The fields that a well-formed condition tests; symptoms are not among them."""
    for key, want in when.items():
        if key in ("all", "any"):
            for part in want:
                yield from _fields(part)
        elif key == "not":
            yield from _fields(want)
        elif key != "symptom":
            yield key


def _sees(rule_scope: str, symptom_scope: str) -> bool:
    """Whether a situation of one scope type can have a symptom of the other."""
    if rule_scope in NODELESS:
        return rule_scope == symptom_scope
    if rule_scope == "node" or symptom_scope in ("node", *NODELESS, rule_scope):
        return True
    return {rule_scope, symptom_scope} == {"nic", "port"}


def _when(rule: Rule, path: _Path, symptoms: Mapping[str, Symptom]) -> Iterator[Finding]:
    here = (*path, "when")
    wrong = list(condition(rule.when, here, symptoms))
    yield from wrong
    if wrong:
        return
    named = dict.fromkeys(conditions.symptoms_in(rule.when))
    if not named:
        yield Finding(path=here, text="names no symptom: no situation would be matched against it")
    for name in named:
        if not _sees(rule.scope, symptoms[name].scope):
            text = f"a situation of scope {rule.scope} never shows {name}, which is of scope {symptoms[name].scope}"
            yield Finding(path=here, text=text)


def _texts(rule: Rule, path: _Path) -> Iterator[Finding]:
    if not rule.because.strip():
        yield Finding(path=(*path, "because"), text="is empty: why do these symptoms mean this cause?")
    if rule.because_zh and not _CHINESE.search(rule.because_zh):
        yield Finding(path=(*path, "because_zh"), text="has no Chinese text")
    known = rule.knowledge
    texts: list[tuple[_Path, Text]] = [(("cause",), known.cause), (("todo",), known.todo)]
    texts += [(("advice", index, "todo"), case.todo) for index, case in enumerate(known.advice)]
    for part, text in texts:
        here = (*path, "knowledge", *part)
        if not text.en.strip():
            yield Finding(path=(*here, "en"), text="is empty")
        if not _CHINESE.search(text.zh):
            yield Finding(path=(*here, "zh"), text="has no Chinese text")
        strange = [word for word in NAMED.findall(text.en + text.zh) if word != DRAIN or part == ("cause",)]
        for word in strange:
            yield Finding(path=here, text=f"{word!r} is no word of a `todo` (has: {DRAIN})")
    for index, link in enumerate(rule.knowledge.links):
        if not link.startswith(("https://", "http://")):
            yield Finding(path=(*path, "knowledge", "links", index), text="is no web address")


def _examples(rule: Rule, path: _Path, runbooks: set[str]) -> Iterator[Finding]:
    here = (*path, "examples")
    if not any(example.expect.incident == cause_of(rule) for example in rule.examples):
        yield Finding(path=here, text=f"there is none that expects an incident {cause_of(rule)!r}")
    if not any(example.expect.nothing for example in rule.examples):
        yield Finding(path=here, text="there is none that expects `nothing: true`")
    names: set[str] = set()
    for index, example in enumerate(rule.examples):
        at = (*here, index)
        if example.name in names:
            yield Finding(path=(*at, "name"), text=f"there are two examples {example.name!r}")
        names.add(example.name)
        yield from _expect(example, (*at, "expect"), runbooks)
        if not example.given:
            yield Finding(path=at, text="nothing is given")
        for number, given in enumerate(example.given):
            yield from _given(given, (*at, "given", number))


def _expect(example: Example, path: _Path, runbooks: set[str]) -> Iterator[Finding]:
    expect = example.expect
    if expect.nothing and expect != Expect(nothing=True):
        yield Finding(path=path, text="`nothing: true` stands alone")
    elif expect == Expect():
        yield Finding(path=path, text="expects nothing at all: say `nothing: true` or what must come")
    elif (expect.scope or expect.runbook) and not expect.incident:
        yield Finding(path=path, text="`scope` and `runbook` are those of an `incident`: name its cause")
    if expect.runbook and expect.runbook not in runbooks:
        yield Finding(path=(*path, "runbook"), text=f"there is no runbook {expect.runbook!r}")


def _given(given: Given, path: _Path) -> Iterator[Finding]:
    if bool(given.kernel) + bool(given.event) + given.unreachable != 1:
        yield Finding(path=path, text="needs exactly one of kernel, event and unreachable")
    if given.at < 0 or given.age_s < 0 or given.nodes < 1:
        yield Finding(path=path, text="at and age_s must not be negative, nodes at least 1")
    if not given.event:
        if given.data:
            yield Finding(path=(*path, "data"), text="is for an `event`")
        return
    kind = KINDS.get(given.event)
    if kind is None:
        yield Finding(path=(*path, "event"), text=f"there is no event kind {given.event!r}")
        return
    try:
        if kind.component != RELEASE:  # no part of a node
            components.check(given.component)
    except ContractError as error:
        yield Finding(path=(*path, "component"), text=str(error))
    else:
        if given.component.partition("/")[0] not in kind.component.split(","):
            text = f"{given.event} is about {kind.component}, not {given.component}"
            yield Finding(path=(*path, "component"), text=text)
    if given.severity not in _SEVERITIES:
        yield Finding(path=(*path, "severity"), text=f"no severity {given.severity!r}")
    declared = {field.name: field for field in kind.fields}
    for name, value in given.data.items():
        if name not in declared:
            yield Finding(path=(*path, "data", name), text=f"{given.event} has no field {name!r}")
        elif not fits(value, declared[name].type):
            yield Finding(path=(*path, "data", name), text=f"is {declared[name].type}, not {value!r}")
    missing = [name for name, field in declared.items() if field.always and name not in given.data]
    if missing:
        yield Finding(path=(*path, "data"), text=f"{given.event} always says {', '.join(missing)} too")
