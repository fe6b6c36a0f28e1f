"""The operator commands that the API accepts, checked before they go on the log. The engine decides their effect."""

from collections.abc import Collection, Mapping
from fnmatch import fnmatchcase
from typing import Any

from agent.contract.errors import ConfigError
from agent.contract.messages import clip
from brain.console_config import Role
from brain.core.operators import scopes
from brain.core.pack.spec import Mode, Pack, Scalar

MAX_TEXT = 1000
# verb -> (required arguments, optional arguments, the weakest role that may say it)
VERBS: Mapping[str, tuple[tuple[str, ...], tuple[str, ...], Role]] = {
    "hold": (("scope", "why"), ("for_s",), Role.OPERATOR),
    "release": (("scope",), (), Role.OPERATOR),
    "approve": (("id",), ("rung",), Role.APPROVER),
    "deny": (("id",), ("why",), Role.OPERATOR),
    "ack": (("id",), (), Role.OPERATOR),
    "close": (("id",), ("why",), Role.OPERATOR),
    "mode": (("runbook", "mode"), ("nodes",), Role.ADMINISTRATOR),  # observe: operators, too (touched.py)
    "return": (("node",), (), Role.OPERATOR),
    "forget": (("node",), ("why",), Role.OPERATOR),
    "start": (("runbook",), ("node", "fabric", "why"), Role.APPROVER),
    "reset": ((), (), Role.APPROVER),
}
ROLES: Mapping[str, Role] = {verb: role for verb, (_, _, role) in VERBS.items()}


class InvalidCommand(ValueError):
    """The request is not a valid command; the text says what the operator must change."""


def parse(body: Any) -> tuple[str, dict[str, Scalar]]:
    """Returns (verb, args) of a request; InvalidCommand says what is wrong."""
    if isinstance(body, dict) and "who" in body:
        raise InvalidCommand("leave `who` out: your token says who you are")
    if not isinstance(body, dict) or not set(body) <= {"verb", "args"}:
        raise InvalidCommand('want {"verb": ..., "args": {...}}')
    verb, args = body.get("verb"), body.get("args", {})
    if not isinstance(verb, str) or verb not in VERBS:
        raise InvalidCommand(f"no verb {clip(str(verb), 40)!r} (have: {', '.join(VERBS)})")
    needs, may, _ = VERBS[verb]
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
    return verb, dict(args)


def check_words(chosen: Collection[str]) -> None:
    """ConfigError when a word of console.two_persons is no command: the rule would hold for nothing, silently."""
    words = [*VERBS, *(f"mode {mode.value}" for mode in Mode)]
    for word in chosen:
        if word not in words:
            raise ConfigError(f"console.two_persons: no command {word!r} (have: {', '.join(words)})")


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
