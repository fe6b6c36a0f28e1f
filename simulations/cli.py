"""`gpuward up` and `gpuward drill`."""

import asyncio
import json
import signal
import time
from pathlib import Path
from typing import Any

import click

from agent.contract.errors import ConfigError
from agent.shared.words import t
from brain.cli.answers import NoteJson
from brain.cli.client import Client, for_client
from brain.cli.terminal import hanging, page_width
from brain.cli.watch import line
from brain.cli.written import written
from simulations import local_site
from simulations.up import up as run_up

WAIT_S = 600.0
MAX_PACE = 5.0  # a simulated boot takes 4 s, and the shortest verification after one 30 s
APPEAR_S = 20.0  # by then most drills have an incident; others must last for a minute or more
POLL_S = 0.3
_OVER = ("closed", "explained")
_ASKS = "needs_human"


@click.command()
@click.option("--nodes", type=click.IntRange(0, 2000), default=16, show_default=True, help="Simulated nodes.")
@click.option(
    "--data",
    type=click.Path(path_type=Path, file_okay=False),
    default=Path(".gpuward"),
    show_default=True,
    help="Folder of everything that is kept; a later `up` goes on from it.",
)
@click.option(
    "--port", type=click.IntRange(1, 65535), default=8470, show_default=True, help="Port of the console."
)
@click.option(
    "--nats-port", type=click.IntRange(0, 65535), default=0, help="Port of NATS; default: any free one."
)
@click.option(
    "--pace",
    type=click.FloatRange(1, MAX_PACE),
    default=MAX_PACE,
    show_default=True,
    help="How many times shorter verifications and resolve delays are than in production, as simulated machines recover "
    "faster than real ones; 1: rules and runbooks unchanged.",
)
def up(nodes: int, data: Path, port: int, nats_port: int, pace: float) -> None:
    """Everything on one machine: NATS, the brain, the agent of this machine, and simulated nodes.

    This machine is only observed; simulated nodes are healed. Listens on loopback only. Ctrl-C stops it.
    """
    try:
        site = local_site.prepare(data, console_port=port, nodes=nodes)
        status = asyncio.run(run_up(site, click.echo, nats_port=nats_port, pace=pace))
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # all has stopped: there is nothing left to interrupt
    except ConfigError as error:
        click.echo(f"gpuward up: {error}", err=True)
        raise SystemExit(2) from error
    raise SystemExit(status)


@click.command()
@click.argument("name", required=False)
@click.option("--node", default="", help="A simulated node; default: the first healthy one.")
@click.option("--list", "show", is_flag=True, help="Lists the drills.")
@click.option("--wait", is_flag=True, help="Follows the incident until it is closed; exit 1 if it is not.")
@click.option(
    "--within", type=float, default=WAIT_S, show_default=True, help="How long --wait waits, seconds."
)
@click.option("--json", "plain", is_flag=True, help="JSON, for scripts.")
@for_client
def drill(
    client: Client, name: str | None, node: str, show: bool, wait: bool, within: float, plain: bool
) -> None:
    """Injects the drill NAME into a simulated node of a running `gpuward up`."""
    if show or not name:
        _list(client.get("drill"), plain)
        return
    before = {one["id"]: one["times"] for one in client.get("incidents", query="all=1")["incidents"]}
    injected = client.post("drill", body={"name": name, "node": node})
    if plain:
        click.echo(json.dumps(injected))
    else:
        click.echo(
            t(
                "{name} on {nodes}: {summary}",
                name=name,
                nodes=_nodes(injected["nodes"]),
                summary=written(injected["summary"]),
            )
        )
        click.echo(t("How it ends: {ends}.", ends=written(injected["ends"]).removesuffix("。")))
        if injected["breaks"] and not wait:
            click.echo(
                t(
                    "Follow it with `gpuward watch` or `gpuward incidents`; `gpuward drill NAME --wait` "
                    "follows it for you."
                )
            )
    if not wait or not injected["breaks"]:
        return
    try:
        if not _follow(client, before, injected, within, plain):
            raise SystemExit(1)
    except KeyboardInterrupt:
        click.echo(
            t("\nNo longer followed; the drill goes on. `gpuward incidents` shows its state."), err=True
        )
        raise


def _follow(
    client: Client, before: dict[str, int], injected: dict[str, Any], within: float, plain: bool
) -> bool:
    """Prints the notes of the drill's incidents until all are over; False when they need a person or more time. `before`: which
    incidents there were, and how often each was opened: a fault that comes back opens its incident again (decision 85).
    """
    seen: set[str] = set()
    deadline, appear = time.monotonic() + within, time.monotonic() + APPEAR_S
    while time.monotonic() < deadline:
        found = [
            one
            for one in client.get("incidents", query="all=1")["incidents"]
            if one["times"] > before.get(one["id"], 0)
        ]
        mine = [one for one in reversed(found) if _about(one, injected["nodes"])]  # oldest first
        for incident in mine:
            for note in _this_time(client.get("explain", incident["id"])["notes"]):
                if note["id"] not in seen:
                    seen.add(note["id"])
                    click.echo(json.dumps(note) if plain else line(note))
        if mine and all(incident["state"] in (*_OVER, _ASKS) for incident in mine):
            left = [one["id"] for one in mine if one["state"] == _ASKS]
            if left:
                click.echo(t("It needs a person: `gpuward explain {left}`", left=left[0]), err=True)
            elif not plain:
                closed = next((one for one in mine if one["state"] == "closed"), mine[0])
                click.echo(t("It is over: `gpuward explain {id}` shows the whole chain.", id=closed["id"]))
            return not left
        if not mine and time.monotonic() > appear:
            appear = deadline
            click.echo(
                t(
                    "No incident yet: some faults must last for a minute or more before a rule takes them for "
                    "one. Waiting ..."
                ),
                err=True,
            )
        time.sleep(POLL_S)
    if seen:
        click.echo(t("Not over in time: `gpuward incidents` shows its state."), err=True)
    else:
        click.echo(
            t("No incident within {within} s. Some faults need longer: --within", within=f"{within:g}"),
            err=True,
        )
    return False


def _this_time(notes: list[NoteJson]) -> list[NoteJson]:
    """Those since the incident was opened for the last time."""
    begins = [place for place, note in enumerate(notes) if note["kind"] == "incident.reopened"]
    return notes[begins[-1] :] if begins else notes


def _about(incident: dict[str, Any], nodes: list[str]) -> bool:
    """Whether this incident can come from a drill on these nodes; one whose scope is wider than a node can."""
    return not incident["node"] or incident["node"] in nodes


def _list(answer: dict[str, Any], plain: bool) -> None:
    if plain:
        click.echo(json.dumps(answer["drills"]))
        return
    for row in answer["drills"]:
        where = "" if row["affects"] == "one" else t(" (all nodes)")
        click.echo(f"{row['name']}{where}")
        ends = written(row["ends"]).removesuffix("。")
        for text in (written(row["summary"]), t("How it ends: {ends}.", ends=ends)):
            click.echo("\n".join(hanging("    ", text, page_width())))


def _nodes(names: list[str]) -> str:
    return (
        ", ".join(names)
        if len(names) < 4
        else t("{names} .. {names2} ({names3} nodes)", names=names[0], names2=names[-1], names3=len(names))
    )
