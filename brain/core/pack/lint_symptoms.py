"""Checks of symptoms: the events that they name exist, and each can begin and end."""

import re
from collections.abc import Iterator, Mapping
from typing import Any

from agent.contract.errors import ConfigError
from agent.contract.kinds import KINDS as NODE_KINDS
from agent.contract.kinds import Kind
from brain.core.pack import conditions, vocabulary
from brain.core.pack.finding import Finding
from brain.core.pack.spec import Match, Pack, Symptom
from brain.core.pack.topology import CELL, JOB, NODELESS, SCOPES, WIDE

KINDS: Mapping[str, Kind] = NODE_KINDS | vocabulary.KINDS
# Fields that the situation of every node and component has.
BASE_FIELDS = ("scope", "scope_type", "node", "component", "name", "node_alive")
MAX_WINDOW_FACTS = 1000  # facts that a window keeps
MIN_PEERS = 3  # fewer nodes than this are no baseline

_NAME = re.compile(r"[a-z][a-z0-9_]{0,60}")
# Names in `where` that are not data fields.
_ENVELOPE = {"severity": "text", "component": "text", "component_type": "text", "count": "int"}
_Path = tuple[str | int, ...]


def findings(pack: Pack) -> Iterator[Finding]:
    """What is wrong with the pack's symptoms."""
    known = {symptom.name: symptom for symptom in pack.symptoms}
    used = {name for rule in pack.rules for name in _named(rule.when)}
    used |= {symptom.of for symptom in pack.symptoms}
    used |= {runbook.alone_if for runbook in pack.runbooks}
    used |= {runbook.only_while for runbook in pack.runbooks}
    for symptom in pack.symptoms:
        path: _Path = ("symptoms", symptom.name)
        if not _NAME.fullmatch(symptom.name):
            yield Finding(path=path, text="a symptom's name is in snake_case: a-z, 0-9 and _")
        if not symptom.summary.strip():
            yield Finding(path=(*path, "summary"), text="is empty: one sentence for the page")
        if symptom.scope not in SCOPES:
            yield Finding(
                path=(*path, "scope"), text=f"no scope {symptom.scope!r} (have: {', '.join(SCOPES)})"
            )
        if symptom.name not in used:
            yield Finding(path=path, text="no rule names it, and no runbook's alone_if")
        yield from _detection(symptom, path, known)
        for part, matches in (("on", symptom.on), ("clear", symptom.clear)):
            for index, match in enumerate(matches):
                yield from _match(symptom, match, (*path, part, index))
        yield from _accuses(symptom, path)
        yield from _carry(symptom, path)
        yield from _apart(symptom, path)


def _accuses(symptom: Symptom, path: _Path) -> Iterator[Finding]:
    if unknown := [kind for kind in symptom.accuses if kind not in WIDE]:
        yield Finding(
            path=(*path, "accuses"), text=f"no kind of place {unknown[0]!r} (have: {', '.join(WIDE)})"
        )
    if symptom.accuses and symptom.scope in NODELESS:
        yield Finding(path=(*path, "accuses"), text="is for symptoms of nodes and their parts")


def _named(condition: Any) -> list[str]:
    try:
        return list(conditions.symptoms_in(condition))
    except (TypeError, AttributeError):  # malformed: lint_rules reports it
        return []


def _detection(symptom: Symptom, path: _Path, known: Mapping[str, Symptom]) -> Iterator[Finding]:
    """Fields that the way of detection needs and that are missing, or that it does not use."""
    detect = symptom.detect
    if detect == "spread":
        yield from _spread(symptom, path, known)
    else:
        if not symptom.on:
            yield Finding(path=path, text="needs `on`: the facts that begin it")
        if symptom.of or (symptom.share and detect != "unlike"):
            yield Finding(path=path, text="`of` and `share` are for detect: spread")
    if detect == "unlike":
        yield from _unlike(symptom, path)
    elif symptom.alike or symptom.compare:
        yield Finding(path=path, text="`alike` and `compare` are for detect: unlike")
    yield from _limits(symptom, path)
    if detect == "sum":
        yield from _sum(symptom, path)
    elif symptom.sum_of:
        yield Finding(path=(*path, "sum_of"), text="is for detect: sum")


def _limits(symptom: Symptom, path: _Path) -> Iterator[Finding]:
    """Windows, thresholds, durations, and what ends the symptom."""
    detect = symptom.detect
    if detect in ("count", "sum", "flapping") and symptom.within_s <= 0:
        yield Finding(path=(*path, "within_s"), text=f"detect: {detect} needs a window of more than 0 s")
    if detect in ("count", "sum", "flapping", "spread") and symptom.at_least <= 0:
        yield Finding(path=(*path, "at_least"), text="must be more than 0")
    if detect == "flapping" and symptom.at_least > MAX_WINDOW_FACTS:
        yield Finding(path=(*path, "at_least"), text=f"a window remembers {MAX_WINDOW_FACTS} changes")
    if detect in ("lasting", "absence") and symptom.for_s <= 0:
        yield Finding(path=(*path, "for_s"), text=f"detect: {detect} needs how long, more than 0 s")
    if detect in ("lasting", "flapping") and not symptom.clear:
        yield Finding(path=(*path, "clear"), text=f"detect: {detect} needs to know what ends it")
    if symptom.ttl_s <= 0:
        yield Finding(path=(*path, "ttl_s"), text="must be more than 0 s: what nothing renews has to end")
    if detect == "absence" and symptom.ttl_s < symptom.for_s:
        yield Finding(path=(*path, "ttl_s"), text="must not be shorter than for_s")


def _spread(symptom: Symptom, path: _Path, known: Mapping[str, Symptom]) -> Iterator[Finding]:
    counted = known.get(symptom.of)
    if counted is None:
        yield Finding(path=(*path, "of"), text=f"there is no symptom {symptom.of!r} whose nodes to count")
    elif counted.scope in NODELESS:
        yield Finding(path=(*path, "of"), text=f"{symptom.of} is not a symptom of nodes or their parts")
    if symptom.scope not in (JOB, *WIDE, CELL):
        text = f"a spread is counted at {', '.join((JOB, *WIDE))} or {CELL}"
        yield Finding(path=(*path, "scope"), text=text)
    if symptom.scope == JOB and counted is not None and not _told_by_jobs(counted):
        text = f"no log of a job tells {symptom.of}: a job is the place of what its log tells only"
        yield Finding(path=(*path, "of"), text=text)
    if symptom.on:
        yield Finding(path=(*path, "on"), text="a spread has no facts of its own, it counts those of `of`")
    if not 0 <= symptom.share <= 1:
        yield Finding(path=(*path, "share"), text="is a share: 0 to 1")


def _told_by_jobs(symptom: Symptom) -> bool:
    kinds = [KINDS[match.kind] for match in symptom.on if match.kind in KINDS]
    return any(JOB in kind.component.split(",") for kind in kinds)


def _sum(symptom: Symptom, path: _Path) -> Iterator[Finding]:
    for index, match in enumerate(symptom.on):
        if match.kind in KINDS and _type_of(match.kind, symptom.sum_of) not in ("int", "float"):
            text = f"{match.kind} has no number {symptom.sum_of!r}"
            yield Finding(path=(*path, "on", index), text=text)


def _unlike(symptom: Symptom, path: _Path) -> Iterator[Finding]:
    if symptom.scope != "node":
        yield Finding(path=(*path, "scope"), text="nodes are compared: the scope is node")
    if len(symptom.on) != 1 or symptom.on[0].where or symptom.clear:
        yield Finding(
            path=(*path, "on"), text="detect: unlike takes all facts of one kind, without `where` and `clear`"
        )
    for match in symptom.on[:1]:
        for name in (*symptom.alike, symptom.compare):
            if match.kind in KINDS and _type_of(match.kind, name) is None:
                yield Finding(path=path, text=f"{match.kind} has no field {name!r} to compare")
    if not symptom.alike:
        yield Finding(
            path=(*path, "alike"), text="needs the fields in which nodes that are compared are equal"
        )
    if symptom.at_least < MIN_PEERS:
        yield Finding(path=(*path, "at_least"), text=f"must be at least {MIN_PEERS}: fewer say too little")
    if not 0.5 < symptom.share <= 1:
        yield Finding(path=(*path, "share"), text="is the share of the usual value: more than 0.5, at most 1")


def _match(symptom: Symptom, match: Match, path: _Path) -> Iterator[Finding]:
    kind = KINDS.get(match.kind)
    if kind is None:
        text = f"there is no event kind {match.kind!r} (have: {', '.join(KINDS)})"
        yield Finding(path=(*path, "kind"), text=text)
        return
    if not reaches(kind, symptom.scope):
        text = f"{match.kind} is about {kind.component}: it can not be placed at scope {symptom.scope}"
        yield Finding(path=(*path, "kind"), text=text)
    if symptom.scope in NODELESS and match.kind not in vocabulary.KINDS:
        text = f"one node's word would open it for a whole {symptom.scope}: count its nodes (detect: spread)"
        yield Finding(path=(*path, "kind"), text=text)
    yield from where(match, kind, path)


def where(match: Match, kind: Kind, path: _Path) -> Iterator[Finding]:
    """What is wrong with the tests in a match's `where`."""
    for name, want in match.where.items():
        here = (*path, "where", name)
        declared = _ENVELOPE.get(name) or _type_of(match.kind, name)
        if declared is None:
            have = ", ".join((*(field.name for field in kind.fields), *_ENVELOPE))
            yield Finding(path=here, text=f"{match.kind} has no field {name!r} (have: {have})")
            continue
        try:
            conditions.check_test(want, "test")
        except ConfigError as error:
            yield Finding(path=here, text=str(error))
            continue
        for operand in operands(want):
            if not fits(operand, declared):
                yield Finding(path=here, text=f"is {declared}: it never compares with {operand!r}")


def _carry(symptom: Symptom, path: _Path) -> Iterator[Finding]:
    for field, source in symptom.carry.items():
        here = (*path, "carry", field)
        if field in BASE_FIELDS or field.startswith(conditions.SYMPTOM_PREFIX) or field.endswith("_nodes"):
            yield Finding(path=here, text="is a name that situations use already")
        known = [match.kind for match in symptom.on if match.kind in KINDS]
        if known and not any(_type_of(kind, source) for kind in known):
            yield Finding(path=here, text=f"no fact in `on` has a field {source!r}")


def _apart(symptom: Symptom, path: _Path) -> Iterator[Finding]:
    here = (*path, "apart")
    if symptom.apart and (symptom.detect not in ("seen", "lasting") or not symptom.clear):
        yield Finding(
            path=here, text="is for detect: seen and lasting, with `clear`: it says what an end is about"
        )
    known = [match.kind for match in symptom.on if match.kind in KINDS]
    for name in symptom.apart:
        if known and name not in (*_ENVELOPE, "kind") and not any(_type_of(kind, name) for kind in known):
            yield Finding(path=here, text=f"no fact in `on` has a field {name!r}")


def reaches(kind: Kind, scope: str) -> bool:
    """Whether an event of this kind can belong to a scope of this type."""
    if scope in ("node", CELL, *WIDE):
        return True
    types = kind.component.split(",")
    return scope in types or (scope == "nic" and "port" in types)


def operands(want: Any) -> Iterator[Any]:
    """The values that a well-formed test compares with."""
    if isinstance(want, Mapping):
        for name, operand in want.items():
            if name == "in":
                yield from operand
            elif name != "exists":
                yield operand
    elif isinstance(want, (list, tuple)):
        yield from want
    else:
        yield want


def fits(value: Any, declared: str) -> bool:
    """Whether a value has a declared type (text, int, float, bool); int and float are not told apart."""
    if declared == "bool" or isinstance(value, bool):
        return declared == "bool" and isinstance(value, bool)
    return isinstance(value, str) == (declared == "text")


def _type_of(kind: str, field: str) -> str | None:
    declared = KINDS.get(kind)
    return next((each.type for each in declared.fields if each.name == field), None) if declared else None
