"""Commands: what a node can be told, and the table of actions. There is no free shell command, ever.

On the wire a command is an envelope `{"payload": <JSON text>, "key": <key id>, "sig": <base64>}`; the signature is
Ed25519 over the payload's exact bytes, so nothing has to be written in a canonical form. A command expires by the
node's own monotonic clock (`session`, `not_after_s`), learned from its beats: wall clocks do not decide.
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """One order to one node."""

    id: str  # = the step's id; a node runs one id once, ever
    node: str
    action: str
    params: Mapping[str, Scalar]
    epoch: int  # the leader's; a node refuses an older one than it has seen
    session: str  # the agent run that it is meant for; empty: any (only for `plan`)
    not_after_s: float  # the node's monotonic clock after which it is not begun
    timeout_s: float  # how long it may take once begun
    why: str  # incident and rule, for the node's own log
    plan: bool = False  # say what would be done, do nothing
    cancels: str = ""  # id of a command of the same action that is to end now; nothing else is done

    def payload(self) -> bytes:
        """The bytes that are signed and sent.

        A cancellation goes as a plan too: an agent of an older version, which does not know `cancels`, does nothing.
        """
        return json.dumps(
            {name: getattr(self, name) for name in self.__slots__}
            | {"params": dict(self.params), "plan": self.plan or bool(self.cancels)},
            separators=(",", ":"),
        ).encode()


class Answer(StrEnum):
    """How a node answers a command at once; the result follows as an event `command.result`."""

    ACCEPTED = "accepted"  # in the journal, begins now
    KNOWN = "known"  # this id was accepted before; its result was or will be sent (again)
    REFUSED = "refused"  # not signed, expired, older epoch, not on the allow-list, bad parameters


class Outcome(StrEnum):
    """How a step ended."""

    OK = "ok"  # done, as far as the action can tell; verification decides
    FAILED = "failed"  # ran and did not reach its aim
    REFUSED = "refused"  # not begun: next rung, no retry
    UNREACHABLE = "unreachable"  # could not be asked; nothing was done
    UNKNOWN = "unknown"  # nobody knows whether it was done: the repeat class decides


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """A node's answer to a command."""

    answer: Answer
    why: str = ""
    session: str = ""
    boot: str = ""
    mono_s: float = 0.0
    plan: list[str] = field(default_factory=list)  # for plan=True: what would be done, one line a step


def decode_command(payload: bytes) -> Command:
    """The command in signed bytes; ContractError when it does not fit."""
    try:
        raw = json.loads(payload)
        cancels = _want(raw, "cancels", str) if "cancels" in raw else ""  # older brains do not say it
        params = _want(raw, "params", dict)
        if cancels:
            check_action(_want(raw, "action", str))
        else:
            params = check_params(_want(raw, "action", str), params)
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
        )
    except (ValueError, TypeError, AttributeError, RecursionError) as error:
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
    """`params` if they fit the action's table, else ContractError."""
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
    """The reply that `raw` says; ContractError when it does not fit."""
    try:
        return Reply(
            answer=Answer(raw["answer"]),
            why=_want(raw, "why", str),
            session=_want(raw, "session", str),
            boot=_want(raw, "boot", str),
            mono_s=float(_want(raw, "mono_s", (int, float))),
            plan=[str(line) for line in _want(raw, "plan", list)],
        )
    except (ValueError, TypeError, KeyError) as error:
        raise ContractError(f"not a reply to a command: {str(error)[:120]}") from error


def _want(raw: Any, key: str, kind: type | tuple[type, ...]) -> Any:
    value = raw.get(key)
    if not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
        raise ValueError(f"{key} is missing or of the wrong type")
    return value
