"""What helped, and what would have: `gpuward remedies` and `gpuward readiness`."""

from urllib.parse import urlencode

import click
from rich.text import Text

from agent.shared.words import either, later, many, span, t
from brain.cli import completing
from brain.cli.answers import ReadinessJson, ReadyJson, RemediesJson, RemedyJson
from brain.cli.client import Client, for_client
from brain.cli.queries import Listing, clock
from brain.cli.terminal import as_json, console, hanging, print_json

_SAYS = {
    "helps": (later("helps"), "green"),
    "does_not_help": (later("does not help"), "red"),
    "unclear": (later("unclear"), ""),
    "too_few": (later("too few to say"), "dim"),
}
_VERDICTS = {
    "ready": "green",
    "taken_back": "red",
    "needless": "yellow",
    "not_yet": "yellow",
}
_days = click.FloatRange(0, 3650, min_open=True)


@click.command()
@click.option("--days", type=_days, default=90, show_default=True, help="How far back.")
@click.option(
    "--runbook", default="", help="Only of these runbooks (glob).", shell_complete=completing.runbook
)
@click.option("--cause", default="", help="Only against these causes (glob).")
@as_json
@for_client
def remedies(client: Client, days: float, runbook: str, cause: str, plain: bool) -> None:
    """What helped against which fault, and what did not; what gpuward proposes, and what it has taken back.

    BOUNDS: between which the share of faults that it helps against lies, in 95 of 100 cases (Wilson).
    BACK: how many of those that it healed came back within a day, and a week.
    """
    given = {"days": f"{days:g}", "runbook": runbook, "cause": cause}
    query = urlencode({key: value for key, value in given.items() if value})
    found: RemediesJson = client.get("remedies", query=query)
    if plain:
        print_json(found)
        return
    out = console()
    if found["remedies"]:
        out.print(RemedyList(found["remedies"]), crop=False)
    else:
        click.echo(t("nothing was tried in {days} days", days=f"{days:g}"))
    if not found["whole"]:
        click.echo(t("there are more: these are the newest"))
    for one in found["taken_back"]:
        click.echo()
        text = t(
            "taken back {since}: {runbook} is in approve mode, since {why}",
            since=clock(one["since"]),
            runbook=one["runbook"],
            why=one["why"],
        )
        click.echo("\n".join(hanging("", text, out.width, below="  ")))
    if found["proposals"]:
        click.echo(t("\nproposed, and done only by you:"))
    for proposal in found["proposals"]:
        click.echo("\n".join(hanging("  ", proposal["text"], out.width, below="    ")))


class RemedyList(Listing):
    """Remedies; of several models: each below the whole."""

    def __init__(self, found: list[RemedyJson]) -> None:
        rows, blocks = [], []
        for one in found:
            says, colour = t(_SAYS[one["says"]][0]), _SAYS[one["says"]][1]
            took = "" if one["took_s"] is None else span(one["took_s"])
            back = [f"{part['back']}/{part['healed']}" for part in (one["day"], one["week"])]
            left = many(one["unknown"], "is unknown", "are unknown") if one["unknown"] else ""
            cells = (
                *(one["cause"], one["runbook"], one["rung"]),
                *(f"{one['helped']}/{one['tried']}", _bounds(one["lower"], one["upper"]), took, *back),
            )
            rows.append((*map(Text, cells), Text(says, colour)))
            facts = t(
                "helped {helped} of {tried} ({bounds})",
                helped=one["helped"],
                tried=one["tried"],
                bounds=_bounds(one["lower"], one["upper"]),
            )
            more = (
                took and t("took {took}", took=took),
                t("back {back} in a day, {back2} in a week", back=back[0], back2=back[1]),
                left,
            )
            blocks.append(
                (
                    Text(f"{one['cause']}: {one['runbook']}, {one['rung']}: {says}", colour),
                    Text("; ".join(filter(None, (facts, *more)))),
                )
            )
            if len(one["models"]) > 1:
                for of in one["models"]:
                    name, bounds = of["model"] or t("model not told"), _bounds(of["lower"], of["upper"])
                    share = f"{of['helped']}/{of['tried']}"
                    rows.append((*map(Text, ("", "", f"  {name}", share, bounds, "", "", "", "")),))
                    blocks.append(
                        (
                            Text(
                                t(
                                    "  {name}: helped {share} ({bounds})",
                                    name=name,
                                    share=share,
                                    bounds=bounds,
                                )
                            ),
                            Text(""),
                        )
                    )
        heads = (
            t("CAUSE"),
            t("RUNBOOK"),
            t("RUNG"),
            t("HELPED"),
            t("BOUNDS"),
            t("TOOK"),
            t("BACK 1D"),
            t("BACK 7D"),
            t("SAYS"),
        )
        super().__init__(heads, rows, blocks)


def _bounds(lower: float, upper: float) -> str:
    return f"{100 * lower:.0f}-{100 * upper:.0f} %"


@click.command()
@click.option("--days", type=_days, default=14, show_default=True, help="How far back.")
@click.option(
    "--runbook", default="", help="Only of these runbooks (glob).", shell_complete=completing.runbook
)
@click.option("--cases", is_flag=True, help="Each fault, too: what people did, and how it ended.")
@as_json
@for_client
def readiness(client: Client, days: float, runbook: str, cases: bool, plain: bool) -> None:
    """What the runbooks in observe or approve mode would have done, and what people did instead.

    The evidence with which you let one act by itself: `gpuward mode RUNBOOK auto`.
    """
    given = {"days": f"{days:g}", "runbook": runbook}
    query = urlencode({key: value for key, value in given.items() if value})
    found: ReadinessJson = client.get("readiness", query=query)
    if plain:
        print_json(found)
        return
    out = console()
    shown = [one for one in found["runbooks"] if one["planned"] or one["verdict"] == "taken_back" or runbook]
    if not shown:
        click.echo(
            t(
                "no runbook in observe or approve mode would have done anything in {days} days",
                days=f"{days:g}",
            )
        )
    for one in shown:
        out.print(Text(f"{one['runbook']}  {one['mode']}", _VERDICTS.get(one["verdict"], "bold")))
        click.echo("\n".join(hanging("  ", one["text"], out.width, below="  ")))
        for line in _cases(one) if cases else ():
            click.echo("\n".join(hanging("    ", line, out.width, below="      ")))
    if not found["whole"]:
        click.echo(t("there are more runs: these are the newest"))
    if shown:
        click.echo()
    for both in found["not_known_texts"] if shown else ():
        text = either(both["en"], both["zh"])
        click.echo("\n".join(hanging(t("not known: "), text, out.width, below="  ")))


def _cases(one: ReadyJson) -> list[str]:
    lines = []
    for each in one["cases"]:
        stopped = t("; stopped by {stopped}", stopped=", ".join(each["stopped"])) if each["stopped"] else ""
        after = (
            ""
            if each["after_s"] is None or each["did"]
            else t(" after {after_s}", after_s=span(each["after_s"]))
        )
        named = t(
            "{incident}  {at}  {cause} on {node}",
            incident=each["incident"],
            at=clock(each["at"]),
            cause=each["cause"],
            node=each["node"] or t("more than a node"),
        )
        did = f": {each['did']}" if each["did"] else ""
        lines.append(f"{named}: {each['how']}{after}{did}{stopped}")
    return lines
