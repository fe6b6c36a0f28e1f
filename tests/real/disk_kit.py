"""A small disk of its own, and what fills it. As root."""

import fcntl
import os
import shutil
import signal
import struct
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

DISK_MB = 96
NR_INODES = 2000
_SHUTDOWN, _AT_ONCE = 0x8004587D, 2  # EXT4_IOC_SHUTDOWN; nothing more goes to the disk


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


def out_of_inodes(folder: Path) -> Path:
    """Leaves this disk no inode for another file, though there are bytes; the folder of those that took them."""
    taken = folder / "taken"
    taken.mkdir()
    subprocess.run(["mount", "-o", f"remount,nr_inodes={NR_INODES}", str(folder)], check=True)
    try:
        for number in range(NR_INODES):
            (taken / str(number)).touch()
    except OSError:
        return taken
    raise AssertionError(f"{folder} has more inodes than {NR_INODES}")


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


def shut_down(folder: Path) -> None:
    """From now on this ext4 answers with an I/O error to whatever is asked, as when its disk has been pulled out."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        fcntl.ioctl(handle, _SHUTDOWN, struct.pack("I", _AT_ONCE))
    finally:
        os.close(handle)


def replace_disk(folder: Path) -> None:
    """Another disk with the same content is in its place, as its file system's check leaves it."""
    image = folder.with_name(f"{folder.name}.ext4")
    other = shutil.copy(image, image.with_name(f"{image.name}.other"))
    subprocess.run(["umount", "-l", str(folder)], check=True)
    subprocess.run(["e2fsck", "-f", "-y", str(other)], check=False, capture_output=True)
    subprocess.run(["mount", "-o", "loop", str(other), str(folder)], check=True)


class FileServer:
    """Serves a folder by FUSE. While it hangs, whatever asks for a file there waits for ever, `stat` and `open` too."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self._process = process

    @contextmanager
    def hanging(self) -> Iterator[None]:
        """Nothing there returns meanwhile."""
        self._process.send_signal(signal.SIGSTOP)
        try:
            yield
        finally:
            self._process.send_signal(signal.SIGCONT)


@contextmanager
def file_server(folder: Path) -> Iterator[FileServer]:
    """The folder is one of a file server's; what is in it lies beside it. The kernel keeps nothing of it in memory."""
    behind = folder.with_name(f"{folder.name}.behind")
    for one in (folder, behind):
        one.mkdir(exist_ok=True)
    remembers_nothing = "attr_timeout=0,entry_timeout=0,negative_timeout=0"
    argv = ["bindfs", "-f", "-o", remembers_nothing, str(behind), str(folder)]
    with subprocess.Popen(argv) as process:
        try:
            deadline_s = time.monotonic() + 30
            while not folder.is_mount():
                assert process.poll() is None, f"{' '.join(argv)} has ended"
                assert time.monotonic() < deadline_s, "bindfs serves the folder"
                time.sleep(0.02)  # before it looks again, until the deadline
            yield FileServer(process)
        finally:
            subprocess.run(["umount", "-l", str(folder)], check=True)
            process.kill()
