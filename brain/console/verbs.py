"""The operator commands that the API accepts, checked before they go on the log. The engine decides their effect."""

from collections.abc import Collection, Mapping
from fnmatch import fnmatchcase
from typing import Any

from agent.contract.messages import clip
from brain.core.operators import scopes
from brain.core.pack.spec import Mode, Pack, Scalar

MAX_TEXT = 1000
# verb -> (required arguments, optional arguments)
VERBS: Mapping[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "hold": (("scope", "why"), ("for_s",)),
    "release": (("scope",), ()),
    "approve": (("id",), ("rung",)),
    "deny": (("id",), ("why",)),
    "ack": (("id",), ()),
    "close": (("id",), ("why",)),
    "mode": (("runbook", "mode"), ("nodes",)),
    "return": (("node",), ()),
    "start": (("runbook",), ("node", "fabric", "why")),
    "reset": ((), ()),
}


class InvalidCommand(ValueError):
    """The request is not a valid command; the text says what the operator must change."""


def parse(body: Any) -> tuple[str, dict[str, Scalar], str]:
    """Returns (verb, args, who) of a request; InvalidCommand says what is wrong."""
    if not isinstance(body, dict) or not set(body) <= {"verb", "args", "who"}:
        raise InvalidCommand('want {"verb": ..., "args": {...}, "who": ...}')
    verb, args, who = body.get("verb"), body.get("args", {}), body.get("who")
    if not isinstance(who, str) or not who.strip() or len(who) > 100:
        raise InvalidCommand("`who` must be the name of the operator")
    if not isinstance(verb, str) or verb not in VERBS:
        raise InvalidCommand(f"no verb {clip(str(verb), 40)!r} (have: {', '.join(VERBS)})")
    needs, may = VERBS[verb]
    if not isinstance(args, dict):
        raise InvalidCommand("`args` must be an object")
    for name in needs:
        if args.get(name) in (None, ""):
            raise InvalidCommand(f"{verb} needs `{name}`")
    for name, value in args.items():
        if name not in needs + may:
            raise InvalidCommand(f"{verb} has no `{clip(name, 40)}` (have: {', '.join(needs + may)})")
        if name == "for_s":
            if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 < value < 1e9:
                raise InvalidCommand("`for_s` must be a number of seconds above 0")
        elif not isinstance(value, str) or len(value) > MAX_TEXT:
            raise InvalidCommand(f"`{name}` must be a text of at most {MAX_TEXT} characters")
    if verb == "mode" and args["mode"] not in [mode.value for mode in Mode]:
        raise InvalidCommand(f"`mode` must be one of {', '.join(mode.value for mode in Mode)}")
    return verb, dict(args), who.strip()


def check_names(verb: str, args: Mapping[str, Scalar], pack: Pack, nodes: Collection[str]) -> None:
    """InvalidCommand when a hold or a mode is for something that does not exist: it would have no effect, silently.

    `nodes`: those that have been heard of. A release is not checked, so that a hold of an earlier version can be ended.
    """
    if verb == "hold" and (text := scopes.mistake(str(args["scope"]), nodes, pack.places)):
        raise InvalidCommand(text)
    if verb == "mode":
        _want_match("runbook", str(args["runbook"]), [runbook.name for runbook in pack.runbooks])
        _want_match("node", str(args.get("nodes", "*")), [*nodes, *pack.places, ""])


def _want_match(what: str, pattern: str, names: list[str]) -> None:
    """A pattern for nodes may be for those to come; one plain name is not."""
    if any(fnmatchcase(name, pattern) for name in names) or (what == "node" and set("*?[") & set(pattern)):
        return
    raise InvalidCommand(f"no {what} {pattern!r}{scopes.have(pattern, sorted(set(names) - {''}))}")
