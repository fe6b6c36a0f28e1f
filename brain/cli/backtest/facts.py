"""Facts that stand in no kernel log: `facts.jsonl` or `facts.yaml` beside the logs, one event a line or list item.

Each has `at` (ISO 8601), `node`, and the keys of an event as `gpuward-agent once` prints it and the log has it: `kind`,
`component` (default `node`), `data`, `severity` (default: that of its kind), `evidence`. `alive: false` or `true` in place of
`kind`: the node became unreachable, or is reachable again.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import orjson
import yaml

from agent.contract import subjects
from agent.contract.errors import ConfigError, ContractError
from agent.contract.messages import Severity, UnsentEvent, decode_event
from agent.shared.log_text import Most, log_lines
from agent.shared.words import t
from brain.core.pack.lint_symptoms import KINDS

_MOST = Most(lines=1_000_000, characters=512_000_000)
_SILENT_S = 16.0  # since its last beat, when a node counts as unreachable


@dataclass(frozen=True, slots=True, kw_only=True)
class TimelineFact:
    """One fact, or a node's silence."""

    node: str
    # Seconds since 1970
    at: float
    # None: it says whether the node is reachable
    unsent: UnsentEvent | None
    alive: bool = True
    silent_s: float = _SILENT_S


def read(path: Path) -> list[TimelineFact]:
    """All facts of a file, in its order. ConfigError: names the file and the line or item that is wrong."""
    found = []
    for where, raw in _rows(path):
        try:
            found.append(_fact(raw))
        except (ContractError, ConfigError, ValueError, TypeError, KeyError) as error:
            said = (
                t("{args} is missing", args=repr(error.args[0]))
                if isinstance(error, KeyError)
                else str(error)
            )
            raise ConfigError(f"{path}: {where}: {said}") from error
    return found


def _rows(path: Path) -> Iterator[tuple[str, Any]]:
    lines = log_lines(path, _MOST)
    if path.suffix == ".jsonl":
        for number, line in enumerate(lines, 1):
            if line.strip():
                try:
                    yield t("line {number}", number=number), orjson.loads(line)
                except orjson.JSONDecodeError as error:
                    raise ConfigError(
                        t("{path}: line {number}: is no JSON: {error}", path=path, number=number, error=error)
                    ) from error
        return
    try:
        items = yaml.safe_load("\n".join(lines)) or []
    except yaml.YAMLError as error:
        raise ConfigError(
            t("{path}: not YAML: {splitlines}", path=path, splitlines=str(error).splitlines()[0])
        ) from error
    if not isinstance(items, list):
        raise ConfigError(t("{path}: must be a list of facts", path=path))
    yield from ((t("item {number}", number=number), raw) for number, raw in enumerate(items, 1))


def _fact(raw: Any) -> TimelineFact:
    if not isinstance(raw, dict):
        raise ContractError(t("a fact is an object with `at`, `node` and `kind`"))
    node = subjects.token(str(raw["node"]), "node")
    at = _time(raw["at"])
    if "alive" in raw:
        return TimelineFact(
            node=node,
            at=at,
            unsent=None,
            alive=bool(raw["alive"]),
            silent_s=float(raw.get("silent_s", _SILENT_S)),
        )
    kind = str(raw["kind"])
    known = KINDS.get(kind)
    if known is None:
        raise ContractError(
            t("there is no kind of event {kind} (`gpuward-agent list` names them)", kind=repr(kind[:80]))
        )
    event = decode_event(
        {
            "v": 1,
            "id": f"{node}:facts:1",
            "node": node,
            "kind": kind,
            "component": raw.get("component", "node"),
            "severity": raw.get("severity", known.severity.value),
            "at": "",
            "age_s": raw.get("age_s", 0.0),
            "boot": "",
            "count": raw.get("count", 1),
            "data": raw.get("data", {}),
            "evidence": str(raw.get("evidence", "")),
        },
        node,
    )
    unsent = UnsentEvent(
        kind=event.kind,
        component=event.component,
        severity=Severity(event.severity),
        data=event.data,
        age_s=event.age_s,
        count=event.count,
        evidence=event.evidence,
    )
    return TimelineFact(node=node, at=at, unsent=unsent)


def _time(raw: Any) -> float:
    if isinstance(raw, datetime):  # YAML knows times
        then = raw
    elif isinstance(raw, (int, float)) and not isinstance(raw, bool):
        return float(raw)
    else:
        then = datetime.fromisoformat(str(raw))
    return (then if then.tzinfo else then.replace(tzinfo=UTC)).timestamp()
