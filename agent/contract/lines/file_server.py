"""File servers that do not answer: NFS and Lustre clients.

Formats: Linux, net/sunrpc/clnt.c (call_timeout, call_decode); Lustre, lustre/ptlrpc/import.c.
"""

import re
from typing import ClassVar

from agent.contract.components import NODE
from agent.contract.lines.base import Optional, unsent
from agent.contract.messages import Severity, UnsentEvent

_NFS = re.compile(
    r"\s*(?:nfs|nfs4|lockd|rpc): server (\S{1,200}?),? (?:(not responding)(?:, (still trying|timed out))?|(OK))\b"
)
_LUSTRE = re.compile(
    r"\s*(?:Lustre|LustreError): (?:[0-9]{1,10}:[0-9]{1,10}:\(.{1,80}?\) )?(\S{1,120}): Connection "
    r"(?:(?P<back>restored to)|to) (\S{1,120}?)(?: \(at (\S{1,80})\))?(?: was lost|[;, ]|$)"
)
_OWN_TARGET = re.compile(r"[\w.-]{1,60}-(?:OST|MDT)[0-9a-fA-F]{4}")
# Of an error about one target: its name, and whether the server has thrown this client out.
_LUSTRE_ERROR = re.compile(
    r"\s*LustreError: (?P<head>[0-9]{1,10}(?::[0-9]{1,10}:\(.{1,80}?\)|-[0-9a-f]{1,3}:) )"
    r"(?:(?P<target>[\w.-]{1,60}?-(?:OST|MDT)[0-9a-fA-F]{4})-\S{1,60}?: (?P<evicted>This client was evicted by )?)?.{1,200}",
    re.DOTALL,
)


class FileServerArea:
    """storage.server: gone, and answering again."""

    markers: ClassVar[tuple[str, ...]] = (": server ", "Lustre")
    kinds: ClassVar[tuple[str, ...]] = ("storage.server",)
    distinguishing: ClassVar[tuple[str, ...]] = ("server", "evicted")

    def read(self, text: str) -> UnsentEvent | None:
        """See Area."""
        if match := _NFS.match(text):
            answers = match[4] is not None
            return _server("nfs", match[1], answers, match[3] or "", text)
        if match := _LUSTRE.match(text):
            back = match["back"] is not None
            return None if _own(match[1]) else _server("lustre", match[3], back, "", text)
        if match := _LUSTRE_ERROR.match(text):
            message = text[match.end("head") : match.end()].strip()
            if _own(message.partition(": ")[0]):
                return None
            # A client that is connected again has not done what it was about to write or read: that failed for good.
            evicted = match["evicted"] is not None
            return _server("lustre", match["target"] or "", False, message, text, evicted=evicted)
        return None


def _own(device: str) -> bool:
    """A server says something of its own target, by its bare name: that a client connects again, or was thrown out."""
    return _OWN_TARGET.fullmatch(device) is not None


def _server(
    filesystem: str, server: str, answers: bool, message: str, text: str, *, evicted: bool = False
) -> UnsentEvent:
    data: Optional = {
        "filesystem": filesystem,
        "server": server or "unknown",
        "answers": answers,
        "message": message,
        "evicted": evicted or None,
    }
    return unsent("storage.server", NODE, Severity.INFO if answers else Severity.ERROR, data, text)
