"""`gpuward explain --why-not`: why a rule does not match at a scope, from the question to the first thing that is missing."""

from collections.abc import Iterator
from datetime import datetime

import click

from agent.shared.words import span, t
from brain.cli.answers import ConditionJson, PastJson, WhyNotJson
from brain.cli.queries import clock
from brain.cli.terminal import hanging, padded

_LABEL = 12


def render(found: WhyNotJson, *, width: int) -> Iterator[str]:
    """Yields the text, line by line."""
    first, *further = found["text"]
    yield from (click.style(line, bold=True) for line in hanging("", first, width))
    for line in further:
        yield from _row("", line, width)
    away = [one for one in found["conditions"] if one["in_the_way"]]
    for number, one in enumerate(away):
        yield ""
        yield from _missing(one, t("because") if not number else t("and"), found["at"], width)
    rest = [one for one in found["conditions"] if not one["in_the_way"]]
    if rest:
        yield ""
        yield click.style(t("THE OTHER CONDITIONS") if away else t("ITS CONDITIONS"), fg="cyan", bold=True)
    for one in rest:
        yield from _row(t("met") if one["met"] else t("not met"), f"{one['test']}: {one['text']}", width)
    yield from _ends(found, width)
    if found["incident"]:
        yield ""
        yield from _row("", f"gpuward explain {found['incident']}", width)


def _missing(one: ConditionJson, label: str, at: str | None, width: int) -> Iterator[str]:
    yield from _row(label, one["text"], width)
    if (past := one["past"]) is not None:
        yield from _row(t("last"), _last(past, at), width)
    if one["begins"]:
        yield from _row(t("begins with"), one["begins"], width)
    if one["instead"]:
        yield from _row(
            t("or"), t("any of these would do as well: {instead}", instead=", ".join(one["instead"])), width
        )


def _last(past: PastJson, at: str | None) -> str:
    if past["at"]:
        return t(
            "ended {before}{at}: {why}", before=_before(past["at"], at), at=clock(past["at"]), why=past["why"]
        )
    if past["since"]:
        return t("never active since {since}, where the history begins", since=clock(past["since"]))
    return t("never active, as far as the history knows")


def _before(then: str, at: str | None) -> str:
    """`4 minutes ago, at `; empty: nobody knows what time it is there."""

    if at is None:
        return ""
    passed = datetime.fromisoformat(at) - datetime.fromisoformat(then)
    return t("{what} ago, at ", what=span(max(0.0, passed.total_seconds())))


def _ends(found: WhyNotJson, width: int) -> Iterator[str]:
    """When what waits goes on."""
    if found["until"]:
        yield from _row(t("held off"), t("until {until}", until=clock(found["until"])), width)
    if found["gate"]:
        until = (
            t(", until {gate_until}", gate_until=clock(found["gate_until"])) if found["gate_until"] else ""
        )
        again = (
            t(", asked again at {gate_again}", gate_again=clock(found["gate_again"]))
            if found["gate_again"]
            else ""
        )
        yield from _row(t("gate"), f"{found['gate']}{until}{again}", width)
    if found["runbook"]:
        mode = f" ({found['mode']})" if found["mode"] else ""
        yield from _row(t("runbook"), f"{found['runbook']}{mode}", width)


def _row(label: str, text: str, width: int) -> Iterator[str]:
    yield from hanging(f"  {padded(label, _LABEL)} ", text, width)
