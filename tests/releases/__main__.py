"""Command line: `python -m tests.releases` keeps the present version for ever. Once, when it is released."""

import io
import lzma
import subprocess
import sys
import tarfile
from dataclasses import dataclass, field

import orjson

from agent import __version__
from agent.contract import subjects
from brain.adapters.codec import Codec, encode_event_body
from brain.adapters.snapshot import dump, packed
from brain.core.effects import Effect
from brain.core.inputs import EventSeen, Input
from brain.core.pack.compiled import CompiledCache
from tests.laws.cell import Cell
from tests.laws.play import MOVES
from tests.laws.story import Teller
from tests.releases.kit import CELL, FOLDER, KEPT, summary

STORIES = 300  # of which those are kept whose state has the most in it
STATES = 5
SOURCES = ("agent", "brain", "rules", "runbooks", "simulations", "pyproject.toml", "LICENSE")


@dataclass(slots=True, kw_only=True)
class Moment:
    """The fullest moment of a story."""

    seed: int
    full: int = 0
    at: int = 0  # inputs before it
    state: bytes = b""
    summary: dict[str, object] = field(default_factory=dict)
    log: list[tuple[Input, float]] = field(default_factory=list)


def told(seed: int, cache: CompiledCache) -> Moment:
    """A story, and the moment in which most is open, held and drained."""
    found = Moment(seed=seed)

    def see(_: Cell, given: Input, now: float, effects: list[Effect]) -> None:
        found.log.append((given, now))
        state = teller.engine.state
        full = 5 * len(state.drains) + 5 * len(state.holds) + 3 * len(state.runs) + len(state.incidents)
        if full > found.full and state.holds and state.drains and not effects:
            found.full, found.at, found.state = full, len(found.log), dump(state)
            found.summary = summary(state)

    teller = Teller(seed, MOVES, cache, see)
    teller.play()
    return found


def encoded(given: Input) -> tuple[str, str]:
    """(subject, body) on the log."""
    if isinstance(given, EventSeen):
        return subjects.event(CELL, given.event.node), encode_event_body(given).decode()
    what, body = Codec(CELL).encode(given)
    return subjects.brain_input(CELL, what), body.decode()


def source() -> bytes:
    """The code of the last commit."""
    packed = subprocess.run(
        ["git", "archive", "--format=tar", "HEAD", *SOURCES], capture_output=True, check=True
    ).stdout
    with tarfile.open(fileobj=io.BytesIO(packed)) as archive:
        assert archive.getmember("agent/__init__.py")
    return lzma.compress(packed, preset=9 | lzma.PRESET_EXTREME)


def main() -> int:
    """Entry point; 1 when this version is kept already."""
    folder = FOLDER / __version__
    if folder.exists():
        print(f"{folder} is there: what was released stays as it is", file=sys.stderr)
        return 1
    cache = CompiledCache()
    stories = sorted((told(seed, cache) for seed in range(1, STORIES + 1)), key=lambda one: -one.full)
    folder.mkdir(parents=True)
    (folder / "source.tar.xz").write_bytes(source())
    for one in stories[:STATES]:
        content = {
            "snapshot": packed(one.state, one.at, KEPT).decode(),
            "summary": one.summary,
            "log": [[now, *encoded(given)] for given, now in one.log[one.at :]],
            "before": [[now, *encoded(given)] for given, now in one.log[: one.at]],
        }
        (folder / f"{one.seed}.json.xz").write_bytes(lzma.compress(orjson.dumps(content), preset=9))
        print(f"story {one.seed}: {one.at} of {len(one.log)} inputs, {one.summary}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
