"""Commands that only read: status, incidents, runs, nodes."""

from collections.abc import Sequence
from urllib.parse import urlencode

import click
from rich.console import Console, ConsoleOptions, RenderResult
from rich.measure import Measurement
from rich.table import Table
from rich.text import Text

from agent.shared.words import many, t
from brain.cli import completing
from brain.cli.answers import HoldJson, IncidentJson, ModeJson, NodeJson, RunJson, StatusJson
from brain.cli.client import Client, for_client
from brain.cli.deaf import deaf, nobody_leads
from brain.cli.terminal import as_json, console, hanging, padded, page_width, print_json

_INDENT = "    "
COLOURS = {"P0": "bold red", "P1": "red", "P2": "yellow", "P3": "cyan"}


@click.command()
@as_json
@for_client
def status(client: Client, plain: bool) -> None:
    """The state of the brain, and the holds and modes in force."""
    found: StatusJson = client.get("status")
    if plain:
        print_json(found)
        return
    lines = [
        (
            t("brain"),
            t("{brain} of cell {cell}, {role}", brain=found["brain"], cell=found["cell"], role=_role(found)),
        ),
        (
            t("log"),
            t(
                "{inputs}, newest at {log_time}{reading}",
                inputs=many(found["seq"], "input"),
                log_time=found["log_time"] or t("none"),
                reading=_reading(found),
            ),
        ),
        (t("rules"), f"{found['pack'] or t('none')}: {_rules(found)}"),
        (
            t("nodes"),
            t(
                "{nodes}, of these unreachable {nodes_unreachable}",
                nodes=found["nodes"],
                nodes_unreachable=found["nodes_unreachable"],
            ),
        ),
        (t("incidents"), t("{incidents_open} open", incidents_open=found["incidents_open"])),
    ]
    if old := out_of_date(found):
        lines.append((t("OUTDATED"), old))
    if found["stopped"]:
        lines.insert(1, (t("STOPPED"), found["stopped"]))
    if since := found.get("breaker_since"):  # 0.2.0 does not say it
        said = t(
            "since {since}: nothing disruptive begins before somebody says `gpuward reset`",
            since=clock(since),
        )
        lines.append((t("BREAKER"), said))
    if pages := found.get("pages_failing"):
        lines.append(
            (
                t("UNSENT"),
                t("{pages} that no channel takes: `gpuward explain` says why", pages=many(pages, "page")),
            )
        )
    lines += [
        (t("TROUBLE"), t("since {since}: {text}", since=clock(one["since"]), text=one["text"]))
        for one in found["troubles"]
    ]
    if found["malformed"]:
        lines.append(
            (
                t("malformed"),
                t("{messages} could not be read", messages=many(found["malformed"], "message")),
            )
        )
    lines += [(t("hold"), told_hold(hold)) for hold in found["holds"]]
    lines += [(t("mode"), _mode(mode)) for mode in found["modes"]]
    lines += [
        (t("waiting"), t("{who}: {text} (needs a second person)", who=one["who"], text=one["text"]))
        for one in found["proposals"]
    ]
    for label, text in lines:
        for line in hanging(f"{padded(label, 10)} ", text, page_width()):
            click.echo(line)


@click.command()
@click.option(
    "--all", "everything", is_flag=True, help="Closed ones too, and those that another incident explains."
)
@as_json
@for_client
def incidents(client: Client, everything: bool, plain: bool) -> None:
    """Open incidents, newest first."""
    found: list[IncidentJson] = client.get("incidents", query="all=1" if everything else "")["incidents"]
    if plain:
        print_json(found)
        return
    warn_of_old(client)
    if not found:
        click.echo(t("no incidents") if everything else t("nothing is open"))
    else:
        console().print(IncidentList(found), crop=False)


@click.command()
@click.option("--state", default="", help="Only those in this state, such as approval.")
@click.option(
    "--runbook", default="", help="Only those of these runbooks (glob).", shell_complete=completing.runbook
)
@click.option("--node", default="", help="Only those at these nodes (glob).", shell_complete=completing.node)
@click.option(
    "--incident", default="", help="Only those of this incident.", shell_complete=completing.any_incident
)
@click.option("--last", type=click.IntRange(1, 1000), default=100, show_default=True, help="How many.")
@as_json
@for_client
def runs(client: Client, state: str, runbook: str, node: str, incident: str, last: int, plain: bool) -> None:
    """The newest runs of runbooks."""
    given = {"state": state, "runbook": runbook, "node": node, "incident": incident, "limit": str(last)}
    query = urlencode({key: value for key, value in given.items() if value})
    found: list[RunJson] = client.get("runs", query=query)["runs"]
    if plain:
        print_json(found)
        return
    warn_of_old(client)
    if not found:
        click.echo(t("no runs"))
    else:
        console().print(RunList(found), crop=False)


@click.command()
@as_json
@for_client
def nodes(client: Client, plain: bool) -> None:
    """The nodes and their newest heartbeats."""
    found: list[NodeJson] = client.get("nodes")["nodes"]
    if plain:
        print_json(found)
        return
    warn_of_old(client)
    console().print(NodeList(found), crop=False)


def warn_of_old(client: Client) -> None:
    """Says so on stderr where what the brain shows is how things were: nodes that died since look alive there."""
    status: StatusJson = client.get("status")
    if old := out_of_date(status):
        click.echo(
            t("{brain} of cell {cell}: OUTDATED: {old}", brain=status["brain"], cell=status["cell"], old=old),
            err=True,
        )


def out_of_date(status: StatusJson) -> str:
    """Since when, and why, what the brain shows is old news; empty: it is not."""
    why = deaf(status)
    asof = (
        t("as of {log_time}", log_time=clock(status["log_time"])) if status["log_time"] else t("from before")
    )
    return t("nodes, incidents and runs are shown {asof}: {why}", asof=asof, why=why) if why else ""


class Listing:
    """A table where the terminal is wide enough for it; else a few lines for each row, broken between words only.

    No identifier is cut.
    """

    def __init__(
        self, heads: Sequence[str], rows: Sequence[Sequence[Text]], blocks: Sequence[tuple[Text, Text]]
    ) -> None:
        """`blocks`: what is shown of each row where the table does not fit, as its first line and the others."""
        self._heads, self._rows, self._blocks = heads, rows, blocks

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        whole = Table(box=None, pad_edge=False, header_style="dim")
        for name in self._heads:
            whole.add_column(name, no_wrap=True)
        for row in self._rows:
            whole.add_row(*row)
        if Measurement.get(console, options.update(max_width=10_000), whole).maximum <= options.max_width:
            yield whole
            return
        for first, rest in self._blocks:
            for text, indent in ((first, ""), (rest, _INDENT)):
                for line in hanging(indent, text.plain, options.max_width, below=_INDENT):
                    yield Text(line, text.style, no_wrap=True, overflow="ignore")


def _state(one: IncidentJson) -> Text:
    """As of a run: what waits for an approval is healed by nobody until somebody gives it."""
    return Text("approval", "yellow") if one.get("asks") else Text(one["state"])


class IncidentList(Listing):
    """Incidents; of several cells: with the cell of each."""

    def __init__(self, found: Sequence[IncidentJson], cells: Sequence[str] = ()) -> None:
        rows, blocks = [], []
        for number, one in enumerate(found):
            colour, since = COLOURS.get(one["severity"], ""), clock(one["opened_at"])
            named = (
                *map(Text, cells[number : number + 1]),
                *(Text(one["id"]), Text(one["severity"], colour), _state(one), Text(since)),
            )
            acked = one["pages"]["acked_by"]
            rows.append(
                (*named, Text(one["cause"]), Text(where(one)), Text(str(len(one["runs"]))), Text(acked))
            )
            runs = many(len(one["runs"]), "run") if one["runs"] else ""
            back = (
                t("it came back {times}", times=many(times - 1, "time"))
                if (times := one.get("times", 1)) > 1
                else ""
            )
            first = "  ".join(filter(None, (*(text.plain for text in named), runs, back)))
            blocks.append(
                (
                    Text(first, colour),
                    Text(
                        t(
                            "{cause} at {where}{what}",
                            cause=one["cause"],
                            where=where(one),
                            what=t(", {acked} has it", acked=acked) if acked else "",
                        )
                    ),
                )
            )
        heads: tuple[str, ...] = (
            t("ID"),
            t("SEV"),
            t("STATE"),
            t("SINCE"),
            t("CAUSE"),
            t("WHERE"),
            t("RUNS"),
        )
        if cells:
            heads = (t("CELL"), *heads)
        if any(one["pages"]["acked_by"] for one in found):
            heads = (*heads, t("WHO HAS IT"))
        super().__init__(heads, [row[: len(heads)] for row in rows], blocks)


class RunList(Listing):
    """Runs."""

    def __init__(self, found: Sequence[RunJson]) -> None:
        rows, blocks = [], []
        for one in found:
            colour = "yellow" if one["state"] in ("approval", "held") else ""
            rung = f"{one['rung']}/{len(one['rungs'])} {_rung(one)}" if one["rungs"] else ""
            named = (Text(one["id"]), Text(one["state"], colour), Text(clock(one["started_at"])))
            rows.append((*named, Text(one["runbook"]), Text(rung), Text(one["scope"])))
            first = "  ".join(text.plain for text in named)
            why = f": {one['why']}" if one["why"] else ""
            blocks.append(
                (
                    Text(first, colour),
                    Text(
                        t(
                            "{runbook} {rung} at {scope}{why}",
                            runbook=one["runbook"],
                            rung=rung,
                            scope=one["scope"],
                            why=why,
                        )
                    ),
                )
            )
        super().__init__((t("ID"), t("STATE"), t("SINCE"), t("RUNBOOK"), t("RUNG"), t("WHERE")), rows, blocks)


class NodeList(Listing):
    """Nodes."""

    def __init__(self, found: Sequence[NodeJson]) -> None:
        rows, blocks = [], []
        for node in found:
            state = Text("alive", "green") if node["alive"] else Text("unreachable", "bold red")
            beat = (
                t("never")
                if node["beat_age_s"] is None
                else t("{beat_age_s} s ago", beat_age_s=f"{node['beat_age_s']:.0f}")
            )
            place = " ".join(filter(None, (node["pod"], node["rack"], node["leaf"], node["chassis"])))
            counts = ["" if node[key] is None else str(node[key]) for key in ("spooled", "dropped")]
            cells = (beat, node["version"], *counts, place)
            rows.append((Text(node["name"]), state, *map(Text, cells)))
            named = zip((t("beat"), t("agent"), t("spooled"), t("dropped"), t("place")), cells, strict=True)
            rest = ", ".join(f"{name} {cell}" for name, cell in named if cell)
            blocks.append((Text(f"{node['name']}  {state.plain}", state.style), Text(rest)))
        super().__init__(
            (t("NODE"), t("STATE"), t("BEAT"), t("AGENT"), t("SPOOLED"), t("DROPPED"), t("PLACE")),
            rows,
            blocks,
        )


def _rung(one: RunJson) -> str:
    """The name of the rung that a run has come to."""
    return one["rungs"][min(one["rung"], len(one["rungs"])) - 1]["name"]


def where(one: IncidentJson) -> str:
    """Where an incident is, with the number of its nodes if it is wider than one."""
    return str(one["scope"]) + (t(" ({nodes} nodes)", nodes=one["nodes"]) if one["nodes"] > 1 else "")


def clock(at: str | None) -> str:
    """Formats a time of the API as `01-31 12:00:00Z`."""
    return f"{at[5:10]} {at[11:19]}Z" if at else ""


def _role(found: StatusJson) -> str:
    if not found["connected"]:
        return t("NOT CONNECTED to NATS")
    if nobody_leads(found):
        return t("NOBODY LEADS (last leader: {leader})", leader=found["leader"] or t("none yet"))
    return (
        t("leads")
        if found["leads"]
        else t("stands by (leader: {leader})", leader=found["leader"] or t("none yet"))
    )


def _rules(found: StatusJson) -> str:
    both = f"{many(found['rules'], 'rule')}, {many(found['runbooks'], 'runbook')}"
    return t("{both}; matched by {matcher}", both=both, matcher=found["matcher"])


def _reading(found: StatusJson) -> str:
    return "" if found["caught_up"] else t(" (still reading)")


def told_hold(hold: HoldJson) -> str:
    """Where, why, by whom and until when."""
    until = t(" until {until}", until=clock(hold["until"])) if hold["until"] else ""
    return t(
        "{scope}: {why} ({id} of {who}, since {since}{until})",
        scope=hold["scope"],
        why=hold["why"],
        id=hold["id"],
        who=hold["who"],
        since=clock(hold["since"]),
        until=until,
    )


def _mode(mode: ModeJson) -> str:
    where = t("nodes {nodes}", nodes=mode["nodes"]) if mode["nodes"] else t("what is wider than a node")
    who = f"{mode['who'] or t('configuration')}{(', since ' + mode['why'] if mode['why'] else '')}"
    return t(
        "{mode}: runbook {runbook} on {where} ({who})",
        mode=mode["mode"],
        runbook=mode["runbook"],
        where=where,
        who=who,
    )
