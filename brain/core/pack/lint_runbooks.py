"""Checks of runbooks: each rung can be performed, what disrupts is verified, and a rule or a request leads to it."""

import re
from collections.abc import Iterator, Mapping

from agent.contract.actions.spec import ActionSpec, Disrupts, Repeat
from agent.contract.commands import check_params
from agent.contract.errors import ContractError
from brain.core.pack.actions import PAGE_ACTION
from brain.core.pack.conditions import symptoms_in
from brain.core.pack.finding import Finding
from brain.core.pack.lint_rules import condition
from brain.core.pack.lint_symptoms import BASE_FIELDS
from brain.core.pack.spec import (
    DRAINS,
    NAMED,
    ONCALL,
    PAGE,
    TOLD,
    Mode,
    Pack,
    Rule,
    Runbook,
    Rung,
    Scalar,
    Symptom,
)
from brain.core.pack.topology import NODELESS, WIDE

MAX_RETRIES = 10
MIN_EVERY_S = 3600.0

_BY = ", ".join(f"${name}" for name in TOLD)
_COMMAND = re.compile(r"`[^`]*`")  # a command to type is no claim
# Words that tell what was done, or that nothing is left to do. They are refused in advice too: there are others for it.
_CLAIM = re.compile(
    r"(?i)\b(?:drain\w*|new jobs|switched off|evidence|nothing (?:more |else )?(?:to do|is urgent)|paged|informed"
    r"|requeued|reset\w*|reboot\w*|restart\w*|retrain\w*|power cycle\w*|reload\w*|isolated|disabled|kept|tried)\b"
)
_NAME = re.compile(r"[a-z][a-z0-9-]{0,60}")
# For a parameter of this type that is a `$name`; for other types a text.
_SAMPLES: Mapping[str, Scalar] = {"int": 1, "float": 1.0, "bool": True}
_WORSE = (Disrupts.NOTHING, Disrupts.JOB, Disrupts.NODE, Disrupts.FABRIC)
_MORE_CAREFUL = (Repeat.SAFE, Repeat.PROBE, Repeat.NEVER)
_Path = tuple[str | int, ...]


def findings(pack: Pack, actions: Mapping[str, ActionSpec]) -> Iterator[Finding]:
    """What is wrong with the pack's runbooks."""
    known = {**actions, PAGE: PAGE_ACTION}
    symptoms = {symptom.name: symptom for symptom in pack.symptoms}
    for runbook in pack.runbooks:
        names = (runbook.name, *(one.name for one in pack.runbooks if one.for_several == runbook.name))
        rules = [rule for rule in pack.rules if rule.runbook in names]
        yield from _runbook(runbook, rules)
        yield from _rungs(runbook, rules, known, symptoms)
        yield from _unused_params(runbook, rules)
        yield from _claims(runbook, known)
        yield from _alone_if(runbook, symptoms)
        yield from _last_resort(runbook, pack, known)
        yield from _for_several(runbook, pack)
        of_nodes = [symptom.name for symptom in pack.symptoms if symptom.scope == "node"]
        if runbook.only_while and runbook.only_while not in of_nodes:
            text = f"there is no symptom {runbook.only_while!r} of nodes"
            yield Finding(path=("runbooks", runbook.name, "only_while"), text=text)


def _runbook(runbook: Runbook, rules: list[Rule]) -> Iterator[Finding]:
    path: _Path = ("runbooks", runbook.name)
    if not _NAME.fullmatch(runbook.name):
        yield Finding(path=path, text="a runbook's name is in kebab-case: a-z, 0-9 and -")
    if not rules and not runbook.request:
        yield Finding(path=path, text="no rule leads to it, and nobody may request it")
    if runbook.every_s and not runbook.request:
        yield Finding(path=(*path, "every_s"), text="a schedule needs `request: true`")
    if runbook.only_while and (not runbook.request or runbook.scope != "node"):
        text = "is for a schedule on nodes: needs `request: true`, and `scope: node`"
        yield Finding(path=(*path, "only_while"), text=text)
    if runbook.every_s and runbook.every_s < MIN_EVERY_S:
        yield Finding(path=(*path, "every_s"), text=f"must be at least {MIN_EVERY_S:g} s")
    if runbook.scope != "node" and not runbook.request:
        yield Finding(path=(*path, "scope"), text="only a runbook with `request: true` has a scope")
    if not runbook.rungs:
        yield Finding(path=(*path, "rungs"), text="a ladder needs a rung")
    if runbook.tries < 1 or runbook.tries_within_s <= 0:
        yield Finding(path=(*path, "tries"), text="tries must be at least 1, tries_within_s more than 0 s")


def _rungs(
    runbook: Runbook,
    rules: list[Rule],
    actions: Mapping[str, ActionSpec],
    symptoms: Mapping[str, Symptom],
) -> Iterator[Finding]:
    """The rungs of the ladder and of the return to service."""
    names: set[str] = set()
    for part, rungs in (("rungs", runbook.rungs), ("return_to_service", runbook.return_to_service)):
        for index, rung in enumerate(rungs):
            path: _Path = ("runbooks", runbook.name, part, index)
            if rung.name in names:
                yield Finding(path=(*path, "name"), text=f"there are two rungs {rung.name!r}")
            names.add(rung.name)
            spec = actions.get(rung.do)
            if spec is None:
                text = f"there is no action {rung.do!r} (have: {', '.join(actions)})"
                yield Finding(path=(*path, "do"), text=text)
                continue
            yield from _after(rung, part, runbook, path)
            yield from _rung(rung, spec, path, symptoms, request=runbook.request)
            yield from _params(rung, actions, path, rules, symptoms, request=runbook.request)
            disrupts = rung.disrupts or (Disrupts.NOTHING if spec.tests else spec.disrupts)
            if part == "return_to_service" and disrupts is not Disrupts.NOTHING:
                yield Finding(
                    path=path, text="a return to service must disrupt nothing: no gate may block it"
                )
            if spec.where == "node":
                yield from _node_action(rung, path, runbook, rules)


def _after(rung: Rung, part: str, runbook: Runbook, path: _Path) -> Iterator[Finding]:
    ladder = [one.name for one in runbook.rungs]
    if rung.after and part != "return_to_service":
        yield Finding(path=(*path, "after"), text="only a rung of return_to_service has `after`")
    for index, name in enumerate(rung.after):
        if name not in ladder:
            text = f"the ladder has no rung {name!r} (has: {', '.join(ladder)})"
            yield Finding(path=(*path, "after", index), text=text)


def _node_action(rung: Rung, path: _Path, runbook: Runbook, rules: list[Rule]) -> Iterator[Finding]:
    """A node's action needs a node: no wider scope leads to it."""
    if runbook.scope in WIDE:
        text = f"{rung.do} runs on a node, but the runbook is of scope {runbook.scope}"
        yield Finding(path=(*path, "do"), text=text)
    for rule in rules:
        if rule.scope in NODELESS:
            text = f"{rung.do} runs on a node, but rule {rule.name} is of scope {rule.scope}"
            yield Finding(path=(*path, "do"), text=text)


def _rung(
    rung: Rung, spec: ActionSpec, path: _Path, symptoms: Mapping[str, Symptom], *, request: bool
) -> Iterator[Finding]:
    if rung.disrupts is not None and _WORSE.index(rung.disrupts) < _WORSE.index(spec.disrupts):
        text = f"{spec.name} disrupts {spec.disrupts.value}: a rung can only say worse"
        yield Finding(path=(*path, "disrupts"), text=text)
    if rung.repeat is not None and _MORE_CAREFUL.index(rung.repeat) < _MORE_CAREFUL.index(spec.repeat):
        text = f"{spec.name} is {spec.repeat.value}: a rung can only be more careful"
        yield Finding(path=(*path, "repeat"), text=text)
    if spec.heals and (rung.disrupts or spec.disrupts) is not Disrupts.NOTHING and rung.verify is None:
        yield Finding(path=path, text="disrupts something and is not verified: say when it has worked")
    if rung.on_failure == "quit" and not request:
        yield Finding(
            path=(*path, "on_failure"), text="quit is for runbooks with `request: true`: a fault stays"
        )
    if rung.timeout_s < 0:
        yield Finding(path=(*path, "timeout_s"), text="must not be negative (0: the action's own)")
    if not 0 <= rung.retries <= MAX_RETRIES:
        yield Finding(path=(*path, "retries"), text=f"must be 0 to {MAX_RETRIES}")
    fault = rung.params.get("fault")
    if spec.drains and fault is not None:
        if fault not in DRAINS:
            text = f"there is no class of faults {fault!r} (have: {', '.join(DRAINS)})"
            yield Finding(path=(*path, "params", "fault"), text=text)
        if "wait_s" in rung.params or "then" in rung.params:
            text = "the site says how long a drain for this class waits: no wait_s and no then beside it"
            yield Finding(path=(*path, "params", "fault"), text=text)
    yield from condition(rung.when, (*path, "when"), symptoms)
    if rung.verify is not None:
        if rung.verify.within_s <= 0 or rung.verify.for_s < 0:
            text = "within_s must be more than 0 s, for_s not negative"
            yield Finding(path=(*path, "verify"), text=text)
        for key, names in (("gone", rung.verify.gone), ("reset_on_act", rung.verify.reset_on_act)):
            for index, name in enumerate(names):
                if name not in symptoms and (key, name) != ("reset_on_act", "*"):
                    yield Finding(path=(*path, "verify", key, index), text=f"there is no symptom {name!r}")


def _params(
    rung: Rung,
    actions: Mapping[str, ActionSpec],
    path: _Path,
    rules: list[Rule],
    symptoms: Mapping[str, Symptom],
    *,
    request: bool,
) -> Iterator[Finding]:
    types = {param.name: param.type for param in actions[rung.do].params}
    filled: dict[str, Scalar] = {}
    for name, value in rung.params.items():
        filled[name] = value
        wanted = NAMED.findall(value) if isinstance(value, str) else []
        if not wanted:
            continue
        sample = _SAMPLES.get(types.get(name, ""), "sample")
        filled[name] = sample if value == wanted[0] else NAMED.sub("sample", str(value))
        if rung.do == PAGE:
            yield from _told(name, wanted, (*path, "params", name))
            continue
        for word in wanted:
            for rule in rules:
                if word[1:] not in _given_by(rule, symptoms):
                    text = (
                        f"rule {rule.name} gives no {word!r} (gives: {', '.join(_given_by(rule, symptoms))})"
                    )
                    yield Finding(path=(*path, "params", name), text=text)
            if request and word[1:] not in BASE_FIELDS:
                text = f"a request gives no {word!r} (gives: {', '.join(BASE_FIELDS)})"
                yield Finding(path=(*path, "params", name), text=text)
    try:
        check_params(rung.do, filled, actions)
    except ContractError as error:
        yield Finding(path=(*path, "params"), text=str(error))


def _told(param: str, wanted: list[str], path: _Path) -> Iterator[Finding]:
    """A page's text has words of its own; its receiver is fixed."""
    for word in wanted:
        if param != "text" or word[1:] not in TOLD:
            text = f"a page has no {word!r} (its text has: {', '.join(f'${name}' for name in TOLD)})"
            yield Finding(path=path, text=text)


def _claims(runbook: Runbook, actions: Mapping[str, ActionSpec]) -> Iterator[Finding]:
    """A page says only what is true: its own words claim nothing that another rung may have failed to do."""
    drains = any((spec := actions.get(rung.do)) is not None and spec.drains for rung in runbook.rungs)
    for index, rung in enumerate(runbook.rungs):
        text = str(rung.params.get("text", ""))
        if rung.do != PAGE or not text:
            continue
        path: _Path = ("runbooks", runbook.name, "rungs", index, "params", "text")
        for claim in _CLAIM.findall(NAMED.sub("", _COMMAND.sub("", text))):
            yield Finding(path=path, text=f"claims what may not be so ({claim!r}): say it by {_BY}")
        if drains and "$drained" not in text and rung.params.get("to", ONCALL) == ONCALL:
            yield Finding(path=path, text="a rung may drain the node: say by $drained whether it did")


def _alone_if(runbook: Runbook, symptoms: Mapping[str, Symptom]) -> Iterator[Finding]:
    """What lets it go on without people is a symptom of nodes, and only matters where it must ask them."""
    path: _Path = ("runbooks", runbook.name, "alone_if")
    if not runbook.alone_if:
        return
    symptom = symptoms.get(runbook.alone_if)
    if symptom is None:
        yield Finding(path=path, text=f"there is no symptom {runbook.alone_if!r}")
    elif symptom.scope != "node":
        yield Finding(path=path, text=f"{symptom.name} is a symptom of a {symptom.scope}, not of a node")
    if runbook.at_most is not Mode.APPROVE:
        yield Finding(path=path, text="needs `at_most: approve`")


def _last_resort(runbook: Runbook, pack: Pack, actions: Mapping[str, ActionSpec]) -> Iterator[Finding]:
    """What runs when a remedy may not be tried again only fences: it heals nothing, so it may always be tried."""
    path: _Path = ("runbooks", runbook.name, "last_resort")
    name = runbook.last_resort
    resort = next((one for one in pack.runbooks if one.name == name), None)
    if name and resort is None:
        yield Finding(path=path, text=f"there is no runbook {name!r}")
    for rung in resort.rungs if resort is not None else ():
        spec = actions.get(rung.do)
        if spec is not None and spec.heals and (rung.disrupts or spec.disrupts) is not Disrupts.NOTHING:
            yield Finding(path=path, text=f"{name} does more than fence: {rung.name} is {rung.do}")
    if resort is not None and (
        resort.last_resort or not any(_fences(rung, actions) for rung in resort.rungs)
    ):
        yield Finding(path=path, text=f"{name} does not fence the node, or has a last resort itself")


def _for_several(runbook: Runbook, pack: Pack) -> Iterator[Finding]:
    """What is run for several parts at once can be run for several."""
    path: _Path = ("runbooks", runbook.name, "for_several")
    name = runbook.for_several
    other = next((one for one in pack.runbooks if one.name == name), None)
    if name and other is None:
        yield Finding(path=path, text=f"there is no runbook {name!r}")
    elif other is not None and not other.several:
        yield Finding(path=path, text=f"{name} is not for several parts: it needs `several: true`")
    elif other is not None and runbook.several:
        yield Finding(path=path, text="it is for several parts itself (`several: true`)")


def _fences(rung: Rung, actions: Mapping[str, ActionSpec]) -> bool:
    spec = actions.get(rung.do)
    return spec is not None and spec.drains and not spec.heals


def _given_by(rule: Rule, symptoms: Mapping[str, Symptom]) -> list[str]:
    """The names that a run of this rule can fill in for `$name`."""
    named = [symptoms[name] for name in symptoms_in(rule.when) if name in symptoms]
    carried = (field for symptom in named for field in symptom.carry)
    fields = [field for field in BASE_FIELDS if field != "node_alive"]
    return list(dict.fromkeys((*fields, "incident", "cause", *rule.params, *carried)))


def _unused_params(runbook: Runbook, rules: list[Rule]) -> Iterator[Finding]:
    rungs = (*runbook.rungs, *runbook.return_to_service)
    texts = [value for rung in rungs for value in rung.params.values() if isinstance(value, str)]
    wanted = {word[1:] for text in texts for word in NAMED.findall(text)}
    for rule in rules:
        for name in rule.params:
            if name not in wanted:
                path = ("rules", rule.name, "params", name)
                yield Finding(path=path, text=f"runbook {runbook.name} has no `${name}`")
