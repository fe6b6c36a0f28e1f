"""How tests, facts and times read, in English and Chinese. Pure."""

from collections.abc import Iterable, Mapping
from typing import Any, Final

from agent.contract.counted import span
from brain.core.pack.spans import span_text
from brain.core.pack.spec import Match, Scalar, Symptom, Text

_SIGNS: Final[Mapping[str, str]] = {"lt": "<", "lte": "≤", "gt": ">", "gte": "≥", "ne": "≠", "eq": "="}
MOST_NAMED = 5  # of nodes, alternatives and kinds that a sentence names


def ago(now: float, then: float) -> str:
    """`12 seconds ago`."""
    return f"{span(max(0.0, now - then))} ago"


def value(one: Scalar | None) -> str:
    """A value as the rules write it."""
    if isinstance(one, bool):
        return "true" if one else "false"
    if isinstance(one, str):
        return f"'{one}'"
    return "not known" if one is None else f"{one:g}" if isinstance(one, float) else str(one)


def needs(want: Any) -> str:
    """What a test of a field needs: `≥ 85`, `'a' or 'b'`."""
    if isinstance(want, Mapping):
        return " and ".join(_one(name, operand) for name, operand in want.items())
    return _values(want) if isinstance(want, (list, tuple)) else value(want)


def facts(matches: Iterable[Match]) -> Text:
    """The facts that a symptom rests on, or that end it: `gpu.xid with code 79`."""
    en, zh = [], []
    for match in matches:
        tests = [f"{field} {needs(want)}" for field, want in match.where.items()]
        en.append(match.kind + (f" with {', '.join(tests)}" if tests else ""))
        zh.append(match.kind + (f"（{'，'.join(tests)}）" if tests else ""))
    more = len(en) - MOST_NAMED
    if more > 0:
        return Text(
            en=" or ".join([*en[:MOST_NAMED], f"{more} other facts"]),
            zh=" 或 ".join([*zh[:MOST_NAMED], f"另外 {more} 种事实"]),
        )
    return Text(en=" or ".join(en), zh=" 或 ".join(zh))


def begins(symptom: Symptom) -> Text:
    """What it takes for a symptom to begin."""
    told, within, lasts = facts(symptom.on), span_text(symptom.within_s), span_text(symptom.for_s)
    number = f"{symptom.at_least:g}"
    match symptom.detect:
        case "count":
            return Text(
                en=f"{number} × {told.en} within {within.en}", zh=f"{within.zh}内出现 {number} 次 {told.zh}"
            )
        case "sum":
            return Text(
                en=f"{symptom.sum_of} of {told.en} adding up to {number} within {within.en}",
                zh=f"{within.zh}内 {told.zh} 的 {symptom.sum_of} 累计达到 {number}",
            )
        case "flapping":
            return Text(
                en=f"{number} changes of {told.en} within {within.en}",
                zh=f"{within.zh}内 {told.zh} 变化 {number} 次",
            )
        case "lasting":
            return Text(en=f"{told.en} for {lasts.en}", zh=f"{told.zh} 持续 {lasts.zh}")
        case "absence":
            return Text(en=f"no {told.en} for {lasts.en}", zh=f"{lasts.zh}内没有 {told.zh}")
        case "unlike":
            fields = symptom.compare
            return Text(
                en=f"{fields} other than on nodes that are alike, for {lasts.en}",
                zh=f"{fields} 与同类节点不同，持续 {lasts.zh}",
            )
        case "spread":
            return Text(en=f"{symptom.of} on many nodes", zh=f"许多节点出现 {symptom.of}")
        case _:
            return told


def listed(names: Iterable[str], last: str = "and") -> str:
    """`n1, n2 and n3`; of many the first ones."""
    every = list(names)
    shown, more = every[:MOST_NAMED], len(every) - MOST_NAMED
    if more > 0:
        return f"{', '.join(shown)} {last} {more} more"
    return f" {last} ".join([", ".join(shown[:-1]), shown[-1]] if len(shown) > 1 else shown)


def _one(name: str, operand: Any) -> str:
    if name == "exists":
        return "told" if operand else "not told"
    if name == "in":
        return _values(operand)
    return value(operand) if name == "eq" else f"{_SIGNS[name]} {value(operand)}"


def _values(values: Iterable[Scalar]) -> str:
    return " or ".join(value(one) for one in values)
