"""What people may say through the API, checked before it goes on the log.

The engine decides what comes of it.
"""

from collections.abc import Mapping
from typing import Any

from agent.contract.messages import clip
from brain.core.spec import Mode, Scalar

MAX_TEXT = 1000
# verb -> (arguments that it needs, arguments that it may have)
VERBS: Mapping[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "hold": (("scope", "why"), ("for_s",)),
    "release": (("scope",), ()),
    "approve": (("id",), ()),
    "deny": (("id",), ("why",)),
    "ack": (("id",), ()),
    "close": (("id",), ("why",)),
    "mode": (("runbook", "mode"), ("nodes",)),
    "return": (("node",), ()),
    "start": (("runbook",), ("node", "fabric", "why")),
    "reset": ((), ()),
}


class Wrong(ValueError):
    """The person must say it differently."""


def checked(body: Any) -> tuple[str, dict[str, Scalar], str]:
    """(verb, args, who) of a request; Wrong says what is missing."""
    if not isinstance(body, dict) or not set(body) <= {"verb", "args", "who"}:
        raise Wrong('want {"verb": ..., "args": {...}, "who": ...}')
    verb, args, who = body.get("verb"), body.get("args", {}), body.get("who")
    if not isinstance(who, str) or not who.strip() or len(who) > 100:
        raise Wrong("`who` must be the name of the person who says it")
    if not isinstance(verb, str) or verb not in VERBS:
        raise Wrong(f"no verb {clip(str(verb), 40)!r} (have: {', '.join(VERBS)})")
    needs, may = VERBS[verb]
    if not isinstance(args, dict):
        raise Wrong("`args` must be an object")
    for name in needs:
        if args.get(name) in (None, ""):
            raise Wrong(f"{verb} needs `{name}`")
    for name, value in args.items():
        if name not in needs + may:
            raise Wrong(f"{verb} has no `{clip(name, 40)}` (have: {', '.join(needs + may)})")
        if name == "for_s":
            if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 < value < 1e9:
                raise Wrong("`for_s` must be a number of seconds above 0")
        elif not isinstance(value, str) or len(value) > MAX_TEXT:
            raise Wrong(f"`{name}` must be a text of at most {MAX_TEXT} characters")
    if verb == "mode" and args["mode"] not in [mode.value for mode in Mode]:
        raise Wrong(f"`mode` must be one of {', '.join(mode.value for mode in Mode)}")
    return verb, dict(args), who.strip()
