"""Opens files in folders where others write: nothing but a regular file is opened, and no name leads to what is not its owner's.

The agent may read more than the people whose logs it follows. A link that a user makes in his own folder must not make it
read for him what he cannot read himself.
"""

import errno
import os
import stat

_MOST_LINKS = 40  # as the kernel
_WRITABLE_BY_OTHERS = stat.S_IWGRP | stat.S_IWOTH


def open_log(path: str) -> int:
    """A descriptor for reading the regular file at this absolute path.

    PermissionError: a symbolic link on the way belongs neither to root nor to the file's owner, or the file has another name
    too and its folder does not belong to its owner alone. Other OSErrors: it is no regular file (a pipe or device is never
    opened), it is gone, or it cannot be read.
    """
    handle = os.open(path, os.O_PATH | os.O_CLOEXEC)
    try:
        info = os.fstat(handle)
        if not stat.S_ISREG(info.st_mode):
            raise OSError(errno.EINVAL, "not a regular file", path)
        # What was opened is what the kernel says, whatever the names mean by now.
        opened = os.readlink(f"/proc/self/fd/{handle}")  # noqa: PTH115  not a Path: it may end with " (deleted)"
        if opened != path:
            _check_links(path, opened, info.st_uid)
        if info.st_nlink > 1:
            _check_folder(opened, info.st_uid)
        return os.open(f"/proc/self/fd/{handle}", os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY)
    finally:
        os.close(handle)


def _check_links(path: str, opened: str, owner: int) -> None:
    owners = _link_owners(path)
    if not owners or not owners <= {0, owner} or os.path.realpath(path) != opened:
        raise PermissionError(errno.EPERM, "a link that is not its owner's leads to it", path)


def _check_folder(opened: str, owner: int) -> None:
    folder = os.stat(os.path.dirname(opened))
    if folder.st_uid != owner or folder.st_mode & _WRITABLE_BY_OTHERS:
        raise PermissionError(
            errno.EPERM, "it has another name, and may have been put there by another", opened
        )


def _link_owners(path: str) -> set[int]:
    """User ids of the symbolic links on the way to the file."""
    owners: set[int] = set()
    rest = path.split("/")[::-1]
    here, links = "/", 0
    while rest and links <= _MOST_LINKS:
        name = rest.pop()
        if name in ("", "."):
            continue
        if name == "..":
            here = os.path.dirname(here)
            continue
        there = os.path.join(here, name)
        info = os.lstat(there)
        if not stat.S_ISLNK(info.st_mode):
            here = there
            continue
        owners.add(info.st_uid)
        links += 1
        target = os.readlink(there)  # noqa: PTH115  its `..` and `//` count
        here = "/" if target.startswith("/") else here
        rest += target.split("/")[::-1]
    return owners
