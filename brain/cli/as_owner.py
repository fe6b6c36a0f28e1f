"""As root in a folder that belongs to a service: with the rights of whoever decides what lies there, and no more.

Whoever has taken over the brain's service can lay links, pipes and files of any name into its folders. Root would follow them;
as the folder's owner root gets nowhere where the service could not go itself, whatever lies there and whenever it changes.
"""

import encodings.ascii  # noqa: F401 - Python loads it when it is used: as the owner, who may not read root's own Python
import os
import pwd
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from agent.contract.errors import ConfigError
from agent.shared.words import t

USER = "gpuward"  # of the brain's unit
_ROOT = 0
_MOST_LINKS = 40  # as of the kernel


@contextmanager
def as_owner(place: Path) -> Iterator[None]:
    """Everything inside is done with the rights of `owner(place)` when root does it; somebody else goes on as they are.

    The real user stays root, so that nobody can stop or trace the process, and who has typed the command is still known.
    ConfigError: root may not change its user here, or that user may not do what is done inside.
    """
    found = owner(place) if os.geteuid() == _ROOT else None
    if found is None:
        yield
        return
    user, group = found
    groups, own_group = os.getgroups(), os.getegid()
    try:
        os.setgroups(_groups(user, group))
        os.setegid(group)
        os.seteuid(user)
    except OSError as error:  # e.g. a container's root that may not change users: the process ends with this
        raise ConfigError(
            t(
                "{place} belongs to {user}, and root may not act as that user here ({strerror}): say it as them",
                place=place,
                user=_name(user),
                strerror=error.strerror,
            )
        ) from error
    try:
        yield
    except PermissionError as error:
        raise ConfigError(
            t(
                "{filename}: {strerror}: what is in a folder of {user} is done with the rights of {user}, "
                "also when root says it. Give the file to {user}",
                filename=error.filename or place,
                strerror=error.strerror,
                user=_name(user),
            )
        ) from error
    finally:
        os.seteuid(_ROOT)
        os.setegid(own_group)
        os.setgroups(groups)


def make_data_folder(folder: Path) -> None:
    """The brain's data folder, before the brain has made it: as root for the user of the brain's unit, if there is one."""
    with as_owner(folder):
        if folder.is_dir():
            return
        folder.mkdir(parents=True, mode=0o750)
        if os.geteuid() == _ROOT:  # nobody but root decides what lies on the way there
            with suppress(KeyError):
                user = pwd.getpwnam(USER)
                os.chown(folder, user.pw_uid, user.pw_gid, follow_symlinks=False)


def owner(place: Path) -> tuple[int, int] | None:
    """Returns (user, group) of whoever decides what is at this place: the first who is not root on the way to it, links and
    what they lead through included. None: nobody but root. Where something is not there yet, its folder's owner decides.
    """
    here, left, links = Path("/"), list(place.absolute().parts[1:]), 0
    while left:
        step = here / left.pop(0)
        try:
            found = step.lstat()
        except OSError:
            return None
        if found.st_uid != _ROOT:
            return found.st_uid, _group(found.st_uid, found.st_gid)
        if stat.S_ISLNK(found.st_mode) and (links := links + 1) <= _MOST_LINKS:
            step = here / step.readlink()
            here, left = Path("/"), [*step.parts[1:], *left]
        else:
            here = step.parent if step.name == ".." else step
    return None


def _group(user: int, of_folder: int) -> int:
    """The group of a folder as long as its owner is in it: root may have given the folder to a group that its owner is not in."""
    try:
        known = pwd.getpwuid(user)
    except KeyError:
        return of_folder or user
    return of_folder if of_folder in os.getgrouplist(known.pw_name, known.pw_gid) else known.pw_gid


def _groups(user: int, group: int) -> list[int]:
    try:
        known = pwd.getpwuid(user)
    except KeyError:
        return [group]
    return os.getgrouplist(known.pw_name, known.pw_gid)


def _name(user: int) -> str:
    try:
        return pwd.getpwuid(user).pw_name
    except KeyError:
        return f"user {user}"
