"""The token file of whoever started the brain: made anew at each start, readable by its owner only, found by the CLI.

It lies in the brain's data folder and, so that the command line finds it by itself, in a folder of the user. Standard
library only: every command of the command line imports it.
"""

import os
import stat
from pathlib import Path

SYSTEM = (Path("/run/gpuward"), Path("/var/lib/gpuward"))  # of a brain that systemd has started


def name(port: int) -> str:
    """Returns the name of the file; several brains on one machine differ in the port."""
    return f"console-{port}.token"


def of_user() -> Path | None:
    """Returns the folder of this user; None: there is no place for one."""
    runtime = os.environ.get("XDG_RUNTIME_DIR", "")
    if runtime and Path(runtime).is_dir():
        return Path(runtime) / "gpuward"
    try:
        home = Path.home()
    except RuntimeError:
        return None
    return home / ".local" / "state" / "gpuward" if home.is_dir() else None


def found(port: int) -> str:
    """Returns the token for the brain on this port of loopback; empty: there is none that this user may read.

    Of several files the newest: one brain has the port, and those of others that did not end in order may be left.
    """
    own = of_user()
    tokens: list[tuple[float, str]] = []
    for folder in (*([own] if own else []), *SYSTEM):
        file = folder / name(port)
        try:
            tokens.append(_read(file))
        except (OSError, UnicodeDecodeError):
            continue
    return max(tokens, default=(0.0, ""))[1]


def _read(file: Path) -> tuple[float, str]:
    """(when it was written, the token). OSError: there is none. A link there, or a second name, is not the brain's: root would
    send what it leads to to whoever has laid it.
    """
    with os.fdopen(os.open(file, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK), encoding="ascii") as source:
        found = os.fstat(source.fileno())
        if not stat.S_ISREG(found.st_mode) or found.st_nlink != 1:
            raise OSError(f"{file} is no file of a brain's")
        return found.st_mtime, source.read().strip()
