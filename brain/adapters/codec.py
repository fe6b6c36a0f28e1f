"""Messages of the log ↔ inputs of the engine. Whatever cannot be read becomes `Malformed`: counted, never a
crash.

| subject | body |
|---|---|
| `ward.<cell>.event.<node>` | an event (agent.contract.messages) |
| `ward.<cell>.input.<what>` | `{"v": 1, <the input's fields>}` |
| `ward.<cell>.input.pack` | `{"v": 1, "id": ..., "zlib": <base64>}`, for a pack with a large topology is large |
"""

import base64
import zlib
from collections.abc import Mapping
from typing import Any

import orjson
from pydantic import TypeAdapter, ValidationError

from agent.contract import subjects
from agent.contract.errors import ConfigError, ContractError
from agent.contract.messages import clip, decode_event, encode_event
from brain.adapters import pack as packs
from brain.core.inputs import (
    Delivery,
    EventSeen,
    Input,
    Intent,
    JobsTold,
    Leader,
    Malformed,
    NodeState,
    PackLoaded,
    Reported,
    Said,
    StepPlan,
    StepProgress,
    StepResult,
    TimerFired,
)

VERSION = 1
MAX_EVENT = 65_536  # bytes of one event; an agent's own limits keep it far below
MAX_PACK = 64 * 1024 * 1024  # bytes of an unpacked pack

# One line for each input that brains and people put on the log: (its token in the subject, its type).
PLAIN: dict[str, type] = {
    "timer": TimerFired,
    "intent": Intent,
    "result": StepResult,
    "progress": StepProgress,
    "plan": StepPlan,
    "report": Reported,
    "jobs": JobsTold,
    "said": Said,
    "node": NodeState,
    "leader": Leader,
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
    """Reads and writes the messages of one cell."""

    def __init__(self, cell: str) -> None:
        self._event = subjects.event(cell, "")
        self._input = subjects.brain_input(cell, "")

    def decode(self, subject: str, body: bytes, seq: int) -> Input:
        """The input in a message; `seq` is its place on the log.

        Never raises for what stands in the message.
        """
        node = ""
        try:
            if subject.startswith(self._event):
                node = subjects.token(subject[len(self._event) :], "node in the subject")
                return _event(body, node)
            if subject.startswith(self._input):
                return _read(subject[len(self._input) :], body)
            raise ContractError("not a subject of the log")
        except _WRONG as error:
            return malformed(subject, node, _why(error), seq)

    def encode(self, given: Input) -> tuple[str, bytes]:
        """(token of the subject, body) of an input that brains and people put on the log."""
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


def encode_event_body(given: EventSeen) -> bytes:
    """The body that a node would publish."""
    return orjson.dumps(encode_event(given.event))


def malformed(subject: str, node: str, why: str, seq: int) -> Malformed:
    """The input that stands for a message which could not be read."""
    return Malformed(id=f"m:{seq}", subject=clip(subject, 200), node=node, why=clip(why, 300))


def _event(body: bytes, node: str) -> EventSeen:
    if len(body) > MAX_EVENT:
        raise ContractError(f"an event of {len(body)} bytes, more than {MAX_EVENT}")
    return EventSeen(event=decode_event(orjson.loads(body), node))


def _read(what: str, body: bytes) -> Input:
    raw = orjson.loads(body)
    if not isinstance(raw, dict) or raw.pop("v", None) != VERSION:
        raise ContractError(f"not an input of version {VERSION}")
    given: Input
    if what == PACK:
        given = PackLoaded(id=raw["id"], pack=packs.parse(orjson.loads(_unpacked(raw["zlib"]))))
    elif (adapter := _ADAPTERS.get(what)) is not None:
        given = adapter.validate_python(raw)
    else:
        raise ContractError(f"no input is called {what[:40]!r} (have: {', '.join([*PLAIN, PACK])})")
    if not isinstance(given.id, str) or not given.id:
        raise ContractError("an input needs an id")
    return given


def _unpacked(text: str) -> bytes:
    """Decompressed, with a limit: a few bytes must not become gigabytes."""
    inflate = zlib.decompressobj()
    plain = inflate.decompress(base64.b64decode(text, validate=True), MAX_PACK)
    if inflate.unconsumed_tail or not inflate.eof:
        raise ContractError(f"more than {MAX_PACK} bytes, or cut short")
    return plain


def _why(error: Exception) -> str:
    if isinstance(error, ValidationError):
        first = error.errors(include_url=False, include_input=False)[0]
        return f"{'.'.join(str(part) for part in first['loc'])}: {first['msg']}"
    return str(error) or type(error).__name__
