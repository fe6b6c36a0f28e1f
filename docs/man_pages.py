"""The manual pages of `gpuward`, made from its commands: gpuward(1), and one for each command; in Chinese below zh_CN.

`python -m docs.man_pages FOLDER`; deploy/release/packages.sh puts them into the package. click-man, which is kept up, reads no
lazy group and no arguments, and escapes nothing: a line that begins with a point would be a request to troff.
"""

import inspect
import re
import sys
from collections.abc import Iterator
from pathlib import Path

import click

from agent import __version__
from agent.shared.words import language, speaking, t
from brain.__main__ import MOUNTS
from brain.cli.main import FOLDERS, group
from docs.generate import COMMAND_LINE

ROOT = "gpuward"
FOLDERS_OF = {"en": "", "zh": "zh_CN"}  # language -> its folder, as man's


def pages(of: str = "en") -> dict[str, str]:
    """Returns file name -> page, in a language."""
    with speaking(of, FOLDERS):
        return dict(_pages(click.Context(group(MOUNTS), info_name=ROOT)))


def _pages(ctx: click.Context) -> Iterator[tuple[str, str]]:
    name = ctx.command_path.replace(" ", "-")
    subcommands = _subcommands(ctx)
    yield f"{name}.1", "\n".join(_page(ctx, name, [one for one, _ in subcommands])) + "\n"
    for one, command in subcommands:
        yield from _pages(click.Context(command, info_name=one, parent=ctx))


def _subcommands(ctx: click.Context) -> list[tuple[str, click.Command]]:
    if not isinstance(ctx.command, click.Group):
        return []
    found = ((name, ctx.command.get_command(ctx, name)) for name in ctx.command.list_commands(ctx))
    return [(name, command) for name, command in found if command is not None and not command.hidden]


def _page(ctx: click.Context, name: str, subcommands: list[str]) -> Iterator[str]:
    help_ = inspect.cleandoc(ctx.command.help or "").replace("\b\n", "")
    if language() != "en":
        yield "'\\\" -*- coding: UTF-8 -*-"
        yield f".mso {language()}.tmac"  # groff's: where a line of Chinese may break
    yield f'.TH {_text(name.upper())} 1 "" "gpuward {__version__}" "gpuward"'
    if language() != "en":
        yield ".ad l"  # its few blanks would grow wide
    yield from (f".SH {t('NAME')}", f"{_text(name)} \\- {_text(_first(help_))}")
    yield from (f".SH {t('SYNOPSIS')}", f".B {_text(ctx.command_path)}")
    yield _text(" ".join(ctx.command.collect_usage_pieces(ctx)))
    yield f".SH {t('DESCRIPTION')}"
    for number, paragraph in enumerate(re.split(r"\n\s*\n", help_)):
        yield from ([".PP"] if number else [])
        yield _text(" ".join(paragraph.split()))
    options = [one.get_help_record(ctx) for one in ctx.command.get_params(ctx)]
    if options:
        yield f".SH {t('OPTIONS')}"
        for option in options:
            if option is not None:
                yield from _term(*option)
    if isinstance(ctx.command, click.Group):
        yield f".SH {t('COMMANDS')}"
        for one in subcommands:
            command = ctx.command.get_command(ctx, one)
            help_ = command.get_short_help_str(200) if command else ""
            yield from _term(f"{name}-{one}(1)", help_)
    if name == ROOT:
        yield from _tables()
    yield f".SH {t('SEE ALSO')}"
    parent = ctx.parent.command_path.replace(" ", "-") if ctx.parent else ""
    others = [f"{parent}(1)"] if parent else [f"{name}-{one}(1)" for one in subcommands]
    yield _text(", ".join(others))


def _tables() -> Iterator[str]:
    """Exit status and environment, as docs/reference.md has them."""
    for title, rows in tables().items():
        yield f".SH {t(title)}"
        for name, *cells in rows:
            yield from _term(name, "; ".join(map(t, cells)))


def tables() -> dict[str, list[list[str]]]:
    """The cells of these tables, by title."""
    both = zip(("EXIT STATUS", "ENVIRONMENT"), COMMAND_LINE.strip().split("\n\n"), strict=True)
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


def main(folder: Path) -> None:
    """Writes the pages."""
    for of, place in FOLDERS_OF.items():
        (folder / place).mkdir(parents=True, exist_ok=True)
        for name, page in pages(of).items():
            (folder / place / name).write_text(page, encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
