"""Filesystems that are damaged or went read-only: ext4, XFS, Btrfs; and locks of NFS that a server no longer knows.

Formats: Linux, fs/ext4/super.c, fs/jbd2/journal.c, fs/xfs/xfs_message.c and xfs_fsops.c, fs/btrfs/messages.c (since 5.18
with the filesystem's state), fs/nfs/nfs4state.c, fs/lockd/clntproc.c.
"""

import re
from typing import ClassVar

from agent.contract.components import NODE
from agent.contract.lines.base import component, unsent
from agent.contract.messages import Severity, UnsentEvent

_EXT_ERROR = re.compile(
    r"\s*(EXT[234])-fs error \(device ([\w!-]{1,60})\)(?: in [\w:]{1,80})?: (.{1,200})", re.DOTALL
)
_EXT = re.compile(
    r"\s*(EXT[234])-fs \(([\w!-]{1,60})\): (Remounting filesystem read-only|failed to convert unwritten.{0,80}"
    r"|I/O error while writing.{0,80}|previous I/O error.{0,80}|.{0,60}Data will be lost)"
)
_ABORTED = re.compile(r"\s*Aborting journal on device ([\w!-]{1,60}?)(?:-[0-9]{1,4})?\.")
_JBD = re.compile(
    r"\s*JBD2: (?:Error -?[0-9]{1,4} detected|Detected IO errors|I/O error(?: detected)? when).{0,120}?"
    r" (?:for|on) ([\w!-]{1,60}?)(?:-[0-9]{1,4})?(?![\w!-])"
)
_XFS = re.compile(r"\s*XFS \(([\w!-]{1,60})\): (.{1,200})", re.DOTALL)
_XFS_MESSAGES = (
    *("Metadata CRC error", "etadata corruption", "etadata I/O error", "Internal error", "Corruption "),
    *("og I/O error", "og I/O Error", "writeback error", "Failing async write"),
    *("hutting down", "has been shut down", "force_shutdown", "force shutdown"),
)
_BTRFS = re.compile(
    r"\s*BTRFS(?: \w{1,10})?:? (?:error )?\(device ([\w!-]{1,60})(?::? state \w{1,12})?\)(?: in [\w:]{1,80})?: (.{1,200})",
    re.DOTALL,
)
_ABORTED_UNNAMED = re.compile(r"\s*BTRFS: Transaction aborted \(error -[0-9]{1,4}\)")  # before 6.0
_LOCKS = re.compile(
    r"\s*(?:(?:NFS: )?_{0,2}nfs4_reclaim_open_state: Lock reclaim failed|lockd: failed to reclaim lock)"
)
_UNWRITABLE = (
    *("read-only", "readonly", "Readonly", "hutting down", "shut down", "hutdown", "Aborting journal"),
    "Transaction aborted",
)


class FilesystemArea:
    """filesystem.error; severity fatal when it can no longer be written."""

    markers: ClassVar[tuple[str, ...]] = (
        "-fs error (device",
        "-fs (",
        "Aborting journal",
        "JBD2: ",
        "XFS (",
        "BTRFS",
        "reclaim",
    )
    kinds: ClassVar[tuple[str, ...]] = ("filesystem.error",)
    distinguishing: ClassVar[tuple[str, ...]] = ("what",)

    def read(self, text: str) -> UnsentEvent | None:
        """See Area."""
        if (match := _EXT_ERROR.match(text)) or (match := _EXT.match(text)):
            return _error(match[1].lower(), match[2], match[3], text)
        if (match := _ABORTED.match(text)) or (match := _JBD.match(text)):
            return _error("jbd2", match[1], text.strip(), text)
        if (match := _XFS.match(text)) and any(part in match[2] for part in _XFS_MESSAGES):
            return _error("xfs", match[1], match[2], text)
        if match := _BTRFS.match(text):
            bad = text.lstrip().startswith(("BTRFS error", "BTRFS critical", "BTRFS: error"))
            if bad or "forced readonly" in match[2]:
                return _error("btrfs", match[1], match[2], text)
        if match := _ABORTED_UNNAMED.match(text):
            data = {"filesystem": "btrfs", "what": "unwritable", "message": text.strip()}
            return unsent("filesystem.error", NODE, Severity.FATAL, data, text)
        if _LOCKS.match(text):
            data = {"filesystem": "nfs", "what": "locks_lost", "message": text.strip()}
            return unsent("filesystem.error", NODE, Severity.ERROR, data, text)
        return None


def _error(filesystem: str, disk: str, message: str, text: str) -> UnsentEvent:
    unwritable = any(word in message for word in _UNWRITABLE)
    data = {
        "filesystem": filesystem,
        "what": "unwritable" if unwritable else "error",
        "message": message.strip(),
    }
    return unsent(
        "filesystem.error",
        component("disk", disk),
        Severity.FATAL if unwritable else Severity.ERROR,
        data,
        text,
    )
