"""Whether a scope that an operator names exists. A hold on a misspelt scope would stop nothing, and nobody would know."""

from collections.abc import Collection, Mapping
from difflib import get_close_matches

from brain.core.pack.spec import Place
from brain.core.pack.topology import CELL, JOB, RELEASE, SCOPES, WIDE, node_of, type_of
from brain.core.said import said

ALL = "all"
_SHOWN = 5  # names that a text lists


def mistake(scope: str, nodes: Collection[str], places: Mapping[str, Place]) -> str:
    """Returns what is wrong with a scope and what could be meant; empty: it exists.

    `nodes`: the nodes that have been heard of. A component of a node is not checked: one that is lost may be held too.
    """
    if scope in (ALL, CELL):
        return ""
    kind, name = type_of(scope), scope.partition("/")[2]
    known = sorted({*nodes, *places})
    if wrong := form(scope):
        return (
            said("no scope {scope}: did you mean node/{name}?", scope=repr(scope), name=scope)
            if scope in known
            else wrong
        )
    if kind in WIDE:
        known = sorted({name for place in (*places.values(), Place()) for name in place.names(kind)})
        return (
            ""
            if name in known
            else said("no {kind} {name}{have}", kind=kind, name=repr(name), have=have(name, known))
        )
    if kind == JOB:
        return said("no scope {scope}: which nodes a job runs on changes; name the nodes", scope=repr(scope))
    if kind == RELEASE:
        return said("no scope {scope}: which nodes have a version changes; name the nodes", scope=repr(scope))
    node = node_of(scope)
    if node not in known:
        return said("no node {name}{have}", name=repr(node), have=have(node, known))
    if kind != "node" and not name.partition("/")[2]:
        return said(
            "no scope {scope}: a {kind} is named {kind}/{node}/NAME", scope=repr(scope), kind=kind, node=node
        )
    return ""


def form(scope: str) -> str:
    """The same of a scope alone: could it exist?"""
    kind, name = type_of(scope), scope.partition("/")[2]
    if scope in (ALL, CELL) or (name and kind in SCOPES):
        return ""
    forms = "node/NODE, gpu/NODE/PCI-ADDRESS, leaf/NAME"
    return said(
        "no scope {scope}: want {all} or TYPE/NAME, such as {forms} (types: {types})",
        scope=repr(scope),
        all=ALL,
        forms=forms,
        types=", ".join(SCOPES),
    )


def have(name: str, known: list[str], *, shown: int = _SHOWN) -> str:
    """Returns the end of an error: names that may be meant, the closest first, or the first `shown` of them."""
    close = get_close_matches(name, known, n=_SHOWN)
    if close:
        return said(": did you mean {names}?", names=", ".join(close))
    if not known:
        return said(": none is known")
    return said(
        " (have: {names})", names=", ".join((*known[:shown], *(["..."] if len(known) > shown else [])))
    )
