"""Reads what a site's gpuward has seen: a file of `gpuward log export`, replayed by its own rules, or its read model."""

import sqlite3
from contextlib import closing
from pathlib import Path

import orjson

from agent.contract.errors import ConfigError
from agent.shared.words import t
from brain.adapters.codec import Codec
from brain.adapters.log_file import Head
from brain.adapters.log_record import Record
from brain.cli.backtest import recorded, rule_sets
from brain.cli.backtest.outcome import Input
from brain.cli.backtest.rule_sets import OF_THE_LOG, RuleSet
from brain.core.inputs import EventSeen, NodeState, OperatorCommand, PackLoaded
from brain.core.pack.spec import Place
from brain.core.pack.topology import node_of
from simulations.month.learn import SiteHistory, asked_for

_SQLITE = b"SQLite format 3\0"
_LEAST_DAYS = 0.5


def read(path: Path, *, nodes: int = 0, days: float = 0.0) -> SiteHistory:
    """What stands there. `nodes`, `days`: in place of what can be read; a read model does not know how many nodes there are.
    ConfigError: it is neither, or too little.
    """
    try:
        with path.open("rb") as file:
            begin = file.read(len(_SQLITE))
    except OSError as error:
        raise ConfigError(
            t("{path}: cannot be read: {strerror}", path=path, strerror=error.strerror or error)
        ) from error
    if begin != _SQLITE and not recorded.is_log(path):
        raise ConfigError(
            t("{path}: is neither a file of `gpuward log export` nor a read model (history.db)", path=path)
        )
    seen = _of_model(path, nodes, days) if begin == _SQLITE else _of_log(path, nodes, days)
    if seen.days < _LEAST_DAYS:
        raise ConfigError(t("{path}: has less than half a day: nothing can be learnt of it", path=path))
    return seen


def _of_log(path: Path, nodes: int, days: float) -> SiteHistory:
    codec, places = Codec(""), dict[str, Place]()
    names, holds = dict[str, None](), list[float]()
    first = last = 0.0
    for part in recorded.parts(path, Input()):
        if isinstance(part, Head):
            codec = Codec(part.name.cell)
        if not isinstance(part, Record):
            continue
        first, last = first or part.at, max(last, part.at)
        match codec.decode(part.subject, part.body, part.seq):
            case PackLoaded(pack=pack):
                places.update(pack.places)
            case EventSeen(event=event):
                names[event.node] = None
            case NodeState(node=node):
                names[node] = None
            case OperatorCommand(verb="hold", args=args):
                holds.append(_hours(args.get("for_s")))
    site = recorded.site_of(path)
    rules = RuleSet(source=t(OF_THE_LOG)) if site is not None else rule_sets.shipped()
    found = recorded.backtest(path, rules, site, observe=False).outcome.incidents
    incidents = [(one.cause, node_of(one.place)) for one in found if not asked_for(one.cause)]
    all_nodes = dict.fromkeys((*places, *names))
    return SiteHistory(
        leaf=_filled({node: places[node].leaf if node in places else "" for node in all_nodes}, nodes),
        rack={node: places[node].rack for node in all_nodes if node in places},
        days=days or (last - first) / 86400,
        incidents=incidents,
        holds=holds,
    )


def _hours(for_s: object) -> float:
    return float(for_s) / 3600 if isinstance(for_s, int | float) else 0.0


def _filled(leaf: dict[str, str], nodes: int) -> dict[str, str]:
    """So many nodes: of the others nothing was ever seen."""
    return leaf | {f"unseen {n}": "" for n in range(max(0, nodes - len(leaf)))}


def _of_model(path: Path, nodes: int, days: float) -> SiteHistory:
    if not nodes:
        raise ConfigError(
            t("{path}: a read model does not say how many nodes there are: add --nodes N", path=path)
        )
    try:
        with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as db:
            bodies = [orjson.loads(body) for (body,) in db.execute("SELECT body FROM incidents ORDER BY id")]
            closed = db.execute("SELECT incident, data FROM notes WHERE kind = 'incident.closed'").fetchall()
            first, last = db.execute("SELECT min(at), max(at) FROM notes").fetchone()
    except sqlite3.Error as error:
        raise ConfigError(t("{path}: cannot be read: {strerror}", path=path, strerror=error)) from error
    quiet = {incident for incident, data in closed if orjson.loads(data).get("quiet")}
    incidents = [
        (str(one["cause"]), str(one["node"] or node_of(one["scope"])))
        for one in bodies
        if one["state"] != "explained" and one["id"] not in quiet and not asked_for(one["cause"])
    ]
    leaf = dict.fromkeys(sorted({node for _, node in incidents if node}), "")
    return SiteHistory(
        leaf=_filled(leaf, nodes),
        rack={},
        days=days or ((last or 0.0) - (first or 0.0)) / 86400,
        incidents=incidents,
    )
