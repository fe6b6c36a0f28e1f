"""Operator commands: each becomes an input on the log, with the name of whoever logged in."""

import re
import shlex
import sys
from collections.abc import Iterator
from typing import Any

import click

from agent.shared.words import language, t
from brain.cli import completing
from brain.cli.answers import ChainJson, SaidJson, WantedApprovalJson
from brain.cli.client import Client, for_client
from brain.cli.queries import clock
from brain.cli.terminal import as_json, print_json, waits
from brain.console.words import Words

_UNITS_S = {"s": 1, "m": 60, "h": 3600, "d": 86400}


class Duration(click.ParamType[float]):
    """`90s`, `30m`, `1h30m` or `1d`. A number without a unit is refused: people mean hours, and would get seconds."""

    name = "duration"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """Returns seconds."""
        parts = re.findall(r"(\d+(?:\.\d+)?)([smhd])", str(value))
        whole_s = sum(float(number) * _UNITS_S[unit] for number, unit in parts)
        if "".join(map("".join, parts)) != str(value) or whole_s <= 0:
            self.fail(
                t("{value} is not a duration such as 90s, 30m, 1h30m or 1d", value=repr(value)), param, ctx
            )
        return whole_s


@click.command()
@click.argument("scope", shell_complete=completing.scope)
@click.option("--why", required=True, help="What others must know about it.")
@click.option("--for", "for_s", type=Duration(), help="Ends by itself after this time, e.g. 2h.")
@as_json
@for_client
def hold(client: Client, scope: str, why: str, for_s: float | None, plain: bool) -> None:
    """Nothing disruptive is done in SCOPE until it is released: node/n1, leaf/l3, rack/r7, gpu/n1/0000:3b:00,
    or all.
    """
    args: dict[str, str | float] = {"scope": scope, "why": why}
    if for_s is not None:
        args["for_s"] = for_s
    _show(client.submit("hold", **args), plain)


@click.command()
@click.argument("scope", shell_complete=completing.hold)
@as_json
@for_client
def release(client: Client, scope: str, plain: bool) -> None:
    """Ends the hold on SCOPE. Where several holds are on it, name one by its id (`gpuward status` lists them)."""
    _show(client.submit("release", scope=scope), plain)


@click.command()
@click.argument("id_", metavar="ID", shell_complete=completing.waiting_run)
@click.option("--rung", default="", help="The step that is approved, as the page named it, and no other one.")
@as_json
@for_client
def approve(client: Client, id_: str, rung: str, plain: bool) -> None:
    """Approves the next step of the run of ID (a run or its incident). Without --rung it shows which one that is, and asks."""
    if rung:
        _show(client.submit("approve", id=id_, rung=rung), plain)
        return
    wanted = _wanted(client, id_)
    line = f"gpuward approve {wanted['run']} --rung {shlex.quote(wanted['rung'])}"
    if plain or not _asked():
        raise click.UsageError(
            t("say which step is approved; it is {what} now: {line}", what=wanted["what"], line=line)
        )
    for text in _exactly(Words(language()), wanted):
        click.echo(text)
    click.confirm(t("Approve this?"), abort=True)
    _show(client.submit("approve", id=wanted["run"], rung=wanted["rung"], seen=wanted["seen"]), plain)


def _asked() -> bool:
    """Is there a person whom a question reaches?"""
    return sys.stdin.isatty()


def _exactly(words: Words, wanted: WantedApprovalJson) -> Iterator[str]:
    """Yields what an approval would be for, in the console's words: the step, what it disrupts, which jobs are there, and why."""
    yield words("approve-what")
    yield f"  {wanted['what']}"
    never = f" · {words('never-twice')}" if wanted["repeat"] == "never" else ""
    disrupts = words.known(f"disrupts-{wanted['disrupts']}") or wanted["disrupts"]
    yield f"{words('disrupts')}: {disrupts}{never}"
    jobs = wanted["jobs"]
    if jobs:
        yield f"{words('jobs-there')} {', '.join(jobs)}"
    else:
        yield words("jobs-unknown" if jobs is None else "jobs-none")
    yield wanted["why"]
    yield words("approve-ends", span=words.span(wanted["valid_s"]))


def _wanted(client: Client, id_: str) -> WantedApprovalJson:
    """What the run of an id (a run or its incident) waits for. ClickException: for nothing."""
    found: ChainJson = client.get("explain", id_)
    runs = [run for run in found["runs"] if id_ == run["id"]] or found["runs"]
    for run in reversed(runs):
        if run["approval"] is not None:
            wanted: WantedApprovalJson = run["approval"]
            return wanted
    words = Words(language())
    if runs:
        state = words.known(f"run-{runs[-1]['state']}") or runs[-1]["state"]
        raise click.ClickException(
            t("{id} waits for no approval: it is {state}", id=runs[-1]["id"], state=state)
        )
    incident = found["incident"]
    if incident is None:
        raise click.ClickException(t("no run of that id waits for an approval"))
    why = incident["waits"] or words.known(f"state-{incident['state']}") or incident["state"]
    raise click.ClickException(t("{id} has no run yet: {why}", id=incident["id"], why=why))


@click.command()
@click.argument("id_", metavar="ID", shell_complete=completing.waiting_run)
@click.option("--why", default="", help="The reason, for the others.")
@as_json
@for_client
def deny(client: Client, id_: str, why: str, plain: bool) -> None:
    """Ends the run of ID (a run or its incident): a person takes over."""
    _show(client.submit("deny", **({"id": id_, "why": why} if why else {"id": id_})), plain)


@click.command()
@click.argument("id_", metavar="ID", shell_complete=completing.open_incident)
@as_json
@for_client
def ack(client: Client, id_: str, plain: bool) -> None:
    """Acknowledges incident ID: its page is not repeated."""
    answer = client.submit("ack", id=id_)
    if not plain and answer["handled"] and not answer["notes"] and (known := _known(client, id_)):
        click.echo(known)
        return
    _show(answer, plain)


def _known(client: Client, id_: str) -> str:
    """Who had acknowledged an incident before, and when; empty: nobody, or it is no incident."""
    try:
        found: ChainJson = client.get("explain", id_)
    except click.ClickException:  # nobody knows it
        return ""
    if found["incident"] is None:  # an alert group
        return ""
    who = found["incident"]["pages"]["acked_by"]
    times = [note["at"] for note in found["notes"] if note["kind"] == "page.acked"]
    since = t(", since {times}", times=clock(times[-1])) if times else ""
    return t("nothing to do: {who} has acknowledged it already{since}", who=who, since=since) if who else ""


@click.command()
@click.argument("id_", metavar="ID", shell_complete=completing.open_incident)
@click.option("--why", default="", help="The reason, for the others.")
@as_json
@for_client
def close(client: Client, id_: str, why: str, plain: bool) -> None:
    """Closes incident ID, whatever its symptoms are."""
    _show(client.submit("close", **({"id": id_, "why": why} if why else {"id": id_})), plain)


@click.command()
@click.argument("id_", metavar="ID", shell_complete=completing.any_incident)
@click.argument("text")
@as_json
@for_client
def note(client: Client, id_: str, text: str, plain: bool) -> None:
    """Writes TEXT down about incident ID, for the others: it stands in `explain`, and decides nothing."""
    _show(client.submit("note", id=id_, text=text), plain)


@click.command()
@click.argument("runbook", shell_complete=completing.runbook)
@click.argument("mode", type=click.Choice(["observe", "approve", "auto"]))
@click.option(
    "--nodes", default="*", show_default=True, shell_complete=completing.node, help="Glob of node names."
)
@as_json
@for_client
def mode(client: Client, runbook: str, mode: str, nodes: str, plain: bool) -> None:
    """How far RUNBOOK (a glob) may go by itself: plan only, ask a person first, or act."""
    _show(client.submit("mode", runbook=runbook, mode=mode, nodes=nodes), plain)


@click.command("return")
@click.argument("node", shell_complete=completing.node)
@as_json
@for_client
def return_(client: Client, node: str, plain: bool) -> None:
    """NODE is healthy again: it looks again, and what it does not report any more is over."""
    _show(client.submit("return", node=node), plain)


@click.command()
@click.argument("node", shell_complete=completing.node)
@click.option("--why", default="", help="The reason, for the others.")
@as_json
@for_client
def forget(client: Client, node: str, why: str, plain: bool) -> None:
    """NODE is gone for good: its incidents and pages end, and no list and no count has it any more. Refused while it is
    heard; heard again it is a new node.
    """
    _show(client.submit("forget", **({"node": node, "why": why} if why else {"node": node})), plain)


@click.command()
@click.argument("runbook", shell_complete=completing.runbook)
@click.option("--node", shell_complete=completing.node, help="The node to start it on.")
@click.option("--fabric", help="The fabric, for a runbook that looks at a whole one.")
@click.option("--why", default="", help="The reason, for the others.")
@as_json
@for_client
def start(client: Client, runbook: str, node: str | None, fabric: str | None, why: str, plain: bool) -> None:
    """Starts RUNBOOK on a node or a fabric without a fault, if it may be requested; in observe mode it is a rehearsal."""
    if (node is None) == (fabric is None):
        raise click.UsageError(t("give --node NAME or --fabric NAME"))
    where = {"node": node} if node else {"fabric": fabric or ""}
    _show(client.submit("start", runbook=runbook, **where, **({"why": why} if why else {})), plain)


@click.command()
@as_json
@for_client
def reset(client: Client, plain: bool) -> None:
    """Resets the breaker that has stopped all disruptive runs: they may begin again."""
    _show(client.submit("reset"), plain)


def _show(answer: SaidJson, plain: bool) -> None:
    if answer["waiting"]:
        waits(answer, plain=plain)
    if plain:
        print_json(answer)
        return
    for note in answer["notes"]:
        click.echo(note["text"])
    if not answer["handled"]:
        click.echo(t("It is on the log; the brain has not handled it yet: see `gpuward status`."))
    elif not answer["notes"]:
        click.echo(t("done"))
