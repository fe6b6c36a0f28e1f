"""The few operator commands that may come from a chat, as buttons or typed. Pure.

A button carries exactly what its card showed: an approval names run and rung, so that it counts for nothing else.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import orjson
from pydantic import ValidationError

from agent.contract.inert import inert
from agent.contract.messages import clip
from agent.shared.words import t
from brain.chat_words import CHINESE, HOLD_S, MAX_VALUE
from brain.console.api.verbs import CommandBody
from brain.core.pack.spec import Scalar

USAGE = "ack ID | approve RUN RUNG | deny RUN [WHY] | hold SCOPE [WHY] (我来处理 | 批准 | 拒绝 | 暂停)"
_ARGS: Mapping[str, frozenset[str]] = {
    "ack": frozenset({"id"}),
    "approve": frozenset({"id", "rung", "seen"}),
    "deny": frozenset({"id", "why"}),
    "hold": frozenset({"scope", "why"}),
}
_IN_CHINESE: Mapping[str, str] = {text: verb for verb, text in CHINESE.items()}
_MENTION = re.compile(r"^(?:@\S+\s+)+")


class NotUnderstood(ValueError):
    """It is none of the commands that may come from a chat; the text is for whoever said it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Said:
    """What somebody said, checked: who the platform says it was, and the command."""

    # The platform's id of the sender
    sender: str
    # The platform's id of this word: it counts once
    id: str
    verb: str
    args: Mapping[str, Scalar]


def of_button(value: object, who: str, cell: str) -> tuple[str, dict[str, Scalar]]:
    """(verb, args) of a button's value, a text or its JSON; `who` pressed it. NotUnderstood: it is none of ours, or on a card of
    another cell than `cell`, where a node of the same name is another machine.
    """
    if isinstance(value, str):
        try:
            value = orjson.loads(value) if len(value) <= MAX_VALUE else None
        except orjson.JSONDecodeError:
            value = None
    if (
        not isinstance(value, dict)
        or {*value} - {"cell"} != {"verb", "args"}
        or not isinstance(value["args"], dict)
    ):
        raise NotUnderstood(t("this button is not gpuward's"))
    if (other := value.get("cell", cell)) != cell:
        raise NotUnderstood(
            t(
                "this card is of the cell {other}, and the app's answers come to {cell}: say it in the console of {other}",
                other=clip(inert(str(other)), 80),
                cell=cell,
            )
        )
    return _checked(value["verb"], value["args"], who)


def of_text(text: str, who: str) -> tuple[str, dict[str, Scalar]]:
    """(verb, args) of a typed line: USAGE, behind mentions. An approval must name the rung that it is for."""
    verb, _, rest = _MENTION.sub("", text.strip()).partition(" ")
    first, _, more = rest.strip().partition(" ")
    verb, more = _IN_CHINESE.get(verb, verb.lower()), more.strip()
    match verb:
        case "ack" if first and not more:
            args = {"id": first}
        case "approve" if first and more:
            args = {"id": first, "rung": more}
        case "deny" if first:
            args = {"id": first} | ({"why": more} if more else {})
        case "hold" if first:
            args = {"scope": first} | ({"why": more} if more else {})
        case _:
            raise NotUnderstood(t("say one of: {usage}", usage=USAGE))
    return _checked(verb, args, who)


def _checked(verb: object, args: Mapping[str, Any], who: str) -> tuple[str, dict[str, Scalar]]:
    known = _ARGS.get(verb) if isinstance(verb, str) else None
    if known is None or set(args) - known or (verb == "approve" and not args.get("rung")):
        raise NotUnderstood(t("from a chat these count: {usage}", usage=USAGE))
    given = dict(args)
    if verb == "hold":
        given = {"why": f"{who} holds it from a chat", **given, "for_s": HOLD_S}
    try:
        return CommandBody.model_validate({"verb": verb, "args": given}).said
    except ValidationError as error:
        raise NotUnderstood(t("say one of: {usage}", usage=USAGE)) from error
