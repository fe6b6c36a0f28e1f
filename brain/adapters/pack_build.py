"""What the files of rules, runbooks and the topology hold: read, put together, and proved on the rules' own examples.

`python -m brain.adapters.pack_build` does so in a process of its own (brain/adapters/pack_process.py): it takes a `Wanted` on
stdin and writes a `Build` on stdout, both as JSON. It ends when its parent does.
"""

import ctypes
import gc
import os
import signal
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from pydantic import TypeAdapter

from agent.contract.actions.spec import ActionSpec
from agent.contract.errors import GpuwardError
from brain.adapters import pack as packs
from brain.core.pack.actions import ACTIONS
from brain.core.pack.spec import Pack, Settings
from brain.core.rehearsal import proof
from brain.topology.places_file import read_places

_PR_SET_PDEATHSIG = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """Which files are to be read, and the site's settings, which become part of the pack."""

    rules_dir: Path
    runbooks_dir: Path
    # None: nothing is known of where nodes are
    topology: Path | None
    settings: Settings


@dataclass(frozen=True, slots=True, kw_only=True)
class Build:
    """What the files hold at one moment."""

    # None: the files cannot be used
    pack: Pack | None = None
    errors: tuple[str, ...] = ()
    # Old names, which are still read; one line each
    warnings: tuple[str, ...] = ()
    # (`rules`, `runbooks` or `symptoms`, name, `<file>:<line>`)
    sources: tuple[tuple[str, str, str], ...] = ()


_WANTED, _BUILD = TypeAdapter(Wanted), TypeAdapter(Build)


def build(wanted: Wanted, actions: Mapping[str, ActionSpec] = ACTIONS) -> Build:
    """Returns the pack of the files as they are now, or what is wrong with them. It takes a second, or longer."""
    try:
        sources = packs.scan(wanted.rules_dir, wanted.runbooks_dir)
        places = read_places(wanted.topology) if wanted.topology else {}
        pack = packs.assemble(sources, wanted.settings, places)
        errors = proof.failures(pack, actions)
    except GpuwardError as error:  # a pack that breaks the engine in its examples is refused as well
        return Build(errors=tuple(str(error).splitlines()) or (type(error).__name__,))
    except (OSError, ValueError, RecursionError) as error:  # whatever a file holds, the brain goes on
        text = " ".join(str(error).split())[:300]
        return Build(errors=(f"the rules cannot be read: {type(error).__name__}: {text}",))
    if errors:
        return Build(errors=tuple(errors))
    return Build(
        pack=pack,
        warnings=tuple(map(str, sources.warnings)),
        sources=tuple(
            (*key, f"{document.file}:{document.line(base)}")
            for key, (document, base) in sources.origins.items()
        ),
    )


def question(wanted: Wanted) -> bytes:
    """What a process of its own is asked."""
    return _WANTED.dump_json(wanted)


def asked(body: bytes) -> Wanted:
    """Returns what a process of its own is asked. ValueError: nothing."""
    return _WANTED.validate_json(body, strict=True)


def answered(answer: bytes) -> Build:
    """Returns its answer. ValueError: it is none."""
    return _BUILD.validate_json(answer, strict=True)


def main() -> None:
    """Answers one question."""
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)  # whoever asked is gone: nobody needs it
    gc.disable()  # it ends before there is anything worth collecting
    with os.fdopen(os.dup(1), "wb") as answer:
        os.dup2(2, 1)  # whatever a library prints is no part of the answer
        answer.write(_BUILD.dump_json(build(asked(sys.stdin.buffer.read()))))


if __name__ == "__main__":
    main()
