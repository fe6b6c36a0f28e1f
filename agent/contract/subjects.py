"""Names in NATS. Permissions follow them: a node may publish its own events and heartbeats and read its own commands."""

import base64
import re

from agent.contract.errors import ConfigError

_TOKEN = re.compile(r"[A-Za-z0-9_-]{1,63}")

# Headers of an event's message, by which it can be routed and counted without decoding the body.
HEADER_KIND = "Ward-Kind"
HEADER_SEVERITY = "Ward-Severity"
HEADER_ID = "Nats-Msg-Id"
LEASE_BUCKET = "ward_lease"
MAX_BUNDLE_CHUNK = 131_072  # bytes of an evidence bundle in one message, as in any NATS object store


def token(text: str, what: str) -> str:
    """`text` if it can be a token of a subject, else a ConfigError that names `what`."""
    if _TOKEN.fullmatch(text) is None:
        raise ConfigError(f"{what} {text[:80]!r} must be 1 to 63 letters, digits, '-' or '_' (no dots)")
    return text


def node_name(hostname: str) -> str:
    """A node's name from its host name: the part before the first dot."""
    return token(hostname.partition(".")[0], "host name")


def stream(cell: str) -> str:
    """The log of a cell."""
    return f"WARD_{cell}"


def stream_subjects(cell: str) -> list[str]:
    """The subjects that the log of a cell records."""
    return [f"ward.{cell}.event.>", f"ward.{cell}.input.>"]


def event(cell: str, node: str) -> str:
    """Subject of a node's events (stored)."""
    return f"ward.{cell}.event.{node}"


def beat(cell: str, node: str) -> str:
    """Subject of a node's heartbeat (not stored)."""
    return f"ward.{cell}.beat.{node}"


def command(cell: str, node: str) -> str:
    """Subject of commands to a node (request/reply)."""
    return f"ward.{cell}.cmd.{node}"


def inbox(node: str) -> str:
    """Prefix of the subjects at which a node receives answers; its own, so that no other node can receive them."""
    return f"_INBOX_{node}"


def brain_input(cell: str, what: str) -> str:
    """Subject of everything else that the engine must know, from brains and the API (stored)."""
    return f"ward.{cell}.input.{what}"


def evidence_bucket(cell: str) -> str:
    """The object store of a cell's evidence bundles. Its stream is `OBJ_<bucket>`."""
    return f"evidence-{cell}"


def evidence_stream(cell: str) -> str:
    """The stream behind the evidence bucket."""
    return f"OBJ_{evidence_bucket(cell)}"


def evidence_subjects(cell: str) -> list[str]:
    """The subjects that this stream records: an object store's chunks and descriptions."""
    return [f"$O.{evidence_bucket(cell)}.C.>", f"$O.{evidence_bucket(cell)}.M.>"]


def bundle(node: str, command: str) -> str:
    """An evidence bundle's name in the bucket, by its node and the command that made it."""
    return f"{node}/{command}"


def bundle_chunk(cell: str, node: str, command: str, number: int) -> str:
    """Subject of one chunk of a bundle. The node is a token of its own, so that permissions can name it."""
    return f"$O.{evidence_bucket(cell)}.C.{node}.{_encoded(command)}.{number}"


def bundle_about(cell: str, node: str, command: str) -> str:
    """Subject of a bundle's description, which is written last, so that what it describes is complete."""
    return f"$O.{evidence_bucket(cell)}.M.{node}.{_encoded(command)}"


def bundles_of(cell: str, node: str) -> list[str]:
    """The subjects to which this node alone may write bundles."""
    bucket = evidence_bucket(cell)
    return [f"$O.{bucket}.C.{node}.>", f"$O.{bucket}.M.{node}.>"]


def node_of(subject: str) -> str:
    """The node in the subject of an event or a heartbeat (the last token)."""
    return subject.rpartition(".")[2]


def _encoded(text: str) -> str:
    return base64.urlsafe_b64encode(text.encode()).decode()
