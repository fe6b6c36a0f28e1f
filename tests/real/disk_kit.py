"""A small disk of its own, and what fills it. As root."""

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

DISK_MB = 96


@contextmanager
def small_disk(folder: Path) -> Iterator[Path]:
    """A disk of its own."""
    folder.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={DISK_MB}m", "tmpfs", str(folder)], check=True)
    try:
        yield folder
    finally:
        subprocess.run(["umount", "-l", str(folder)], check=True)


def fill(folder: Path) -> Path:
    """Writes until nothing more fits; the file that has it all."""
    ballast = folder / "ballast"
    with ballast.open("wb", buffering=0) as sink:
        try:
            while True:
                sink.write(b"\0" * 4096)
        except OSError:
            return ballast
