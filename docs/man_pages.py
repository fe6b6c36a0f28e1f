"""The manual pages, made from the commands: gpuward(1), gpuward-agent(1) and one for each command; in Chinese below zh_CN.

`python -m docs.man_pages FOLDER gpuward|gpuward-agent`; deploy/release/packages.sh puts them into the package. click-man, which
is kept up, reads no lazy group and no arguments, and escapes nothing: a line that begins with a point is a request to troff.
"""

import argparse
import inspect
import re
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import click

from agent import __version__
from agent.cli import main as agent_cli
from agent.shared.words import language, speaking, t
from brain.__main__ import MOUNTS
from brain.cli.main import FOLDERS, group
from docs.generate import AGENT_COMMAND_LINE, COMMAND_LINE

ROOT, AGENT = "gpuward", "gpuward-agent"
FOLDERS_OF = {"en": "", "zh": "zh_CN"}  # language -> its folder, as man's


Term = tuple[str, str]  # what is typed, and what it means


@dataclass(frozen=True, slots=True, kw_only=True)
class ManPage:
    """A command, as its page tells it."""

    # as it is typed: `gpuward log export`
    command: str
    usage: str
    # its help: paragraphs, of which the first begins with what it does
    help: str
    options: Sequence[Term]
    # its commands, each with what it does
    commands: Sequence[Term] = ()
    # it has some, however few are shown
    is_group: bool = False


def pages(of: str = "en", program: str = ROOT) -> dict[str, str]:
    """Returns file name -> page, in a language, of one of the two programs."""
    with speaking(of, (*FOLDERS, *agent_cli.FOLDERS)):
        found = _of_agent() if program == AGENT else _of_click(click.Context(group(MOUNTS), info_name=ROOT))
        return {f"{_name(one)}.1": "\n".join(_page(one)) + "\n" for one in found}


def _of_click(ctx: click.Context) -> Iterator[ManPage]:
    """The pages of a command and of those below it."""
    command, subcommands = ctx.command, _subcommands(ctx)
    options = [one.get_help_record(ctx) for one in command.get_params(ctx)]
    yield ManPage(
        command=ctx.command_path,
        usage=" ".join(command.collect_usage_pieces(ctx)),
        help=inspect.cleandoc(command.help or "").replace("\b\n", ""),
        options=[one for one in options if one is not None],
        commands=[(name, one.get_short_help_str(200)) for name, one in subcommands],
        is_group=isinstance(command, click.Group),
    )
    for name, one in subcommands:
        yield from _of_click(click.Context(one, info_name=name, parent=ctx))


def _subcommands(ctx: click.Context) -> list[tuple[str, click.Command]]:
    if not isinstance(ctx.command, click.Group):
        return []
    found = ((name, ctx.command.get_command(ctx, name)) for name in ctx.command.list_commands(ctx))
    return [(name, command) for name, command in found if command is not None and not command.hidden]


def _of_agent() -> Iterator[ManPage]:
    """The pages of the agent's commands, which argparse reads."""
    parser = agent_cli.parser(argparse.ArgumentParser)
    below = next(one for one in parser._actions if isinstance(one, argparse._SubParsersAction))
    does = {one.dest: str(one.help) for one in below._choices_actions}
    commands = [(name, does[name]) for name in below.choices]
    yield _of_parser(AGENT, parser, parser.description or "", commands)
    for name, one in below.choices.items():
        yield _of_parser(f"{AGENT} {name}", one, one.description or does[name], ())


def _of_parser(
    command: str, parser: argparse.ArgumentParser, help_: str, commands: Sequence[Term]
) -> ManPage:
    shown = [one for one in parser._actions if not isinstance(one, argparse._SubParsersAction)]
    terms = [(_typed(parser, one), parser._get_formatter()._expand_help(one)) for one in shown]
    usage = " ".join(parser.format_usage().split()).split(f"{parser.prog} ", 1)[1]
    return ManPage(
        command=command,
        usage=usage,
        help=help_,
        options=terms,
        commands=commands,
        is_group=bool(commands),
    )


def _typed(parser: argparse.ArgumentParser, one: argparse.Action) -> str:
    """An option with its value, as help shows it."""
    return parser._get_formatter()._format_action_invocation(one)


def _name(page: ManPage) -> str:
    return page.command.replace(" ", "-")


def _page(page: ManPage) -> Iterator[str]:
    name = _name(page)
    if language() != "en":
        yield "'\\\" -*- coding: UTF-8 -*-"
        yield f".mso {language()}.tmac"  # groff's: where a line of Chinese may break
    yield f'.TH {_text(name.upper())} 1 "" "gpuward {__version__}" "gpuward"'
    if language() != "en":
        yield ".ad l"  # its few blanks would grow wide
    yield from (f".SH {t('NAME')}", f"{_text(name)} \\- {_text(_first(page.help))}")
    yield from (f".SH {t('SYNOPSIS')}", f".B {_text(page.command)}")
    yield _text(page.usage)
    yield f".SH {t('DESCRIPTION')}"
    for number, paragraph in enumerate(re.split(r"\n\s*\n", page.help)):
        yield from ([".PP"] if number else [])
        yield _text(" ".join(paragraph.split()))
    if page.options:
        yield f".SH {t('OPTIONS')}"
        for option in page.options:
            yield from _term(*option)
    if page.is_group:
        yield f".SH {t('COMMANDS')}"
        for one, does in page.commands:
            yield from _term(f"{name}-{one}(1)", does)
    if name in (ROOT, AGENT):
        yield from _tables(name)
    yield f".SH {t('SEE ALSO')}"
    yield _text(", ".join(_see_also(page)))


def _see_also(page: ManPage) -> list[str]:
    parent = page.command.rpartition(" ")[0].replace(" ", "-")
    others = [f"{parent}(1)"] if parent else [f"{_name(page)}-{one}(1)" for one, _ in page.commands]
    others += {ROOT: [f"{AGENT}(1)"], AGENT: [f"{ROOT}(1)"]}.get(_name(page), [])
    return others


def _tables(program: str) -> Iterator[str]:
    """Exit status and environment, as docs/reference.md has them."""
    for title, rows in tables(program).items():
        yield f".SH {t(title)}"
        for name, *cells in rows:
            yield from _term(name, "; ".join(map(t, cells)))


def tables(program: str = ROOT) -> dict[str, list[list[str]]]:
    """The cells of these tables, by title."""
    told = AGENT_COMMAND_LINE if program == AGENT else COMMAND_LINE
    both = zip(("EXIT STATUS", "ENVIRONMENT"), told.strip().split("\n\n"), strict=True)
    return {
        title: [
            [cell.strip().replace("`", "") for cell in row.strip("|").split("|")]
            for row in table.splitlines()[2:]
        ]
        for title, table in both
    }


def _term(name: str, text: str) -> Iterator[str]:
    yield from (".TP", f"\\fB{_text(name)}\\fR", _text(" ".join(text.split())))


def _first(help_: str) -> str:
    """The first sentence."""
    return re.split(r"(?<=[.:])\s|(?<=[。：])", " ".join(help_.split()), maxsplit=1)[0].rstrip(".:。：")


def _text(text: str) -> str:
    """Text as troff takes it: hyphens that can be copied, and no line that is a request."""
    shown = text.replace("\\", "\\e").replace("-", "\\-").replace("…", "...").replace("→", "->")
    return f"\\&{shown}" if shown.startswith((".", "'")) else shown


def main(folder: Path, program: str) -> None:
    """Writes the pages of one of the two programs."""
    for of, place in FOLDERS_OF.items():
        (folder / place).mkdir(parents=True, exist_ok=True)
        for name, page in pages(of, program).items():
            (folder / place / name).write_text(page, encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2])
