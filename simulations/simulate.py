"""`gpuward simulate`."""

import math
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click

from agent.shared.words import t
from brain.cli.backtest import rule_sets
from brain.cli.terminal import page_width, print_json
from brain.core.engine import Engine
from brain.core.pack.actions import ACTIONS
from brain.core.pack.spec import Pack
from simulations.ladder import report as ladder_report
from simulations.ladder.rehearsal import rehearsed
from simulations.month import html, learn, learn_read, learn_write, report, sweep_report
from simulations.month.draw import draw
from simulations.month.log import LoggedEngine
from simulations.month.play import play
from simulations.month.profile import load, shipped
from simulations.month.sweep import sweep as play_sweep
from simulations.month.terms import Setting, parsed
from simulations.scenarios import files as scenarios
from simulations.scenarios import report as scenario_report
from simulations.scenarios.judge import of_end
from simulations.scenarios.play import play as play_scenario
from simulations.scenarios.spec import Tale

POLICIES = 6
SEEDS = 5  # of a sweep
DEFAULT = "llama3-54d"  # what a site's log says too little of is as there


@click.command()
@click.argument("profile", metavar="[NAME]", required=False)
@click.option("--list", "show", is_flag=True, help="Lists the profiles and the scenarios.")
@click.option("--schema", is_flag=True, help="Prints the JSON Schema of files of scenarios, for an editor.")
@click.option(
    "--nodes",
    type=click.IntRange(2, 20_000),
    help="So many nodes, with as many faults each; default: as in the profile.",
)
@click.option(
    "--days", type=click.FloatRange(min=0, min_open=True, max=366), help="Default: as in the profile."
)
@click.option("--seed", type=int, default=1, show_default=True, help="The same seed gives the same month.")
@click.option(
    "--rules",
    type=click.Path(path_type=Path),
    help="Folder of rules, or of `rules` and `runbooks`; default: gpuward's own.",
)
@click.option(
    "--runbooks", type=click.Path(path_type=Path), help="Folder of the runbooks; default: beside the rules."
)
@click.option("--json", "as_json", is_flag=True, help="JSON, for scripts.")
@click.option(
    "--html",
    "page",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Writes the report with plots into this file; needs gpuward[report].",
)
@click.option(
    "--sweep",
    metavar="KEY=V1,V2,...",
    help="What if: gpuward's month with each of these values on the same faults, over --seeds. A wrong KEY names those that "
    "there are; gates=on,off says what the safety gates cost and prevent.",
)
@click.option(
    "--seeds",
    type=click.IntRange(2, 1000),
    help="With --sweep: over so many seeds, from --seed on; default: 5.",
)
@click.option(
    "--log",
    "log",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Writes gpuward's month as a log into this file, as `gpuward log export` does: for backtests, and for --learn.",
)
@click.option(
    "--learn",
    "learn_from",
    type=click.Path(path_type=Path),
    metavar="PATH",
    help="Prints the profile of your own fleet as YAML: how often what fails, and how unequal its nodes are, as a file of "
    "`gpuward log export` has it, or a read model (with --nodes). What is too rare there is NAME's, and marked.",
)
@click.option(
    "--runbook",
    metavar="NAME",
    help="In place of a month: every way in which this runbook can go, as a tree. Exit status 1: one ends without a page or a "
    "heal.",
)
@click.option(
    "--fault",
    metavar="CAUSE",
    help="With --runbook: the fault that it is played against; default: the first that leads to it.",
)
def simulate(
    profile: str | None,
    show: bool,
    schema: bool,
    nodes: int | None,
    days: float | None,
    seed: int,
    rules: Path | None,
    runbooks: Path | None,
    as_json: bool,
    page: Path | None,
    sweep: str | None,
    seeds: int | None,
    log: Path | None,
    learn_from: Path | None,
    runbook: str | None,
    fault: str | None,
) -> None:
    """A fleet's faults over weeks, in a minute: what comes of them under gpuward, and on the very same faults under people
    alone, alerts, a script that drains and reboots, and NVSentinel's policy. NAME is a profile, which says how often what
    fails; or a scenario, which says what happens when, and what should come of it. A name from --list, or a YAML file of
    your own.

    Nothing real is touched. Exit status 1: a safety law was broken, and the story of the node is told; or a scenario is not as
    expected.
    """
    if schema:
        click.echo(scenarios.SCHEMA.read_text(encoding="utf-8"), nl=False)
        return
    if runbooks is not None and rules is None:
        raise click.UsageError(
            t("--runbooks goes with --rules: runbooks are read with the rules that lead to them")
        )
    chosen = rule_sets.of_folder(rules, runbooks) if rules is not None else rule_sets.shipped()
    of_a_month = (nodes, days, page, sweep, seeds, log, learn_from)
    if learn_from is not None and any(one is not None for one in (page, sweep, log)):
        raise click.UsageError(
            t("--learn prints a profile and plays nothing: leave --html, --sweep and --log away")
        )
    if seeds is not None and sweep is None:
        raise click.UsageError(t("--seeds is for --sweep: KEY=V1,V2,..."))
    if runbook is not None and any(one is not None for one in (profile, *of_a_month)):
        raise click.UsageError(
            t("--runbook plays one runbook on a node or a few: leave NAME and what is for a month away")
        )
    if fault is not None and runbook is None:
        raise click.UsageError(t("--fault is for --runbook: which one shall be played against it?"))
    if runbook is not None:
        sys.exit(_ladder(chosen.pack(places={}), runbook, fault or "", as_json=as_json))
    if learn_from is not None:
        _learn(learn_from, profile or DEFAULT, chosen.pack(places={}), nodes, days, as_json=as_json)
        return
    if show or profile is None:
        for name in shipped():
            click.echo(f"{name:16}{load(name).title}")
        click.echo("\n".join(["", *scenario_report.listed(scenarios.shipped(), page_width())]))
        return
    if tales := _tales(profile):
        if any(one is not None for one in of_a_month):
            raise click.UsageError(
                t("a scenario says itself what happens on which nodes: leave what is for a month away")
            )
        sys.exit(_scenarios(tales, chosen.pack(places={}), as_json=as_json))
    if sweep is not None:
        settings = parsed(sweep, load(profile))
        found = _swept(settings, chosen.pack(places={}), range(seed, seed + (seeds or SEEDS)), nodes, days)
        _show(found, sweep_report.page(found, page_width()), as_json=as_json)
        if page is not None:
            page.write_text(sweep_report.html_page(found), encoding="utf-8")
        return
    month = draw(load(profile), nodes=nodes or 0, days=days or 0.0, seed=seed)
    with _progress(math.ceil(month.days) * POLICIES) as step, _logged(log, seed) as engine:
        played = play(month, chosen.pack(places=month.places), lambda _policy, _days: step(), engine)
    found = report.data(month, played.tallies, played.summaries)
    if page is not None:
        page.write_text(html.page(found, played), encoding="utf-8")
    _show(found, report.page(found, page_width()), as_json=as_json)


def _show(found: dict[str, Any], page: Iterable[str], *, as_json: bool) -> None:
    if as_json:
        print_json(found)
    else:
        click.echo("\n".join(page))


def _swept(
    settings: Sequence[Setting], pack: Pack, seeds: Sequence[int], nodes: int | None, days: float | None
) -> dict[str, Any]:
    with _progress(len(settings) * len(seeds)) as step:
        return sweep_report.data(
            play_sweep(settings, pack, seeds, nodes=nodes or 0, days=days or 0.0, progress=step)
        )


@contextmanager
def _logged(file: Path | None, seed: int) -> Iterator[Engine | None]:
    """An engine that writes its log."""
    if file is None:
        yield None
        return
    with file.open("wb") as sink:
        engine = LoggedEngine(sink.write, seed=seed, packed=file.suffix == ".gz")
        yield engine
        engine.finish()


def _learn(
    path: Path, name: str, pack: Pack, nodes: int | None, days: float | None, *, as_json: bool
) -> None:
    default = load(name)
    seen = learn_read.read(path, nodes=nodes or 0, days=days or 0.0)
    learnt = learn.learn(seen, learn.signatures(pack, default), default)
    if as_json:
        print_json(learn_write.data(learnt, default, source=path.name))
    else:
        click.echo("\n".join(learn_write.yaml_lines(learnt, default, source=path.name, name=name)))


def _tales(name: str) -> tuple[Tale, ...]:
    """The scenarios of that name or file; (): it is a profile."""
    path = Path(name)
    if path.suffix not in (".yaml", ".yml"):
        return scenarios.named(name)
    return scenarios.of_file(path) if scenarios.is_one(path) else ()


def _scenarios(tales: Sequence[Tale], pack: Pack, *, as_json: bool) -> int:
    """Plays scenarios and shows them; the exit status."""
    judged = []
    for tale in tales:
        end = play_scenario(tale, pack)
        judged.append((of_end(tale, end), end.scene))
    if as_json:
        print_json(scenario_report.data(judged))
    else:
        click.echo("\n".join(scenario_report.page(judged, page_width())))
    return 0 if all(one.right for one, _ in judged) else 1


def _ladder(pack: Pack, runbook: str, fault: str, *, as_json: bool) -> int:
    """Shows all ways of a runbook; the exit status."""
    tree = rehearsed(pack, ACTIONS, runbook, fault)
    if as_json:
        print_json(ladder_report.data(tree, pack))
    else:
        click.echo("\n".join(ladder_report.page(tree, page_width())))
    return 1 if ladder_report.bad(tree) else 0


@contextmanager
def _progress(steps: int) -> Iterator[Callable[[], None]]:
    """A bar on a terminal."""
    if not sys.stderr.isatty():
        yield lambda: None
        return
    with click.progressbar(length=steps, label="simulating", file=sys.stderr) as bar:
        yield lambda: bar.update(1)
