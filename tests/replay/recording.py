"""Recorded logs of the engine and what it made of them, as plain data: inputs in, effects and snapshots out.

Inputs are kept as the messages that stand on the log, so that a recording also shows that old logs can still be read.
A file holds the recordings of one group (`drills`, `stories`, `examples`, `random`), compressed.
"""

import dataclasses
import functools
import lzma
from collections.abc import Iterable, Mapping
from enum import Enum
from pathlib import Path
from typing import Any

import orjson

from brain.adapters import pack as packs
from brain.adapters.codec import Codec, encode_event_body
from brain.adapters.snapshot import dump
from brain.core.engine import Engine
from brain.core.inputs import EventSeen, Input, PackLoaded
from brain.core.pack.actions import ACTIONS
from brain.core.pack.compiled import Compiled, CompiledCache
from brain.core.pack.rulebook import MATCHER, Matcher
from brain.core.pack.spec import Pack
from tests.replay import words

FOLDER = Path(__file__).resolve().parents[1] / "fixtures" / "replay"
CELL = "replay"
_SCALARS = frozenset({str, int, float, bool, type(None)})
_codec = Codec(CELL)

Plain = dict[str, Any]


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Recording:
    """One engine's log, and what came of it."""

    name: str
    observe_all: bool
    log: list[list[Any]]  # [subject after the cell, body, now]; a pack's body is {"id", "pack": <digest>}
    effects: list[list[Plain]]  # of each input
    snapshots: dict[str, Plain]  # number of inputs handled -> state


def message(given: Input, now: float, known: dict[str, Plain]) -> list[Any]:
    """An input as it stands on the log; packs go to `known`, by version and content."""
    if isinstance(given, EventSeen):
        return [f"event.{given.event.node}", orjson.loads(encode_event_body(given)), now]
    if isinstance(given, PackLoaded):
        body = orjson.loads(orjson.dumps(packs.dump(given.pack)))
        name = next(
            (name for name, have in known.items() if have == body), f"{given.pack.version}/{len(known)}"
        )
        known[name] = body
        return ["input.pack", {"id": given.id, "pack": name}, now]
    what, encoded = _codec.encode(given)
    return [f"input.{what}", orjson.loads(encoded), now]


class Player:
    """Plays logs; each pack is parsed and compiled once. `close` frees them."""

    def __init__(self, known: Mapping[str, Plain], *, matcher: Matcher = MATCHER) -> None:
        self._known = known
        self._matcher = matcher
        self._parsed: dict[str, Pack] = {}
        # id of a pack object -> its cache: packs of different tests may have the same version
        self._caches: dict[int, CompiledCache] = {}

    def close(self) -> None:
        """Frees the matchers."""
        for cache in self._caches.values():
            cache.close()

    def _compiled(self, pack: Pack) -> Compiled:
        return self._caches.setdefault(id(pack), CompiledCache(matcher=self._matcher))(pack)

    def _inputs(self, log: list[list[Any]]) -> Iterable[tuple[Input, float]]:
        for seq, (subject, body, now) in enumerate(log):
            if subject == "input.pack":
                name = body["pack"]
                if name not in self._parsed:
                    self._parsed[name] = packs.parse(self._known[name])
                yield PackLoaded(id=body["id"], pack=self._parsed[name]), now
            else:
                # A node's own events have kinds of the brain's only in tests: no codec translates those.
                body = words.today(body) if subject.startswith("event.") else body
                yield _codec.decode(f"ward.{CELL}.{subject}", orjson.dumps(body), seq), now

    def play(self, name: str, log: list[list[Any]], *, observe_all: bool) -> Recording:
        """What an engine makes of a log now."""
        return _played(
            Engine(actions=ACTIONS, observe_all=observe_all, compile_pack=self._compiled),
            self._inputs(log),
            name,
            log,
            observe_all=observe_all,
        )


def _played(
    engine: Engine,
    inputs: Iterable[tuple[Input, float]],
    name: str,
    log: list[list[Any]],
    *,
    observe_all: bool,
) -> Recording:
    effects: list[list[Plain]] = []
    snapshots: dict[str, Plain] = {}
    shown: dict[str, Plain] = {}
    looks = {len(log) // 3, 2 * len(log) // 3, len(log)}
    for number, (given, now) in enumerate(inputs, 1):
        effects.append([_effect(effect, shown) for effect in engine.handle(given, now)])
        if number in looks:
            snapshots[str(number)] = orjson.loads(dump(dataclasses.replace(engine.state, pack=None)))
    engine.close()
    return Recording(name=name, observe_all=observe_all, log=log, effects=effects, snapshots=snapshots)


def _effect(effect: Any, shown: dict[str, Plain]) -> Plain:
    """An effect by content; of an incident or run that was shown before, what changed."""
    what = type(effect).__name__
    plain: Plain = _plain(effect)
    if what not in ("ShowIncident", "ShowRun"):
        return {"effect": what} | plain
    (body,) = plain.values()
    before = shown.get(body["id"], {})
    shown[body["id"]] = body
    return {"effect": what, "id": body["id"]} | {
        name: value for name, value in body.items() if before.get(name) != value
    }


def _plain(value: Any) -> Any:
    kind = type(value)
    if kind in _SCALARS:
        return value
    if isinstance(value, Enum):
        return value.value
    if dataclasses.is_dataclass(kind):
        return {name: _plain(getattr(value, name)) for name in _fields(kind)}
    if isinstance(value, Mapping):
        return {str(key): _plain(entry) for key, entry in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(entry) for entry in value]
    return value


@functools.cache
def _fields(kind: type[Any]) -> tuple[str, ...]:
    return tuple(field.name for field in dataclasses.fields(kind))


def save(group: str, found: Iterable[Recording], known: Mapping[str, Plain]) -> None:
    """Writes a group."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    used = {body["pack"] for one in found for subject, body, _ in one.log if subject == "input.pack"}
    body = {
        "packs": {name: pack for name, pack in known.items() if name in used},
        "recordings": [dataclasses.asdict(one) for one in found],
    }
    (FOLDER / f"{group}.json.xz").write_bytes(lzma.compress(orjson.dumps(body), preset=9))


def load(group: str) -> tuple[list[Recording], dict[str, Plain]]:
    """What `save` wrote."""
    body = orjson.loads(lzma.decompress((FOLDER / f"{group}.json.xz").read_bytes()))
    return [Recording(**one) for one in body["recordings"]], body["packs"]
