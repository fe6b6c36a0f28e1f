"""Accounts and permissions on the NATS server: an account for each node, and one for the brains.

A node's account has its own offers, which the server moves into the node's lane, its commands and its acknowledgements, and
nothing else: no JetStream, no subject of another account, and its reply subjects are rewritten by the server at the border
(docs/decisions/0027, and measured in docs/security.md). The permissions of its user say the same once more.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from agent.contract import subjects

BRAINS = "WARD"
SYSTEM = "SYS"
# A message of a node: a chunk of evidence with its head is the largest.
MAX_PAYLOAD = 2 * subjects.MAX_BUNDLE_CHUNK
THRESHOLD_S = 1
_CONNECTIONS = 4  # of one node's account: one, and those of a restart that are not gone yet
_WHATS = (subjects.EVENT, subjects.EVIDENCE)
# Exactly these: with any other last token a node would have as many places in its lane as it has ideas.
OFFERS = (subjects.EVENT, subjects.BEAT, subjects.ANSWER, subjects.EVIDENCE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Member:
    """One user of the bus beside the brains: a node, or a process that stands for several nodes (simulations).

    `name` names its account; `public` is its NKEY (U...).
    """

    name: str
    public: str
    nodes: tuple[str, ...]

    @property
    def account(self) -> str:
        """The name of its account."""
        return account_name(self.name)


def account_name(member: str) -> str:
    """The name of a member's account."""
    return f"N_{member}"


def accounts(cell: str, brain: str, members: Iterable[Member], *, also: Sequence[str] = ()) -> dict[str, Any]:
    """The server's `accounts` block. `brain`: the brains' public NKEY; `also`: others of theirs, while it is rotated."""
    members = list(members)
    found: dict[str, Any] = {
        SYSTEM: {"users": []},
        BRAINS: {
            "jetstream": "enabled",
            "users": [{"nkey": public} for public in (brain, *also)],
            "exports": _exports(cell, members),
        },
    }
    for member in members:
        found[member.account] = account(cell, member)
    return found


def account(cell: str, member: Member) -> dict[str, Any]:
    """One member's entry in the `accounts` block."""
    return {
        "users": [{"nkey": member.public, "permissions": permissions(cell, member.nodes)}],
        "limits": {
            "max_connections": _CONNECTIONS,
            "max_subscriptions": _CONNECTIONS * (2 + len(_subscriptions(cell, member.nodes))),
            "max_payload": MAX_PAYLOAD,
        },
        "imports": [one for node in member.nodes for one in _imports(cell, node)],
    }


def exports(cell: str, lanes: Collection[int] = range(subjects.LANES)) -> list[dict[str, Any]]:
    """What the brains' account has for nodes of these lanes; to whom, is not said yet."""
    return [
        # The threshold: how long the server remembers a reply subject that nobody answers.
        *(
            {"service": subjects.lane_subject(cell, number), "response_threshold": f"{THRESHOLD_S}s"}
            for number in lanes
        ),
        *(
            {"service": subjects.parts_subject(cell, number), "response_threshold": f"{THRESHOLD_S}s"}
            for number in sorted({number % subjects.PARTS_LANES for number in lanes})
        ),
        {"stream": subjects.command(cell, "*")},
        {"stream": subjects.acknowledgement(cell, "*", "*")},
    ]


def permissions(cell: str, nodes: tuple[str, ...]) -> Mapping[str, Any]:
    """What the user of these nodes may publish and subscribe to."""
    return {
        "publish": {"allow": [subjects.offer(cell, node, what) for node in nodes for what in OFFERS]},
        "subscribe": {"allow": _subscriptions(cell, nodes)},
    }


def _subscriptions(cell: str, nodes: tuple[str, ...]) -> list[str]:
    return [
        *(subjects.command(cell, node) for node in nodes),
        *(subjects.acknowledgement(cell, node, what) for node in nodes for what in _WHATS),
    ]


def _exports(cell: str, members: list[Member]) -> list[dict[str, Any]]:
    """What the brains' account has for the nodes. An account imports only its own node's part of it, see _imports.

    A lane is for the accounts whose nodes have it: all of them in all 64 would be most of a large cell's configuration.
    """
    if not members:
        return []
    lanes: dict[int, list[str]] = {}
    parts: dict[int, list[str]] = {}
    for member in members:
        numbers = {subjects.lane_of(node) for node in member.nodes}
        for number in numbers:
            lanes.setdefault(number, []).append(member.account)
        for number in {number % subjects.PARTS_LANES for number in numbers}:
            parts.setdefault(number, []).append(member.account)
    names = [member.account for member in members]
    by_lane = [accounts for found in (lanes, parts) for _, accounts in sorted(found.items())]
    return [
        export | {"accounts": accounts}
        for export, accounts in zip(exports(cell, sorted(lanes)), [*by_lane, names, names], strict=True)
    ]


def _imports(cell: str, node: str) -> list[dict[str, Any]]:
    def of_brains(subject: str) -> dict[str, str]:
        return {"account": BRAINS, "subject": subject}

    return [
        {"service": of_brains(subjects.lane(cell, node, "*")), "to": subjects.offer(cell, node, "*")},
        {
            "service": of_brains(subjects.lane(cell, node, subjects.EVIDENCE)),
            "to": subjects.offer(cell, node, subjects.EVIDENCE),
        },
        {"stream": of_brains(subjects.command(cell, node))},
        {"stream": of_brains(subjects.acknowledgement(cell, node, "*"))},
    ]
