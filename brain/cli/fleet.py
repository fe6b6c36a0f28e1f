"""`gpuward fleet`: many cells under one view. It only reads; what is done about a cell is said to that cell."""

from collections import Counter
from collections.abc import Collection, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from http import HTTPStatus
from pathlib import Path
from typing import Any

import click
from rich.text import Text

from agent.contract.inert import inert
from agent.shared.words import later, many, t
from brain.cli import fleet_answer, fleet_file
from brain.cli.client import Client, NotLetIn
from brain.cli.deaf import deaf, nobody_leads
from brain.cli.fleet_file import CellEntry
from brain.cli.queries import COLOURS, IncidentList, Listing
from brain.cli.terminal import console, hanging, page_width, print_json

SEVERITIES = ("P0", "P1", "P2", "P3")
_AT_ONCE = 32  # cells that are asked side by side
_SILENT = later("NO ANSWER")
_ANOTHER = later("an administrator of that cell makes another: `gpuward token create NAME`, of a viewer")
_SHOWN = 40  # incidents; the rest is counted


@dataclass(frozen=True, slots=True)
class CellView:
    """What one cell says of itself; where none of its brains answers, why."""

    name: str
    url: str = ""  # of the brain that answered
    status: dict[str, Any] = field(default_factory=dict)
    incidents: list[dict[str, Any]] = field(default_factory=list)
    error: str = ""
    # What stands in the place of its leader where there is an error
    state: str = _SILENT

    @property
    def trouble(self) -> str:
        """Why nothing is healed there, or may not be; empty: all is well."""
        if self.error:
            return self.error
        if self.status["stopped"]:
            return str(self.status["stopped"])
        if not (self.status["leads"] or self.status["leader"]):
            return t("nobody leads")
        return "; ".join(str(one["text"]) for one in self.status["troubles"]) or deaf(self.status)

    def json(self) -> dict[str, Any]:
        """For scripts."""
        return {
            "name": self.name,
            "url": self.url,
            "error": self.error,
            "trouble": self.trouble,
            "status": self.status,
            "incidents": self.incidents,
        }


def ask(name: str, cell: CellEntry, *, faithful: bool = False) -> CellView:
    """Asks the brains of a cell, one after the other, until one answers that hears nodes; else what another one says."""
    why = []
    state = _SILENT
    deaf_one: CellView | None = None
    for url in cell.urls:
        client = Client(url, cell.token_file, cell.ca_file, faithful=faithful)
        try:
            status = client.get("status")
            incidents = client.get("incidents")
        except NotLetIn as error:
            state, said = _refused(name, cell, error)
            why.append(f"{url}: {said}")
            continue
        except click.ClickException as error:
            why.append(error.format_message())
            continue
        if found := fleet_answer.wrong(status, incidents):
            why.append(f"{url}: {found}")
            continue
        shown = CellView(name, url, status, incidents["incidents"])
        if not deaf(status):
            return shown
        deaf_one = deaf_one or shown
    if deaf_one is not None:
        return deaf_one
    where = t("`urls`, `token_file` and `ca_file` of [cells.{name}] in fleet.toml", name=name)
    return CellView(
        name, error=t("{why}. Here these are {where}", why="; ".join(why), where=where), state=state
    )


def _refused(name: str, cell: CellEntry, error: NotLetIn) -> tuple[str, str]:
    """What a brain that does not let us in is called, and what to do: that no brain is heard would send people to its machine."""
    if error.status != HTTPStatus.UNAUTHORIZED:
        return t("REFUSED"), error.format_message()
    if cell.token_file is None:
        return (
            t("TOKEN MISSING"),
            t(
                "it wants a token: name its file as `token_file` of [cells.{name}]; {another}",
                name=name,
                another=t(_ANOTHER),
            ),
        )
    return (
        t("TOKEN REFUSED"),
        t(
            "the token in {token_file} was refused: it is wrong, revoked, expired, or of another cell. {another}",
            token_file=cell.token_file,
            another=t(_ANOTHER),
        ),
    )


def view(cells: dict[str, CellEntry], *, faithful: bool = False) -> list[CellView]:
    """All cells, asked side by side, in the file's order. One that shows another's name, or that stands there twice, says so."""
    with ThreadPoolExecutor(min(_AT_ONCE, len(cells))) as pool:
        found = list(pool.map(lambda item: ask(*item, faithful=faithful), cells.items()))
    first: dict[str, str] = {}
    return [_as_named(one, first, cells) for one in found]


def _as_named(one: CellView, first: dict[str, str], listed: Collection[str]) -> CellView:
    """A wrong URL must not show one cell as two: its incidents would be counted twice, and the other cell's not at all; nor as
    another one that is listed: people would go to the wrong cell. The file may call a cell as it likes otherwise.
    """
    cell = str(one.status.get("cell", ""))
    if one.error:
        return one
    if cell != one.name and cell in listed:
        other = cell
    elif first.setdefault(cell, one.name) != one.name:
        other = first[cell]
    else:
        return one
    return CellView(
        one.name,
        one.url,
        error=t(
            "at {url} is cell {cell}, as for {other}: correct `urls` of [cells.{name}]; where these are two "
            "cells, give one of them another name (`cell` in its brain.toml)",
            url=one.url,
            cell=cell,
            other=other,
            name=one.name,
        ),
    )


@click.command()
@click.option(
    "--file",
    envvar="GPUWARD_FLEET",
    type=click.Path(path_type=Path),
    help="The cells. Default: ~/.config/gpuward/fleet.toml, then /etc/gpuward/fleet.toml.",
)
@click.option("--json", "plain", is_flag=True, help="JSON, for scripts.")
def fleet(file: Path | None, plain: bool) -> None:
    """Many cells under one view: who leads, what is open, what waits for a person.

    Exit status 1 where a cell does not answer or nothing is healed there.
    """
    found = view(fleet_file.read(file or fleet_file.default_file()).cells, faithful=plain)
    if plain:
        print_json([one.json() for one in found])
    else:
        _show(found)
    if any(one.trouble for one in found):
        raise click.exceptions.Exit(1)


def _show(found: Sequence[CellView]) -> None:
    console().print(CellList(found), crop=False)
    for one in found:
        if one.trouble:
            for line in hanging(f"{inert(one.name)}: ", one.trouble, page_width()):
                click.echo(line)
    incidents = [(one.name, incident) for one in found for incident in one.incidents]
    if not incidents:
        return
    incidents.sort(key=lambda item: item[1]["opened_at"] or "", reverse=True)
    incidents.sort(key=lambda item: SEVERITIES.index(item[1]["severity"]))
    click.echo()
    cells, shown = zip(*incidents[:_SHOWN], strict=True)
    console().print(IncidentList(shown, cells), crop=False)
    if len(incidents) > _SHOWN:
        click.echo(t("and {incidents} more: gpuward incidents --url URL", incidents=len(incidents) - _SHOWN))


class CellList(Listing):
    """One line for each cell, and the sums."""

    def __init__(self, found: Sequence[CellView]) -> None:
        lines = [self._cells(one) for one in found]
        heard = [one for one in found if not one.error]
        if len(found) > 1:
            missing = (
                t(", {found} not heard", found=len(found) - len(heard)) if len(heard) < len(found) else ""
            )
            lines.append((Text(t("all")), Text(f"{many(len(found), 'cell')}{missing}"), *_figures(heard)))
        heads = (
            t("CELL"),
            t("BRAIN"),
            t("NODES"),
            t("UNREACHABLE"),
            *SEVERITIES,
            t("NEED A PERSON"),
            t("HOLDS"),
        )
        blocks = []
        for name, brain, *figures in lines:
            named = zip(
                (head.lower() if head[0] != "P" else head for head in heads[2:]), figures, strict=True
            )
            rest = ", ".join(f"{head} {text.plain}" for head, text in named if text.plain)
            blocks.append((Text(f"{name.plain}  {brain.plain}", brain.style), Text(rest)))
        super().__init__(heads, lines, blocks)

    @staticmethod
    def _cells(one: CellView) -> tuple[Text, ...]:
        if one.error:
            return (Text(one.name), Text(one.state, "bold red"), *_figures([]))
        leader = str(one.status["leader"] or (one.status["brain"] if one.status["leads"] else ""))
        brain = Text(t("{leader} leads", leader=leader)) if leader else Text(t("NOBODY LEADS"), "bold red")
        if nobody_leads(one.status):
            brain = Text(t("NOBODY LEADS"), "bold red")
        elif not one.status.get("connected", True):
            brain = Text(t("{brain} HEARS NOBODY", brain=one.status["brain"]), "bold red")
        elif one.trouble and leader:
            brain = Text(t("{leader} leads, TROUBLE", leader=leader), "yellow")
        return (Text(one.name), brain, *_figures([one]))


def _figures(cells: Sequence[CellView]) -> tuple[Text, ...]:
    """Sums over cells, in the order of the heads; empty where there is no cell."""
    if not cells:
        return tuple(Text("") for _ in range(4 + len(SEVERITIES)))
    nodes, silent = (sum(one.status[key] for one in cells) for key in ("nodes", "nodes_unreachable"))
    incidents = [incident for one in cells for incident in one.incidents]
    by = Counter(incident["severity"] for incident in incidents)
    people = sum(incident["state"] == "needs_human" for incident in incidents)
    holds = sum(len(one.status["holds"]) for one in cells)
    return (
        Text(str(nodes)),
        Text(str(silent), "bold red" if silent else ""),
        *(Text(str(by[name]), COLOURS[name] if by[name] else "") for name in SEVERITIES),
        Text(str(people), "bold red" if people else ""),
        Text(str(holds), "yellow" if holds else ""),
    )
