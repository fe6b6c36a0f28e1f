"""A folder of kernel logs: which files it has, and whose each is. Files that cannot be read are named, and end nothing."""

import os
import re
import stat
from dataclasses import dataclass, field
from pathlib import Path

from agent.shared.log_text import PACKED_SUFFIXES
from agent.shared.words import t

TOPOLOGY = ("topology.yaml",)
FACTS = ("facts.jsonl", "facts.yaml")
MOST_FILES = 20_000

_ROTATED = re.compile(r"(?:[.-](?:[0-9]{1,3}|[0-9]{8}(?:-[0-9]{1,10})?))$")
_SUFFIX = re.compile(r"\.(?:log|txt|out|dmesg|kmsg|messages|syslog|json|jsonl)$")
_PREFIX = re.compile(r"^(?:messages|dmesg|kern|kernel|kmsg|syslog|journal|console)(?:\.log)?[._-](?=.)")
_NO_NAME = re.compile(
    r"(?:messages|dmesg|kern|kernel|kmsg|syslog|journal|console|log|vmcore-dmesg)(?:\.log)?", re.IGNORECASE
)


@dataclass(frozen=True, slots=True, kw_only=True)
class LogFile:
    """One file, and the node that its name tells; empty: it tells none."""

    path: Path
    # Below the folder, as people name it
    name: str
    node: str
    size: int


@dataclass(slots=True, kw_only=True)
class Folder:
    """What is in a folder."""

    files: list[LogFile] = field(default_factory=list)
    topology: Path | None = None
    facts: list[Path] = field(default_factory=list)
    # Name -> why it was not read
    unreadable: dict[str, str] = field(default_factory=dict)


def looked_at(path: Path) -> Folder:
    """Finds the files of a folder, and of those below it, in the order of their names. Links to folders are not followed."""
    found = Folder()

    def failed(error: OSError) -> None:
        name = os.path.relpath(error.filename or path, path)
        found.unreadable[name] = error.strerror or str(error)

    for where, below, names in os.walk(path, onerror=failed):
        below[:] = sorted(name for name in below if not name.startswith("."))
        for name in sorted(names):
            file = Path(where) / name
            shown = os.path.relpath(file, path)
            if name.startswith("."):
                continue
            if Path(where) == path and name in TOPOLOGY:
                found.topology = file
            elif Path(where) == path and name in FACTS:
                found.facts.append(file)
            elif len(found.files) >= MOST_FILES:
                found.unreadable[shown] = t(
                    "the folder has more than {most_files} files", most_files=f"{MOST_FILES:,}"
                )
            elif (size := _size(file, shown, found)) is not None:
                node = node_of_name(name) or (node_of_name(file.parent.name) if file.parent != path else "")
                found.files.append(LogFile(path=file, name=shown, node=node, size=size))
    return found


def node_of_name(name: str) -> str:
    """The node that a file's name tells, without what logrotate and people add; empty: it tells none.

    >>> [node_of_name(one) for one in ("gpu007.log", "messages-gpu007", "gpu007.log.2.gz", "messages-20261128")]
    ['gpu007', 'gpu007', 'gpu007', '']
    """
    for suffix in PACKED_SUFFIXES:
        name = name.removesuffix(suffix)
    bare = _ROTATED.sub("", name)
    bare = _SUFFIX.sub("", bare if _SUFFIX.search(bare) or _NO_NAME.fullmatch(bare) else name)
    bare = _PREFIX.sub("", bare)
    return "" if _NO_NAME.fullmatch(bare) else bare


def _size(file: Path, shown: str, found: Folder) -> int | None:
    try:
        status = file.stat()
    except OSError as error:
        found.unreadable[shown] = error.strerror or str(error)
        return None
    if not stat.S_ISREG(status.st_mode):
        found.unreadable[shown] = t("is no file")
        return None
    return status.st_size
