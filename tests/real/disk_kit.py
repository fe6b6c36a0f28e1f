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


@contextmanager
def looped_disk(folder: Path) -> Iterator[Path]:
    """An ext4 of its own, in a file beside the folder."""
    folder.mkdir()
    image = folder.with_name(f"{folder.name}.ext4")
    with image.open("wb") as sink:
        sink.truncate(DISK_MB * 1024**2)
    subprocess.run(["mkfs.ext4", "-q", str(image)], check=True)
    subprocess.run(["mount", "-o", "loop", str(image), str(folder)], check=True)
    try:
        yield folder
    finally:
        subprocess.run(["umount", "-l", str(folder)], check=True)


@contextmanager
def frozen(folder: Path) -> Iterator[None]:
    """No write to this file system returns meanwhile."""
    subprocess.run(["fsfreeze", "--freeze", str(folder)], check=True)
    try:
        yield
    finally:
        subprocess.run(["fsfreeze", "--unfreeze", str(folder)], check=True)
