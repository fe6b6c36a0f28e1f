"""Names in NATS. A node has an account of its own: it offers what it has to say at its own subjects, and the server moves
each offer into a lane of the brain's account (docs/decisions/0027). It can name no other subject, not even in a reply.
"""

import base64
import re
from binascii import crc32

from agent.contract.errors import ConfigError

_TOKEN = re.compile(r"[A-Za-z0-9_-]{1,63}")

# Headers of an event on the log, set by the brain, by which it can be routed and counted without decoding the body.
HEADER_KIND = "Ward-Kind"
HEADER_SEVERITY = "Ward-Severity"
HEADER_ID = "Nats-Msg-Id"
LEASE_BUCKET = "ward_lease"
MAX_BUNDLE_CHUNK = 131_072  # bytes of an evidence bundle in one message, as in any NATS object store
# What a node offers: the last token of an offer's subject.
EVENT, BEAT, ANSWER, EVIDENCE = "event", "beat", "answer", "evidence"
# No node's name, in whatever case: what stands for several nodes in commands, and who answers drills in the place of a node.
RESERVED = frozenset({"all", "cell", "drill"})
LANES = 64  # of one cell; each node's offers go through the one that its name gives
PARTS_LANES = 8  # of one cell, for parts of evidence bundles: they are large


def token(text: str, what: str) -> str:
    """`text` if it can be a token of a subject, else a ConfigError that names `what`."""
    if _TOKEN.fullmatch(text) is None:
        raise ConfigError(f"{what} {text[:80]!r} must be 1 to 63 letters, digits, '-' or '_' (no dots)")
    return text


def new_node(text: str, what: str = "node") -> str:
    """The name of a node that is to be let in, if it can be a token of a subject and means nothing else: people type it among the
    words and options of commands, and so do scripts. ConfigError names `what`.
    """
    token(text, what)
    if text.startswith("-"):
        raise ConfigError(f"{what} {text!r} must not begin with '-': commands would take it for an option")
    if text.lower() in RESERVED:
        raise ConfigError(
            f"{what} {text!r} is a word of gpuward's own ({', '.join(sorted(RESERVED))}): give the node another name"
        )
    return text


def node_name(hostname: str, instead: str) -> str:
    """A node's name from its host name: the part before the first dot. ConfigError: it is none; `instead`: what to do."""
    try:
        return token(hostname.partition(".")[0], "host name")
    except ConfigError as error:
        raise ConfigError(f"{error}: {instead}") from error


def stream(cell: str) -> str:
    """The log of a cell."""
    return f"WARD_{cell}"


def stream_subjects(cell: str) -> list[str]:
    """The subjects that the log of a cell records."""
    return [f"ward.{cell}.event.>", f"ward.{cell}.input.>"]


def event(cell: str, node: str) -> str:
    """Subject of a node's events on the log (stored). Only the brain publishes there."""
    return f"ward.{cell}.event.{node}"


def offer(cell: str, node: str, what: str) -> str:
    """Subject at which a node, in its own account, offers an event, a heartbeat, an answer or a part of a bundle."""
    return f"ward.{cell}.part.{node}" if what == EVIDENCE else f"ward.{cell}.offer.{node}.{what}"


def lane_of(node: str) -> int:
    """The number of the lane through which a node's offers go: 0 to LANES - 1."""
    return crc32(node.encode()) % LANES


def lane(cell: str, node: str, what: str) -> str:
    """Subject of a node's offers in the brain's account."""
    if what == EVIDENCE:
        return f"{_parts(cell, lane_of(node) % PARTS_LANES)}.{node}"
    return f"{_lane(cell, lane_of(node))}.{node}.{what}"


def lane_stream(cell: str, number: int) -> str:
    """The stream in which the offers of a lane wait for the brain."""
    return f"LANE_{cell}_{number:02}"


def lane_subject(cell: str, number: int) -> str:
    """What nodes may reach of a lane."""
    return f"{_lane(cell, number)}.*.*"


def lane_subjects(cell: str, number: int) -> list[str]:
    """What a lane keeps: three kinds of offers, and no other."""
    return [f"{_lane(cell, number)}.*.{what}" for what in (EVENT, BEAT, ANSWER)]


def offered(subject: str) -> tuple[str, str]:
    """(node, what) of a subject of `lane`."""
    _, _, _, _, node, *what = subject.split(".")
    return node, what[0] if what else EVIDENCE


def parts_stream(cell: str, number: int) -> str:
    """The stream in which parts of evidence bundles wait for the brain."""
    return f"PARTS_{cell}_{number}"


def parts_subject(cell: str, number: int) -> str:
    """All subjects of it."""
    return f"{_parts(cell, number)}.*"


def acknowledgement(cell: str, node: str, what: str) -> str:
    """Subject at which the brain tells a node which events (EVENT) and parts of bundles (EVIDENCE) are stored."""
    return f"ward.{cell}.ack.{node}.{what}"


def answer(cell: str, node: str) -> str:
    """Subject of a node's answers to commands in the brain's account (not stored)."""
    return f"ward.{cell}.answer.{node}"


def command(cell: str, node: str) -> str:
    """Subject of commands to a node. It answers by an offer (see agent/contract/requests.py)."""
    return f"ward.{cell}.cmd.{node}"


def brain_input(cell: str, what: str) -> str:
    """Subject of everything else that the engine must know, from brains and the API (stored)."""
    return f"ward.{cell}.input.{what}"


def presence(cell: str, brain: str) -> str:
    """Subject at which a brain listens while it is connected (not stored)."""
    return f"ward.{cell}.brain.{brain}"


def brain_settings(cell: str) -> str:
    """Subject at which each brain tells what the brains of a cell are to have alike (not stored). No brain has this name."""
    return presence(cell, "settings")


def state_bucket(cell: str) -> str:
    """The object store of the copy of a cell's state."""
    return f"state-{cell}"


def reports_bucket(cell: str) -> str:
    """The key-value bucket in which stands which reports were mailed."""
    return f"reports-{cell}"


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
    """Subject of one chunk of a bundle. The node is a token of its own, so that its bundles can be counted."""
    return f"$O.{evidence_bucket(cell)}.C.{node}.{_encoded(command)}.{number}"


def bundle_about(cell: str, node: str, command: str) -> str:
    """Subject of a bundle's description, which is written last, so that what it describes is complete."""
    return f"$O.{evidence_bucket(cell)}.M.{node}.{_encoded(command)}"


def node_of(subject: str) -> str:
    """The node in the subject of an event or an answer (the last token)."""
    return subject.rpartition(".")[2]


def node_bundles(cell: str, node: str) -> tuple[str, str]:
    """The subjects of all chunks and of all descriptions of a node's bundles."""
    bucket = evidence_bucket(cell)
    return f"$O.{bucket}.C.{node}.>", f"$O.{bucket}.M.{node}.>"


def bundle_chunks(cell: str, node: str, command: str) -> str:
    """The subjects of all chunks of one bundle."""
    return f"$O.{evidence_bucket(cell)}.C.{node}.{_encoded(command)}.*"


def command_of_bundle(subject: str) -> str:
    """The command in the subject of a bundle's description; empty when it is not one."""
    try:
        return base64.urlsafe_b64decode(subject.rpartition(".")[2]).decode()
    except ValueError:
        return ""


def _lane(cell: str, number: int) -> str:
    return f"ward.{cell}.lane.{number:02}"


def _parts(cell: str, number: int) -> str:
    return f"ward.{cell}.parts.{number}"


def _encoded(text: str) -> str:
    return base64.urlsafe_b64encode(text.encode()).decode()
