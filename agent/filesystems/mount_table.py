"""Which file systems of a machine are watched: the local and remote ones of its mount table, each once."""

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from agent.host import Host

REMOTE = frozenset(
    (
        *("nfs", "nfs4", "lustre", "gpfs", "wekafs", "beegfs", "beegfs_nodev", "ceph", "fuse.ceph", "cifs"),
        *("smb3", "panfs", "pvfs2", "fuse.glusterfs", "fuse.juicefs", "fuse.seaweedfs"),
        *("fuse.daos", "fuse.dfuse"),
    )
)
LOCAL = frozenset(("ext2", "ext3", "ext4", "xfs", "btrfs", "zfs", "f2fs", "bcachefs", "overlay"))
# Of containers: they come and go, and the file systems below them are watched anyway.
_CONTAINERS = (
    *("/var/lib/kubelet/", "/var/lib/docker/", "/var/lib/containerd/", "/var/lib/containers/"),
    "/run/",
)
_MOST = 32  # file systems that are queried: each costs a thread for a moment, or for as long as it hangs


@dataclass(frozen=True, slots=True, kw_only=True)
class Listed:
    """One file system."""

    path: str
    fstype: str


def watched(host: Host, expected: tuple[str, ...]) -> Iterator[Listed]:
    """The file systems of this machine that are watched; `expected`: mount points that the operator names."""
    return listed(table(host), expected)


def table(host: Host) -> str:
    """The machine's own mounts: in the agent's namespace (ProtectSystem=) all of them look read-only."""
    return host.read("/proc/1/mounts") or host.read("/proc/mounts")


def reached(host: Host, path: str) -> Path:
    """Where the file system mounted at `path` is for us: below the root of process 1, where that is not ours (a container that
    sees the machine's processes).
    """
    init = host.path("/proc/1/root")
    try:
        theirs, ours = os.stat(f"{init}/"), host.path("/").stat()
    except OSError:  # not ours to look at: then its mounts are not either
        return host.path(path)
    if os.path.samestat(theirs, ours):
        return host.path(path)
    return init / path.lstrip("/")


def listed(text: str, expected: tuple[str, ...]) -> Iterator[Listed]:
    """The file systems that are watched, each once: of bind mounts of one device the first."""
    seen: set[tuple[str, str]] = set()
    number = 0
    for line in text.splitlines():
        words = line.split(" ")
        if len(words) < 4:
            continue
        source, path, fstype, options = words[0], unescaped(words[1]), words[2], words[3]
        if path not in expected:
            if fstype not in REMOTE and fstype not in LOCAL:
                continue
            if path.startswith(_CONTAINERS) or (fstype == "overlay" and path != "/"):
                continue
            # A read-only image is always full.
            if fstype in LOCAL and ((source, fstype) in seen or "ro" in options.split(",")):
                continue
        seen.add((source, fstype))
        number += 1
        if number <= _MOST or path in expected:
            yield Listed(path=path, fstype=fstype)


def unescaped(path: str) -> str:
    """/proc/mounts writes a blank as `\\040`."""
    for octal, char in (("\\040", " "), ("\\011", "\t"), ("\\012", "\n"), ("\\134", "\\")):
        path = path.replace(octal, char)
    return path
