"""Commands that only read: status, incidents, nodes."""

from typing import Any

import click
from rich.console import Console, ConsoleOptions, RenderResult
from rich.measure import Measurement
from rich.table import Table
from rich.text import Text

from brain.cli.client import Client, for_client
from brain.cli.terminal import as_json, console, print_json

_COLOURS = {"P0": "bold red", "P1": "red", "P2": "yellow", "P3": "cyan"}


@click.command()
@as_json
@for_client
def status(client: Client, plain: bool) -> None:
    """The state of the brain, and the holds and modes in force."""
    found = client.get("status")
    if plain:
        print_json(found)
        return
    lines = [
        ("brain", f"{found['brain']} of cell {found['cell']}, {_role(found)}"),
        ("log", f"{found['seq']} inputs, newest at {found['log_time'] or 'none'}{_reading(found)}"),
        ("rules", f"{found['pack'] or 'none'}: {found['rules']} rules, {found['runbooks']} runbooks"),
        ("nodes", f"{found['nodes']}, of these unreachable {found['nodes_unreachable']}"),
        ("incidents", f"{found['incidents_open']} open"),
    ]
    if found["stopped"]:
        lines.insert(1, ("STOPPED", found["stopped"]))
    lines += [("TROUBLE", f"since {clock(one['since'])}: {one['text']}") for one in found["troubles"]]
    if found["malformed"]:
        lines.append(("malformed", f"{found['malformed']} messages could not be read"))
    lines += [("hold", _hold(hold)) for hold in found["holds"]]
    lines += [("mode", _mode(mode)) for mode in found["modes"]]
    lines += [
        ("waiting", f"{one['who']}: {one['text']} (needs a second person)") for one in found["proposals"]
    ]
    for label, text in lines:
        click.echo(f"{label:<10} {text}")


@click.command()
@click.option(
    "--all", "everything", is_flag=True, help="Closed ones too, and those that another incident explains."
)
@as_json
@for_client
def incidents(client: Client, everything: bool, plain: bool) -> None:
    """Open incidents, newest first."""
    found = client.get("incidents", query="all=1" if everything else "")["incidents"]
    if plain:
        print_json(found)
    elif not found:
        click.echo("no incidents" if everything else "nothing is open")
    else:
        console().print(IncidentList(found), crop=False)


@click.command()
@as_json
@for_client
def nodes(client: Client, plain: bool) -> None:
    """The nodes and their newest heartbeats."""
    found = client.get("nodes")["nodes"]
    if plain:
        print_json(found)
        return
    view = Table(box=None, pad_edge=False, header_style="dim")
    for name in ("NODE", "STATE", "BEAT", "AGENT", "SPOOLED", "DROPPED", "PLACE"):
        view.add_column(name, overflow="fold")
    for node in found:
        state = Text("alive", "green") if node["alive"] else Text("unreachable", "bold red")
        beat = "never" if node["beat_age_s"] is None else f"{node['beat_age_s']:.0f} s ago"
        place = " ".join(filter(None, (node["pod"], node["rack"], node["leaf"], node["chassis"])))
        counts = ["" if node[key] is None else str(node[key]) for key in ("spooled", "dropped")]
        view.add_row(Text(node["name"]), state, beat, Text(node["version"]), *counts, Text(place))
    console().print(view)


class IncidentList:
    """Incidents as a table where that is wide enough for each; else two lines for each. No identifier is cut."""

    def __init__(self, found: list[dict[str, Any]]) -> None:
        self._found = found

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        whole = _table(self._found)
        if Measurement.get(console, options.update(max_width=10_000), whole).maximum <= options.max_width:
            yield whole
            return
        for one in self._found:
            runs = f"{len(one['runs'])} runs" if one["runs"] else ""
            head = f"{one['id']}  {one['severity']}  {one['state']}  {clock(one['opened_at'])}  {runs}"
            yield Text(head.rstrip(), _COLOURS.get(one["severity"], ""), no_wrap=True, overflow="ignore")
            yield Text(f"    {one['cause']} at {_where(one)}", no_wrap=True, overflow="ignore")


def _where(one: dict[str, Any]) -> str:
    return str(one["scope"]) + (f" ({one['nodes']} nodes)" if one["nodes"] > 1 else "")


def _table(found: list[dict[str, Any]]) -> Table:
    view = Table(box=None, pad_edge=False, header_style="dim")
    for name in ("ID", "SEV", "STATE", "SINCE", "CAUSE", "WHERE", "RUNS"):
        view.add_column(name, no_wrap=True)
    for one in found:
        view.add_row(
            Text(one["id"]),
            Text(one["severity"], _COLOURS.get(one["severity"], "")),
            Text(one["state"]),
            clock(one["opened_at"]),
            Text(one["cause"]),
            Text(_where(one)),
            str(len(one["runs"])),
        )
    return view


def clock(at: str | None) -> str:
    """Formats a time of the API as `01-31 12:00:00Z`."""
    return f"{at[5:10]} {at[11:19]}Z" if at else ""


def _role(found: dict[str, Any]) -> str:
    if not found["connected"]:
        return "NOT CONNECTED to NATS"
    return "leads" if found["leads"] else f"stands by (leader: {found['leader'] or 'none yet'})"


def _reading(found: dict[str, Any]) -> str:
    return "" if found["caught_up"] else " (still reading)"


def _hold(hold: dict[str, Any]) -> str:
    until = f" until {clock(hold['until'])}" if hold["until"] else ""
    return (
        f"{hold['scope']}: {hold['why']} ({hold['id']} of {hold['who']}, since {clock(hold['since'])}{until})"
    )


def _mode(mode: dict[str, Any]) -> str:
    where = f"nodes {mode['nodes']}" if mode["nodes"] else "what is wider than a node"
    return f"{mode['mode']}: runbook {mode['runbook']} on {where} ({mode['who'] or 'configuration'})"
