"""Messages of the log ↔ inputs of the engine. A message that cannot be decoded becomes `Malformed`: it is counted and
never crashes the brain.

| subject | body |
|---|---|
| `ward.<cell>.event.<node>` | an event (agent.contract.messages) |
| `ward.<cell>.input.<what>` | `{"v": 1, <the input's fields>}` |
| `ward.<cell>.input.pack` | `{"v": 1, "id": ..., "zlib": <base64>}`: compressed, since a topology can be large |
"""

import base64
import zlib
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

import orjson
from pydantic import TypeAdapter, ValidationError

from agent.contract import subjects
from agent.contract.errors import ConfigError, ContractError
from agent.contract.messages import MAX_EVENT_BYTES, Event, clip, decode_event, encode_event
from brain import renamed
from brain.adapters import pack as packs
from brain.core.inputs import (
    Delivery,
    EventSeen,
    Input,
    Intent,
    JobsAnswer,
    Leader,
    Malformed,
    NodeState,
    OperatorCommand,
    PackLoaded,
    Pulse,
    Reported,
    StepPlan,
    StepProgress,
    StepResult,
    TimerFired,
)
from brain.core.state import State

VERSION = 1
EARLY_S = 1.0  # a timer counts as due up to so long before its due time: clocks differ
MAX_SUBJECTS = 16_384  # whose nodes are remembered
MAX_PACK = 64 * 1024 * 1024  # bytes of an unpacked pack

# One line for each input that brains and operators publish: its token in the subject, and its type.
PLAIN: dict[str, type] = {
    "timer": TimerFired,
    "intent": Intent,
    "result": StepResult,
    "progress": StepProgress,
    "plan": StepPlan,
    "report": Reported,
    "jobs": JobsAnswer,
    "operator": OperatorCommand,
    "node": NodeState,
    "leader": Leader,
    "pulse": Pulse,
    "delivery": Delivery,
    "malformed": Malformed,
}
PACK = "pack"
_WHAT: dict[type, str] = {kind: what for what, kind in PLAIN.items()}
_ADAPTERS: dict[str, TypeAdapter[Any]] = {what: TypeAdapter(kind) for what, kind in PLAIN.items()}
_WRONG = (
    ContractError,
    ConfigError,
    ValidationError,
    ValueError,
    TypeError,
    KeyError,
    zlib.error,
    RecursionError,
)


class Codec:
    """Decodes and encodes the messages of one cell."""

    def __init__(self, cell: str) -> None:
        self._event = subjects.event(cell, "")
        self._input = subjects.brain_input(cell, "")
        self._node_of = lru_cache(MAX_SUBJECTS)(
            self._node_in
        )  # a node's events come thousands of times on one subject

    def decode(self, subject: str, body: bytes, seq: int) -> Input:
        """Returns the input in a message; `seq` is its position on the log.

        Never raises because of the message's content.
        """
        node = ""
        try:
            if node := self._node_of(subject):
                return EventSeen(event=read_event(body, node))
            if subject.startswith(self._input):
                return _read(subject[len(self._input) :], body)
            raise ContractError("not a subject of the log")
        except _WRONG as error:
            return malformed(subject, node, _why(error), seq)

    def _node_in(self, subject: str) -> str:
        """The node whose events stand on this subject; empty: it is another subject. ConfigError: no node can have this name."""
        if not subject.startswith(self._event):
            return ""
        return subjects.token(subject[len(self._event) :], "node in the subject")

    def encode(self, given: Input) -> tuple[str, bytes]:
        """Returns (token of the subject, body) of an input that a brain or an operator publishes."""
        if isinstance(given, PackLoaded):
            packed = base64.b64encode(zlib.compress(orjson.dumps(packs.dump(given.pack)), 6))
            return PACK, orjson.dumps({"v": VERSION, "id": given.id, "zlib": packed.decode()})
        if isinstance(given, EventSeen):
            raise TypeError("events are published by nodes, not by brains")
        fields = {name: getattr(given, name) for name in type(given).__dataclass_fields__}
        for name, value in fields.items():
            if isinstance(value, Mapping):
                fields[name] = dict(value)
        return _WHAT[type(given)], orjson.dumps({"v": VERSION} | fields)


def read_event(body: bytes, node: str) -> Event:
    """Returns the event that a node has offered; ContractError when it cannot be read."""
    if len(body) > MAX_EVENT_BYTES:
        raise ContractError(f"an event of {len(body)} bytes, more than {MAX_EVENT_BYTES}")
    try:
        return decode_event(orjson.loads(body), node)
    except _WRONG as error:
        raise ContractError(_why(error)) from error


def encode_event_body(given: EventSeen) -> bytes:
    """Returns the body that a node would publish."""
    return orjson.dumps(encode_event(given.event))


def malformed(subject: str, node: str, why: str, seq: int) -> Malformed:
    """Returns the input that stands in for a message that cannot be decoded."""
    return Malformed(id=f"m:{seq}", subject=clip(subject, 200), node=node, why=clip(why, 300))


def handled_at(given: Input, stamp: float, state: State) -> float:
    """The timestamp with which the engine, in this state, handles an input that the server stored at `stamp` (s since 1970)."""
    if isinstance(given, TimerFired):
        return stamp + min(max(0.0, given.due - state.time_at(stamp)), EARLY_S)
    return stamp


def _read(what: str, body: bytes) -> Input:
    raw = orjson.loads(body)
    if not isinstance(raw, dict) or raw.pop("v", None) != VERSION:
        raise ContractError(f"not an input of version {VERSION}")
    what = renamed.rename_in_message(what, raw)
    given: Input
    if what == PACK:
        given = PackLoaded(id=raw["id"], pack=packs.parse(orjson.loads(_unpacked(raw["zlib"]))))
    elif (adapter := _ADAPTERS.get(what)) is not None:
        given = adapter.validate_python(raw)
    else:
        raise ContractError(f"there is no input {what[:40]!r} (have: {', '.join([*PLAIN, PACK])})")
    if not isinstance(given.id, str) or not given.id:
        raise ContractError("an input needs an id")
    return given


def _unpacked(text: str) -> bytes:
    """Decompresses with a limit: a few bytes must not become gigabytes."""
    inflate = zlib.decompressobj()
    plain = inflate.decompress(base64.b64decode(text, validate=True), MAX_PACK)
    if inflate.unconsumed_tail or not inflate.eof:
        raise ContractError(f"more than {MAX_PACK} bytes, or truncated")
    return plain


def _why(error: Exception) -> str:
    if isinstance(error, ValidationError):
        first = error.errors(include_url=False, include_input=False)[0]
        return f"{'.'.join(str(part) for part in first['loc'])}: {first['msg']}"
    return str(error) or type(error).__name__
