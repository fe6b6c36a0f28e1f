"""Events and heartbeats of a node. JSON objects on the wire; the functions here encode to and decode from dicts."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from functools import lru_cache
from typing import Any

from agent.contract import components
from agent.contract.errors import ContractError

VERSION = 1
MAX_EVIDENCE = 2000  # characters of a kernel or job line that an event carries
MAX_TEXT = 500  # characters of one text of `data`
MAX_FIELDS = 40
MAX_EVENT_BYTES = 16_384  # of one event as it is sent: an agent cuts its texts until it fits

Scalar = str | int | float | bool
_SCALAR = frozenset((str, int, float, bool))
_MAX_NAME = 80  # characters of a kind, a time, a boot id
_ID = re.compile(r"([A-Za-z0-9_-]{1,63}):([A-Za-z0-9]{1,32}):([0-9]{1,18})")
_WORD = re.compile(f"[ -~]{{0,{_MAX_NAME}}}")
_TEXTS = ("id", "node", "kind", "component", "at", "boot", "evidence")  # of an event
_KIND = re.compile(r"[a-z0-9_]+(\.[a-z0-9_]+)+")


class Severity(StrEnum):
    """How bad the fact is by itself. It only sorts, since the brain judges; the spool drops the mildest events first."""

    INFO = "info"  # a fact worth knowing: a state change, a recovery, an answer
    WARNING = "warning"  # something is wrong, and it may pass by itself
    ERROR = "error"  # something failed or was lost
    FATAL = "fatal"  # the component cannot be used
    UNKNOWN = "unknown"  # a code that is in no catalogue: it is observed and paged once, never acted on

    @property
    def rank(self) -> int:
        """0 (info) to 4 (unknown, which counts as the worst: its importance is not known)."""
        return _RANKS[self]


_SEVERITIES = {severity.value: severity for severity in Severity}
_RANKS = {severity: rank for rank, severity in enumerate(Severity)}


@dataclass(frozen=True, slots=True, kw_only=True)
class UnsentEvent:
    """What a collector returns: a fact before the agent stamps it with id, node and time."""

    kind: str
    component: str
    severity: Severity
    data: Mapping[str, Scalar] = field(default_factory=dict)
    # The line or sample that shows it.
    evidence: str = ""
    # How many equal facts this event represents.
    count: int = 1
    # How old the fact was when the collector saw it, by the node's monotonic clock.
    age_s: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """One fact, as it is on the log."""

    # `<node>:<spool>:<seq>`; seq grows by at least one for each event of one spool.
    id: str
    node: str
    kind: str
    component: str
    severity: Severity
    # By the node's wall clock, ISO 8601 UTC; it explains, it never decides.
    at: str
    # How old the fact was when it was sent, by the node's monotonic clock.
    age_s: float
    # Boot id of the node.
    boot: str
    count: int
    data: Mapping[str, Scalar]
    evidence: str = ""

    @property
    def order(self) -> tuple[str, int]:
        """(spool, seq): an event whose seq is not above the last one of its spool is a repeat."""
        _, spool, seq = self.id.split(":")
        return spool, int(seq)


_new: Callable[[type[Event]], Event] = object.__new__
(
    _set_id,
    _set_node,
    _set_kind,
    _set_component,
    _set_severity,
    _set_at,
    _set_age_s,
    _set_boot,
    _set_count,
    _set_data,
    _set_evidence,
) = (getattr(Event, name).__set__ for name in Event.__slots__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Beat:
    """A node's heartbeat. `session` and `mono_s` are the clock by which commands to it expire."""

    node: str
    # One run of the agent process.
    session: str
    boot: str
    # By the node's monotonic clock.
    mono_s: float
    version: str
    # Events waiting for the broker.
    spooled: int
    # Events dropped since the agent started.
    dropped: int
    # The newest announcement of keys that it trusts (agent/contract/trust.py); 0: none, or an older agent.
    trust: int = 0
    # By the node's wall clock, seconds since 1970; it explains, it never decides. 0: an older agent.
    wall_s: float = 0.0
    # The brain shall answer, with an acknowledgement of no events (agent/contract/acknowledgements.py); one of 0.1 does not.
    asks: bool = False


def encode_event(event: Event) -> dict[str, Any]:
    """A JSON-ready dict."""
    return {
        "v": VERSION,
        "id": event.id,
        "node": event.node,
        "kind": event.kind,
        "component": event.component,
        "severity": event.severity.value,
        "at": event.at,
        "age_s": round(event.age_s, 3),
        "boot": event.boot,
        "count": event.count,
        "data": dict(event.data),
        "evidence": event.evidence,
    }


def fitting(event: Event, encoded: Callable[[Any], bytes]) -> bytes:
    """An event as it is sent. One that is longer than MAX_EVENT_BYTES has its texts cut until it fits. `encoded`: JSON."""
    body, limit = encoded(encode_event(event)), MAX_TEXT
    while len(body) > MAX_EVENT_BYTES and limit > 1:
        limit //= 2
        data = {
            key: clip(value, limit) if isinstance(value, str) else value for key, value in event.data.items()
        }
        body = encoded(encode_event(replace(event, data=data, evidence=clip(event.evidence, 2 * limit))))
    return body


def decode_event(raw: Any, node: str) -> Event:
    """Decodes an event that `node` has published; the ContractError names what does not fit."""
    if not isinstance(raw, dict):
        raise ContractError(f"event is not an object but {type(raw).__name__}")
    if raw.get("v") != VERSION:
        raise ContractError(
            f"event has version {str(raw.get('v'))[:20]!r}, this brain reads {VERSION}: update the older side"
        )
    try:
        texts = raw["id"], raw["node"], raw["kind"], raw["component"], raw["at"], raw["boot"], raw["evidence"]
    except KeyError as error:
        raise ContractError(f"{error.args[0]} must be a string") from None
    id_, publisher, kind, component, at, boot, evidence = texts
    if not (
        type(id_) is type(publisher) is type(kind) is type(component) is str
        and type(at) is type(boot) is type(evidence) is str
    ):  # of all of them at once: every event of a node passes here twice
        for key in _TEXTS:
            _text(raw, key)
    if publisher != node:
        raise ContractError(f"node {node!r} published an event of {publisher[:63]!r}")
    match = _ID.fullmatch(id_)
    if match is None or match[1] != node:
        raise ContractError(f"event id {id_[:80]!r} is not <node>:<spool>:<seq> of node {node!r}")
    severity = _SEVERITIES.get(str(raw.get("severity")))
    if severity is None:
        raise ContractError(f"not a severity: {str(raw.get('severity'))[:40]!r}")
    age_s, count, data = raw.get("age_s"), raw.get("count"), raw.get("data")
    if not isinstance(age_s, (int, float)) or isinstance(age_s, bool) or not 0 <= age_s < 1e9:
        raise ContractError("age_s must be a number of seconds, 0 or more")
    if not isinstance(count, int) or isinstance(count, bool) or not 1 <= count < 2**53:
        raise ContractError("count must be a whole number, 1 or more")
    return _made(
        id_,
        node,
        _kind(kind),
        components.check(component),
        severity,
        at if len(at) <= _MAX_NAME else clip(at, _MAX_NAME),
        float(age_s),
        boot if len(boot) <= _MAX_NAME else clip(boot, _MAX_NAME),
        count,
        _data(data),
        evidence[:MAX_EVIDENCE],
    )


def _made(
    id_: str,
    node: str,
    kind: str,
    component: str,
    severity: Severity,
    at: str,
    age_s: float,
    boot: str,
    count: int,
    data: Mapping[str, Scalar],
    evidence: str,
) -> Event:
    """An Event, as its own `__init__` makes it. That of a frozen class looks up each field by its name: a third of what it takes
    to decode an event, and each event of a cell is decoded twice.
    """
    event = _new(Event)
    _set_id(event, id_)
    _set_node(event, node)
    _set_kind(event, kind)
    _set_component(event, component)
    _set_severity(event, severity)
    _set_at(event, at)
    _set_age_s(event, age_s)
    _set_boot(event, boot)
    _set_count(event, count)
    _set_data(event, data)
    _set_evidence(event, evidence)
    return event


def encode_beat(beat: Beat) -> dict[str, Any]:
    """A JSON-ready dict."""
    return {
        "v": VERSION,
        "node": beat.node,
        "session": beat.session,
        "boot": beat.boot,
        "mono_s": beat.mono_s,
        "version": beat.version,
        "spooled": beat.spooled,
        "dropped": beat.dropped,
        "trust": beat.trust,
        "wall_s": beat.wall_s,
        **({"asks": True} if beat.asks else {}),
    }


def decode_beat(raw: Any, node: str) -> Beat:
    """Decodes a heartbeat of `node`; ContractError when it does not fit or names another node."""
    if not isinstance(raw, dict) or raw.get("v") != VERSION or raw.get("node") != node:
        raise ContractError(f"not a beat of node {node!r}, version {VERSION}")
    mono_s, spooled, dropped = raw.get("mono_s"), raw.get("spooled"), raw.get("dropped")
    if not isinstance(mono_s, (int, float)) or not isinstance(spooled, int) or not isinstance(dropped, int):
        raise ContractError("beat: mono_s, spooled and dropped must be numbers")
    if not (0 <= mono_s < 1e12 and 0 <= spooled < 2**53 and 0 <= dropped < 2**53):
        raise ContractError(
            "beat: mono_s, spooled and dropped must be 0 or more, and no more than a node can count"
        )
    trust = raw.get("trust", 0)
    if not isinstance(trust, int) or isinstance(trust, bool) or trust < 0:
        raise ContractError("beat: trust must be a number, 0 or more")
    wall_s = raw.get("wall_s", 0.0)
    if not isinstance(wall_s, (int, float)) or isinstance(wall_s, bool) or not 0 <= wall_s < 1e11:
        raise ContractError("beat: wall_s must be seconds since 1970")
    session, boot, version = (_word(raw, key) for key in ("session", "boot", "version"))
    return Beat(
        node=node,
        session=session,
        boot=boot,
        mono_s=float(mono_s),
        version=version,
        spooled=spooled,
        dropped=dropped,
        trust=trust,
        wall_s=float(wall_s),
        asks=raw.get("asks") is True,
    )


def clip(text: str, limit: int = MAX_TEXT) -> str:
    """`text` shortened to `limit` characters, with an ellipsis at the end."""
    return text if len(text) <= limit else text[: limit - 1] + "…"


@lru_cache(1024)
def _kind(kind: str) -> str:
    """The kind itself if it is one, else ContractError."""
    if _KIND.fullmatch(kind) is None or len(kind) > _MAX_NAME:
        raise ContractError(f"not an event kind: {kind[:80]!r}")
    return kind


def _text(raw: dict[str, Any], key: str) -> str:
    value = raw.get(key)
    if not isinstance(value, str):
        raise ContractError(f"{key} must be a string")
    return value


def _word(raw: dict[str, Any], key: str) -> str:
    """A short text that an agent has made, not its machine."""
    value = _text(raw, key)
    if _WORD.fullmatch(value) is None:
        raise ContractError(f"beat: {key} must be at most {_MAX_NAME} printable letters")
    return value


def _data(data: Any) -> dict[str, Scalar]:
    if not isinstance(data, dict) or len(data) > MAX_FIELDS:
        raise ContractError(f"data must be an object of at most {MAX_FIELDS} fields")
    if data and (max(map(len, data)) > _MAX_NAME or not _SCALAR.issuperset(map(type, data.values()))):
        for key, value in data.items():
            if len(key) > _MAX_NAME:
                raise ContractError(f"data.{key[:40]}... has more than {_MAX_NAME} characters")
            if type(value) not in _SCALAR:
                raise ContractError(f"data.{key[:40]} must be a string, number or boolean")
    return data
