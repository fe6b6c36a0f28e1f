"""Commands to nodes and their replies. There is no free shell command, ever.

On the wire a command is an envelope `{"payload": <JSON text>, "key": <key id>, "sig": <base64>}`. The signature is
Ed25519 over the payload's exact bytes, so no canonical form is needed. A command expires by the node's own monotonic clock
(`session`, `not_after_s`), which the brain learns from heartbeats: wall clocks decide nothing.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from agent.contract.actions import ACTIONS
from agent.contract.actions.spec import ActionSpec
from agent.contract.errors import ContractError
from agent.contract.messages import Scalar

MAX_ID = 200  # characters of a command's id
MAX_NUMBER = 2**53  # of a parameter: a larger one is exact in no other program
MAX_PARAM = 1024  # characters of a parameter: the node writes both into its journal before it looks at them


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """One command to one node."""

    # The step's id; a node runs one id only once, ever.
    id: str
    node: str
    action: str
    params: Mapping[str, Scalar]
    # The leader's; a node refuses one that is older than it has seen.
    epoch: int
    # The run of the agent that it is meant for; empty: any (only with `plan`).
    session: str
    # By the node's monotonic clock; later it is not begun.
    not_after_s: float
    # How long it may take once it has begun.
    timeout_s: float
    # Incident and rule, for the node's own log.
    why: str
    # Reply with what would be done, and do nothing.
    plan: bool = False
    # Id of a running command of the same action, which is cancelled; nothing else is done.
    cancels: str = ""
    # Whose step it is, for the node's own log; older brains do not say.
    incident: str = ""
    run: str = ""

    def payload(self) -> bytes:
        """The bytes that are signed and sent.

        A cancellation is sent as a plan too, so that an older agent, which does not know `cancels`, does nothing.
        """
        return json.dumps(
            {name: getattr(self, name) for name in self.__slots__}
            | {"params": dict(self.params), "plan": self.plan or bool(self.cancels)},
            separators=(",", ":"),
        ).encode()


class Answer(StrEnum):
    """A node's immediate answer to a command; the result follows as an event `command.result`."""

    ACCEPTED = "accepted"  # it is in the journal and begins now
    KNOWN = "known"  # this id was accepted before; its result was sent or will be
    REFUSED = "refused"  # not signed, expired, older epoch, not on the allow-list, bad parameters


class Outcome(StrEnum):
    """How a command ended."""

    OK = "ok"  # done, by what the action can tell; the verification decides
    FAILED = "failed"  # it ran and did not achieve what it should
    REFUSED = "refused"  # not begun, and a retry would not help: next rung
    UNREACHABLE = "unreachable"  # the counterpart could not be reached; nothing was done
    UNKNOWN = "unknown"  # it may or may not have been done: the repeat class decides


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """A node's answer to a command."""

    answer: Answer
    why: str = ""
    session: str = ""
    boot: str = ""
    mono_s: float = 0.0
    # For a plan: what would be done, one line per step.
    plan: list[str] = field(default_factory=list)


def decode_command(payload: bytes) -> Command:
    """Decodes the signed bytes; ContractError when they do not fit."""
    try:
        raw = json.loads(payload)
        # Older brains do not send these.
        cancels, incident, run = (
            _want(raw, name, str) if name in raw else "" for name in ("cancels", "incident", "run")
        )
        params = _want(raw, "params", dict)
        if cancels:
            check_action(_want(raw, "action", str))
        else:
            params = check_params(_want(raw, "action", str), params)
        if len(_want(raw, "id", str)) > MAX_ID:
            raise ContractError(f"a command's id has at most {MAX_ID} characters")
        return Command(
            id=_want(raw, "id", str),
            node=_want(raw, "node", str),
            action=_want(raw, "action", str),
            params=params,
            epoch=_want(raw, "epoch", int),
            session=_want(raw, "session", str),
            not_after_s=float(_want(raw, "not_after_s", (int, float))),
            timeout_s=float(_want(raw, "timeout_s", (int, float))),
            why=_want(raw, "why", str),
            plan=_want(raw, "plan", bool),
            cancels=cancels,
            incident=incident,
            run=run,
        )
    except (ValueError, TypeError, AttributeError, OverflowError, RecursionError) as error:
        raise ContractError(f"not a command: {str(error)[:120]}") from error


def check_action(action: str, actions: Mapping[str, ActionSpec] = ACTIONS) -> ActionSpec:
    """The action's declaration, else ContractError."""
    spec = actions.get(action)
    if spec is None:
        raise ContractError(f"unknown action {action[:60]!r} (have: {', '.join(actions)})")
    return spec


def check_params(
    action: str, params: Mapping[str, Any], actions: Mapping[str, ActionSpec] = ACTIONS
) -> dict[str, Scalar]:
    """`params` if they fit the action's declaration, else ContractError."""
    spec = check_action(action, actions)
    known = {param.name: param for param in spec.params}
    for name in params:
        if name not in known:
            raise ContractError(
                f"{action} has no parameter {name[:40]!r} (have: {', '.join(known) or 'none'})"
            )
    for param in spec.params:
        value = params.get(param.name)
        if value is None:
            if param.required:
                raise ContractError(f"{action} needs {param.name}: {param.summary}")
            continue
        fits = {
            "int": isinstance(value, int) and not isinstance(value, bool),
            "float": isinstance(value, (int, float)) and not isinstance(value, bool),
            "bool": isinstance(value, bool),
        }.get(param.type, isinstance(value, str))
        if not fits:
            raise ContractError(f"{action}: {param.name} must be {param.type} ({param.summary})")
        if (isinstance(value, str) and len(value) > MAX_PARAM) or (
            isinstance(value, int) and abs(value) > MAX_NUMBER
        ):
            raise ContractError(f"{action}: {param.name} is longer than anything that it can name")
    return dict(params)


def encode_reply(reply: Reply) -> dict[str, Any]:
    """A JSON-ready dict."""
    return {
        "answer": reply.answer.value,
        "why": reply.why,
        "session": reply.session,
        "boot": reply.boot,
        "mono_s": reply.mono_s,
        "plan": reply.plan,
    }


def decode_reply(raw: Any) -> Reply:
    """Decodes a reply; ContractError when it does not fit."""
    try:
        return Reply(
            answer=Answer(raw["answer"]),
            why=_want(raw, "why", str),
            session=_want(raw, "session", str),
            boot=_want(raw, "boot", str),
            mono_s=float(_want(raw, "mono_s", (int, float))),
            plan=_lines(_want(raw, "plan", list)),
        )
    except (ValueError, TypeError, KeyError, AttributeError, OverflowError) as error:
        raise ContractError(f"not a reply to a command: {str(error)[:120]}") from error


def _lines(found: list[Any]) -> list[str]:
    """What they are is not asked of them: the text of a list that is deep enough breaks whoever makes it."""
    if not all(isinstance(line, str) for line in found):
        raise ValueError("plan has what is no line")
    return found


def _want(raw: Any, key: str, kind: type | tuple[type, ...]) -> Any:
    value = raw.get(key)
    if not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
        raise ValueError(f"{key} is missing or of the wrong type")
    return value
