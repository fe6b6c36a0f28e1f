"""Makes the model of a node from what the engine knows and the history has. Runs beside the event loop."""

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from agent.contract.components import NODE
from brain.console import shapes, speech
from brain.console.api.base import TwoLanguagesShape
from brain.console.api.fleet_shapes import NodeWord
from brain.console.api.node_shapes import (
    CardShape,
    IncidentBriefShape,
    InventoryShape,
    NodeDetailShape,
    PartPlaceShape,
    PartShape,
    RunBriefShape,
)
from brain.console.brain_view import History
from brain.console.fleet.columns import most_urgent, word
from brain.console.fleet.facts import OVER
from brain.console.node.facts import NodeFacts
from brain.core.pack.topology import node_of

PAST = 100  # incidents, runs and words of people
_OF_PART = 50
_BEFORE = 20
_LOOKED_AT = 500  # incidents of a node
_ELSEWHERE = 8  # other places of a card whose incidents are looked at
Json = Mapping[str, Any]


def node(facts: NodeFacts, history: History) -> NodeDetailShape | None:
    """Returns the node; None: nobody knows of it."""
    name = facts.node.name
    told = history.parts_of(name)
    incidents = history.incidents_of(name, _LOOKED_AT)
    if not (facts.known or facts.place or facts.node.alive or told or incidents):
        return None
    whole = [one for one in told if one["component"] == NODE]
    cards = list(_cards(facts, history, told, incidents))
    ids = {one["id"] for one in incidents}
    said = [one for one in history.said() if node_of(one["scope"]) == name or one["incident"] in ids]
    unknown = list(_not_known(facts, whole, cards))
    return NodeDetailShape(
        node=facts.node,
        word=_word(facts),
        booted_at=shapes.iso(facts.booted_at),
        fabric=facts.place.fabric if facts.place else "",
        inventory=_inventory(whole[0]) if whole else None,
        before=[_inventory(one) for one in whole[1 : _BEFORE + 1]],
        cards=cards,
        incidents=list(facts.incidents),
        past=[_incident(one) for one in incidents if one["state"] in OVER][:PAST],
        runs=[_run(one) for one in history.runs_on(name, PAST)],
        holds=list(facts.holds),
        drains=list(facts.drains),
        jobs=None if facts.jobs is None else list(facts.jobs),
        jobs_at=shapes.iso(facts.jobs_at) if facts.jobs is not None else None,
        said=[shapes.note(one) for one in said[:PAST]],
        not_known=[one.en for one in unknown],
        not_known_texts=unknown,
    )


def _word(facts: NodeFacts) -> NodeWord:
    words = [word(one.state, asks=one.asks) for one in facts.opened]
    if facts.drains:
        words.append(NodeWord.DRAINED)
    if facts.known and not facts.node.alive:
        words.append(NodeWord.UNREACHABLE)
    return most_urgent(words, NodeWord.WELL if facts.known or facts.node.alive else NodeWord.UNKNOWN)


def _cards(
    facts: NodeFacts, history: History, told: Sequence[Json], incidents: Sequence[Json]
) -> Iterator[PartShape]:
    """The newest row of each part; one that another part's row has replaced is in `places` of its serial number."""
    name = facts.node.name
    newest: dict[str, Json] = {}
    for one in told:
        if one["component"] != NODE:
            newest.setdefault(one["component"], one)
    for component, one in sorted(newest.items()):
        scope = _scope(name, component)
        places = history.places_of(one["serial"]) if one["serial"] else []
        words = [word(each.state, asks=each.asks) for each in facts.opened if _at(each.scope, scope)]
        yield PartShape(
            component=component,
            serial=one["serial"],
            told=one["data"],
            since=shapes.iso(one["since"]),
            seen=shapes.iso(one["seen"]),
            word=most_urgent(words, NodeWord.WELL),
            incidents=_of_part(history, name, scope, told, places, incidents),
            places=[_place(place) for place in places],
        )


def card(serial: str, history: History) -> CardShape | None:
    """Returns a card, as the node tells that named it last; None: no node ever has."""
    places = history.places_of(serial)
    if not places:
        return None
    name, component = places[0]["node"], places[0]["component"]
    told = history.parts_of(name)
    newest = next((one["serial"] for one in told if one["component"] == component), "")
    incidents = history.incidents_of(name, _LOOKED_AT)
    found = _of_part(history, name, _scope(name, component), told, places, incidents)
    ids = {one.id for one in found}
    nodes = list(dict.fromkeys(place["node"] for place in places))[: _ELSEWHERE + 1]
    runs = [run for node in nodes for run in history.runs_on(node, PAST) if run["incident"] in ids]
    return CardShape(
        serial=serial,
        node=name,
        component=component,
        there=newest == serial,
        told=places[0]["data"],
        places=[_place(place) for place in places],
        incidents=found,
        runs=[_run(one) for one in sorted(runs, key=lambda one: (-one["started_at"], one["id"]))],
    )


def _place(place: Json) -> PartPlaceShape:
    return PartPlaceShape(
        node=place["node"],
        component=place["component"],
        since=shapes.iso(place["since"]),
        seen=shapes.iso(place["seen"]),
    )


def _of_part(
    history: History,
    name: str,
    scope: str,
    told: Sequence[Json],
    places: Sequence[Json],
    incidents: Sequence[Json],
) -> list[IncidentBriefShape]:
    """Of a card with a serial number: what opened where it was, while it was there. What another node says of the same number
    takes nothing away from this one: a node speaks for itself only (law 15).
    """
    if not places:
        return [_incident(one) for one in incidents if _at(one["scope"], scope)][:_OF_PART]
    known: dict[str, Sequence[Json]] = {name: incidents}
    found: dict[str, Json] = {}
    later = math.inf  # when it was told to be elsewhere; places come newest first
    for place in places:
        node, component, since = place["node"], place["component"], place["since"]
        if node not in known and len(known) <= _ELSEWHERE:
            known[node] = history.incidents_of(node, _LOOKED_AT)
        rows = told if node == name else ()
        replaced = min(
            (one["since"] for one in rows if one["component"] == component and one["since"] > since),
            default=math.inf,
        )
        until = replaced if node == name else later
        for one in known.get(node, ()):
            if _at(one["scope"], _scope(node, component)) and since <= one["opened_at"] < until:
                found[one["id"]] = one
        later = since
    newest = sorted(found.values(), key=lambda one: (-one["opened_at"], one["id"]))
    return [_incident(one) for one in newest[:_OF_PART]]


def _scope(node: str, component: str) -> str:
    kind, _, name = component.partition("/")
    return f"{kind}/{node}/{name}"


def _at(scope: str, part: str) -> bool:
    """Is the scope this part, or a port of this network card?"""
    return scope == part or (
        part.startswith("nic/") and scope.startswith(f"port/{part.removeprefix('nic/')}.")
    )


def _not_known(
    facts: NodeFacts, whole: Sequence[Json], cards: Sequence[PartShape]
) -> Iterator[TwoLanguagesShape]:
    if not facts.known:
        yield TwoLanguagesShape(
            en="It has never been heard: the topology or the history names it.",
            zh="从未收到过它的消息：名称来自拓扑或历史。",
        )
    if facts.place is None:
        yield TwoLanguagesShape(en="The topology does not say where it stands.", zh="拓扑没有说明它的位置。")
    if not whole:
        yield TwoLanguagesShape(
            en="It has told no inventory since this brain keeps them; an agent tells it at its start.",
            zh="自本 brain 开始保存清单以来，它没有上报过；agent 在启动时上报。",
        )
    yield TwoLanguagesShape(
        en="Agents do not read the chassis' serial number: what is told of the node is told of its name, whatever chassis "
        "has it.",
        zh="agent 不读取机箱序列号：关于节点的一切都对应它的名称，无论哪个机箱使用该名称。",
    )
    nameless = [one.component for one in cards if not one.serial]
    if nameless:
        shown = ", ".join(nameless[:8])
        yield TwoLanguagesShape(
            en=f"Without a serial number: {shown}. What is told of them is told of their place, whatever card was in it.",
            zh=f"没有序列号：{shown}。关于它们的一切都对应其位置，无论当时插的是哪张卡。",
        )
    if facts.jobs is None:
        yield TwoLanguagesShape(
            en="Nobody has asked the scheduler lately which jobs run on it: that is done before something disruptive.",
            zh="近期没有向调度器询问其上运行哪些作业：只在执行有影响的操作之前询问。",
        )


def _inventory(row: Json) -> InventoryShape:
    return InventoryShape(told=row["data"], since=shapes.iso(row["since"]), seen=shapes.iso(row["seen"]))


def _incident(raw: Json) -> IncidentBriefShape:
    return IncidentBriefShape(
        id=raw["id"],
        state=raw["state"],
        severity=raw["severity"],
        cause=raw["cause"],
        scope=raw["scope"],
        opened_at=shapes.iso(raw["opened_at"]),
        closed_at=shapes.iso(raw["closed_at"]),
        closed_why=speech.told(raw["closed_why"]),
    )


def _run(raw: Json) -> RunBriefShape:
    return RunBriefShape(
        id=raw["id"],
        incident=raw["incident"],
        runbook=raw["runbook"]["name"],
        state=raw["state"],
        why=speech.told(raw["why"]),
        scope=raw["scope"],
        started_at=shapes.iso(raw["started_at"]),
        ended_at=shapes.iso(raw["ended_at"]),
    )
