"""`gpuward backtest`: replays a recording through the engine, and prints what gpuward would have seen and decided.

Nothing is done and nobody is paged: no module that could is imported here (law 9, .importlinter).
"""

import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import click

from agent.contract.errors import ConfigError
from agent.shared.words import t
from brain.cli.backtest import difference, folder_run, page, recorded, rule_sets
from brain.cli.backtest.kernel_logs import Progress
from brain.cli.backtest.outcome import Backtest
from brain.cli.backtest.rule_sets import OF_THE_LOG, RuleSet
from brain.cli.terminal import page_width, print_json

_LONG = 20_000_000  # bytes; less is read before anybody looks


def _version(_ctx: click.Context, _param: click.Parameter, value: str) -> str:
    if value and not re.fullmatch(r"\d+(\.\d+)*", value):
        raise click.BadParameter(
            t("a version has numbers and dots, as 580.82: not {value}", value=repr(value))
        )
    return value


@click.command()
@click.argument("path", type=click.Path(path_type=Path))
@click.option(
    "--rules",
    type=click.Path(path_type=Path),
    help="Folder of rules, or of `rules` and `runbooks`; default: those of the log, or gpuward's own.",
)
@click.option(
    "--runbooks", type=click.Path(path_type=Path), help="Folder of the runbooks; default: beside the rules."
)
@click.option(
    "--against",
    type=click.Path(path_type=Path),
    help="The rules as they were: prints what the change to --rules gains, loses and alters, as Markdown.",
)
@click.option(
    "--driver", default="", callback=_version, help="Driver version, e.g. 580.82; default: as the logs say."
)
@click.option("--json", "as_json", is_flag=True, help="JSON, for scripts.")
def backtest(
    path: Path, rules: Path | None, runbooks: Path | None, against: Path | None, driver: str, as_json: bool
) -> None:
    """Replays PATH through the engine in recorded time: what gpuward would have seen, decided, held and paged. PATH is a file of
    `gpuward log export`, or a folder of kernel logs named <node>.log, with topology.yaml and facts.jsonl if there are any.

    Exit status 1: something could not be read.
    """
    chosen = rule_sets.of_folder(rules, runbooks) if rules is not None else None
    before = rule_sets.of_folder(against) if against is not None else None
    found = _of_log(path, chosen, before) if _is_log(path) else _of_folder(path, chosen, before, driver)
    after = found[-1]
    if before is None:
        if as_json:
            print_json(after.data())
        else:
            click.echo("\n".join(page.lines(after, page_width())))
    else:
        changed = difference.between(found[0].outcome, after.outcome)
        if as_json:
            print_json({"before": found[0].data(), "after": after.data(), "difference": changed.data()})
        else:
            click.echo("\n".join(difference.markdown(changed, found[0], after)))
    if not after.is_whole():
        sys.exit(1)


def _is_log(path: Path) -> bool:
    if path.is_dir():
        return False
    if not path.exists():
        raise ConfigError(t("{path}: there is no such file or folder", path=path))
    if not recorded.is_log(path):
        raise ConfigError(
            t(
                "{path}: is no file of `gpuward log export`: name the folder of the kernel logs, or ask "
                "`gpuward diagnose` about this one",
                path=path,
            )
        )
    return True


def _of_log(path: Path, chosen: RuleSet | None, before: RuleSet | None) -> list[Backtest]:
    """With one rule set, and before it with the other; without any, the log's own as they were, with what came of them."""
    site = recorded.site_of(path)
    own = RuleSet(source=t(OF_THE_LOG)) if site is not None else rule_sets.shipped()
    found = []
    for one in (*((before,) if before is not None else ()), chosen or own):
        observe = chosen is not None or before is not None
        with _bar(path.stat().st_size) as progress:
            found.append(recorded.backtest(path, one, site, observe=observe, progress=progress))
    return found


def _of_folder(path: Path, chosen: RuleSet | None, before: RuleSet | None, driver: str) -> list[Backtest]:
    sets = [*((before,) if before is not None else ()), chosen or rule_sets.shipped()]
    total = sum(one.size for one in folder_run.files_of(path))
    with _bar(total) as progress:
        return folder_run.backtest(path, sets, driver=driver, progress=progress)


@contextmanager
def _bar(size: int) -> Iterator[Progress | None]:
    """A bar on a terminal, where there is much to read."""
    if size < _LONG or not sys.stderr.isatty():
        yield None
        return
    with click.progressbar(length=size, label="reading", file=sys.stderr) as bar:
        yield bar.update
