"""What a shell completes beside commands and options: incidents, nodes, holds and runbooks, as the brain knows them now.

A brain that does not answer at once, or refuses, completes nothing, and says nothing.
"""

import re
import threading
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any
from urllib.parse import quote

import click
from click.shell_completion import CompletionItem

from agent.shared.words import t
from brain.cli import own_brain
from brain.cli.client import Client
from brain.hold_words import to_hold

WITHIN_S = 0.3
MOST = 200
# What a shell takes as it stands: it expands the value unquoted. What a node or a job is called could be anything.
_PLAIN = re.compile(r"[\w.:/@-]+", re.ASCII)
Value = tuple[str, str]  # and what it is, for shells that show it
Ask = Callable[[Client, str], Iterable[Value]]
Completer = Callable[[click.Context, click.Parameter, str], list[CompletionItem]]


def _incidents(client: Client, over: str) -> list[Value]:
    found = client.get("incidents", query=f"limit={MOST}{over}")["incidents"]
    return [
        (
            one["id"],
            t(
                "{severity} {cause} at {scope}",
                severity=one["severity"],
                cause=one["cause"],
                scope=one["scope"],
            ),
        )
        for one in found
    ]


def _any_incident(client: Client, _: str) -> list[Value]:
    return _incidents(client, "&all=1")


def _open_incident(client: Client, _: str) -> list[Value]:
    return _incidents(client, "")


def _waiting(client: Client, _: str) -> list[Value]:
    found = client.get("runs", query=f"limit={MOST}&state=approval")["runs"]
    return [
        (one["id"], t("{runbook} at {scope}", runbook=one["runbook"], scope=one["scope"])) for one in found
    ]


def _node(client: Client, begun: str) -> list[Value]:
    found = client.get("nodes", query=f"limit={MOST}&name={quote(begun, safe='')}*")["nodes"]
    return [(one["name"], "" if one["alive"] else t("unreachable")) for one in found]


def _scope(client: Client, begun: str) -> list[Value]:
    nodes = _node(client, begun.removeprefix("node/")) if begun.startswith("node/") else []
    wide = [("all", "everything")] + [
        (to_hold(one["node"], one["scope"]), f"{one['id']} {one['cause']}")
        for one in client.get("incidents", query=f"limit={MOST}")["incidents"]
    ]
    return [*wide, *((f"node/{name}", what) for name, what in nodes)]


def _hold(client: Client, _: str) -> list[Value]:
    holds = client.get("status")["holds"]
    return [(one["scope"], one["why"]) for one in holds] + [(one["id"], one["scope"]) for one in holds]


def _runbook(client: Client, _: str) -> list[Value]:
    return [(one["name"], one["summary"]) for one in client.get("runbooks")["runbooks"]]


def _from(ask: Ask) -> Completer:
    """Returns what click asks for the values of a parameter."""

    def complete(ctx: click.Context, _: click.Parameter, incomplete: str) -> list[CompletionItem]:
        given = ctx.obj or of_root(ctx)
        values = dict(
            value for value in _within(lambda: ask(given, incomplete)) if _PLAIN.fullmatch(value[0])
        )
        return [
            CompletionItem(value, help=what or None)
            for value, what in values.items()
            if value.startswith(incomplete)
        ]

    return complete


def of_root(ctx: click.Context) -> Client:
    """The client by the options before the command: nobody runs them while a line is being completed."""
    given: dict[str, Any] = ctx.find_root().params
    token, authority = given.get("token_file"), given.get("ca_file")
    return Client(
        url := given.get("url") or "",
        Path(token) if token else None,
        Path(authority) if authority else None,
        place=None if url else own_brain.place(),
    )


def _within(ask: Callable[[], Iterable[Value]]) -> list[Value]:
    """What a brain says in time; nothing where it does not, or refuses."""
    found: list[Value] = []

    def asked() -> None:
        try:
            found.extend(ask())
        except (click.ClickException, OSError, ValueError, LookupError, TypeError):
            return  # a person types: no word of ours may stand in their line

    thread = threading.Thread(target=asked, daemon=True)
    thread.start()
    thread.join(WITHIN_S)
    return [] if thread.is_alive() else found


def _rule(client: Client, _: str) -> list[Value]:
    return [(one["name"], one["scope"]) for one in client.get("rules")["rules"]]


def _explained(client: Client, begun: str) -> list[Value]:
    """Incidents; with --why-not scopes begin with their type."""
    return _scope(client, begun) if "/" in begun else _any_incident(client, begun)


rule = _from(_rule)
explained = _from(_explained)
any_incident = _from(_any_incident)
open_incident = _from(_open_incident)
waiting_run = _from(_waiting)
node = _from(_node)
scope = _from(_scope)
hold = _from(_hold)
runbook = _from(_runbook)
