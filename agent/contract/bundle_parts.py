"""The parts of an evidence bundle on its way from a node to the brain, and the brain's answer to each.

A part is a line of JSON, then bytes. The first part says what the bundle is and has no bytes; the others are its chunks, in
order. A node sends the next part when the brain has answered the one before. The word of an answer:

| word | the node |
|---|---|
| kept | sends the next part; after the last one the bundle is in the object store |
| again | begins with the first part: the brain knows nothing of this upload (it was started anew) |
| refused | gives up: the bundle cannot be kept, `why` says it |
"""

import json
from dataclasses import dataclass
from typing import Any

from agent.contract.errors import ContractError

KEPT, AGAIN, REFUSED = "kept", "again", "refused"
MAX_HEAD = 2048  # bytes of the line
_TEXTS = ("command", "file", "digest")
_NUMBERS = ("size", "chunks")


@dataclass(frozen=True, slots=True, kw_only=True)
class Bundle:
    """The first part: what the node is about to send."""

    # The id of the command that made it.
    command: str
    # The name of the file on the node, for people.
    file: str
    # SHA-256 of the whole, as NATS object stores write it: `SHA-256=<base64url>`.
    digest: str
    # Bytes.
    size: int
    chunks: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Chunk:
    """One of the other parts; `number` counts from 0."""

    command: str
    number: int
    content: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class PartAnswer:
    """What the brain says to one part. `number` is the chunk's, -1 for the first part."""

    command: str
    number: int
    word: str
    why: str = ""


def encode_part(part: Bundle | Chunk) -> bytes:
    """The message of one part."""
    if isinstance(part, Chunk):
        return _dump({"command": part.command, "chunk": part.number}) + b"\n" + part.content
    fields = {name: getattr(part, name) for name in (*_TEXTS, *_NUMBERS)}
    return _dump(fields) + b"\n"


def decode_part(message: bytes) -> Bundle | Chunk:
    """The part in a message; ContractError when it does not fit."""
    head, newline, content = message.partition(b"\n")
    raw = _object(head) if newline and len(head) <= MAX_HEAD else {}
    command, number = raw.get("command"), raw.get("chunk")
    if not isinstance(command, str) or not 0 < len(command) <= 200:
        raise ContractError("a part of a bundle names its command")
    if number is not None:
        if type(number) is not int or not 0 <= number < 2**31:
            raise ContractError("chunk must be a whole number, 0 or more")
        return Chunk(command=command, number=number, content=content)
    if not all(isinstance(raw.get(name), str) for name in _TEXTS) or not all(
        type(raw.get(name)) is int and 0 <= raw[name] < 2**53 for name in _NUMBERS
    ):
        raise ContractError("the first part of a bundle needs file, digest, size and chunks")
    return Bundle(**{name: raw[name] for name in (*_TEXTS, *_NUMBERS)})


def encode_part_answer(answer: PartAnswer) -> bytes:
    """The message of an answer."""
    return _dump({"command": answer.command, "chunk": answer.number, "word": answer.word, "why": answer.why})


def decode_part_answer(message: bytes) -> PartAnswer:
    """The answer in a message; ContractError when it does not fit."""
    raw = _object(message)
    command, number, word, why = (raw.get(name) for name in ("command", "chunk", "word", "why"))
    if (
        not isinstance(command, str)
        or type(number) is not int
        or word not in (KEPT, AGAIN, REFUSED)
        or not isinstance(why, str)
    ):
        raise ContractError("not an answer to a part of a bundle")
    return PartAnswer(command=command, number=number, word=str(word), why=why)


def _dump(fields: dict[str, Any]) -> bytes:
    return json.dumps(fields, separators=(",", ":")).encode()


def _object(text: bytes) -> dict[str, Any]:
    try:
        raw = json.loads(text)
        # JSON allows half a character, which no subject and no file can hold.
        json.dumps(raw, ensure_ascii=False).encode()
    except (ValueError, RecursionError) as error:
        raise ContractError(f"not JSON: {error}") from error
    if not isinstance(raw, dict):
        raise ContractError("not an object")
    return raw
