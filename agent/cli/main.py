"""The command line of `gpuward-agent`."""

import argparse
import os
import signal
import sys
from collections.abc import Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import NoReturn

from agent.cli import check
from agent.contract.errors import ConfigError, GpuwardError
from agent.contract.inert import inert, inert_lines
from agent.shared.columns import wrapped
from agent.shared.standard_output import standard_output
from agent.shared.words import LANGUAGES, speaking, t, wanted, without_lang

FOLDERS = (Path(__file__).resolve().parent / "words",)  # of the catalogue, a folder for each language in it
DEFAULT_CONFIG = Path("/etc/gpuward/agent.toml")


def main(argv: Sequence[str]) -> int:
    """The exit status: 0 done, 1 failed, 2 the operator must correct an option or a file."""
    of, argv = wanted(argv, os.environ), without_lang(argv)
    try:
        options = parser(_Silent).parse_args(argv)
    except _MustSpeakError:
        with standard_output("gpuward-agent"), speaking(of, FOLDERS):
            options = parser(_Wide).parse_args(argv)
    # The agent itself says nothing in any language: it holds no catalogue
    spoken = nullcontext() if options.call is _run and not options.check else speaking(of, FOLDERS)
    try:
        with standard_output("gpuward-agent"), spoken:
            return int(options.call(options))
    except ConfigError as error:
        sys.stderr.write(f"gpuward-agent: {inert_lines(str(error))}\n")
        return 2
    except GpuwardError as error:
        sys.stderr.write(f"gpuward-agent: {inert_lines(str(error))}\n")
        return 1
    except OSError as error:
        sys.stderr.write(f"gpuward-agent: {inert(str(error.filename or ''))}: {error.strerror or error}\n")
        return 2
    except KeyboardInterrupt:
        return 130


class _MustSpeakError(Exception):
    """Help is asked for, or what was typed is wrong."""


class _Silent(argparse.ArgumentParser):
    """Reads what was typed, and prints nothing."""

    def error(self, message: str) -> NoReturn:
        """It is wrong."""
        raise _MustSpeakError(message)

    def print_help(self, file: object = None) -> None:  # noqa: ARG002 - argparse's
        """It asks for help."""
        raise _MustSpeakError


class _WideHelp(argparse.HelpFormatter):
    """Help, laid out by the columns that characters take."""

    def _split_lines(self, text: str, width: int) -> list[str]:
        return [*wrapped(" ".join(text.split()), width)]

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        return "\n".join(indent + line for line in self._split_lines(text, width - len(indent)))


class _Wide(argparse.ArgumentParser):
    """Says what is wrong, and prints help."""

    def _get_formatter(self) -> argparse.HelpFormatter:
        return _WideHelp(self.prog)


def _run(options: argparse.Namespace) -> int:
    from agent import app, config_file

    loaded = config_file.load(_config_file(options), _overrides(options))
    if options.check:
        from agent.shared.unit_start import UnitStart, at_boot

        app.check(loaded)
        if at_boot("gpuward-agent.service") in (UnitStart.WAITS, UnitStart.MASKED):
            sys.stderr.write(
                t(
                    "gpuward-agent.service is not enabled: the agent does not come back when this node is rebooted. Whoever "
                    "administers the node, as root: systemctl unmask gpuward-agent; systemctl enable gpuward-agent\n"
                )
            )
        if not loaded.joined:
            sys.stderr.write(
                t(
                    "this node has not joined a cell yet, so nobody hears it. On the brain's machine: gpuward cell token --nodes "
                    "{node}; here, as root: gpuward-agent join TOKEN\n",
                    node=loaded.node,
                )
            )
        sys.stdout.write(
            t(
                "node {node} of cell {cell}: the agent can start with this configuration\n",
                node=loaded.node,
                cell=loaded.cell,
            )
        )
        return 0
    return app.run(loaded)


def _once(options: argparse.Namespace) -> int:
    from agent import config_file
    from agent.cli import once

    overrides = _overrides(options)
    if options.root is not None:
        if not options.root.is_dir():
            raise ConfigError(t("--root {root}: no such folder", root=options.root))
        overrides["root"] = str(options.root.resolve())
    return once.main(config_file.load(_config_file(options), overrides), kmsg=options.kmsg, out=sys.stdout)


def _join(options: argparse.Namespace) -> int:
    from agent.cli import join

    return join.main(
        options.token,
        config=Path(options.config or DEFAULT_CONFIG),
        node=options.node,
        new_key=options.new_key,
    )


def _decode(options: argparse.Namespace) -> int:
    from agent.cli import decode

    # `gpuward-agent decode FILE | head`: end like any other filter.
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    return decode.main(options.files, driver=options.driver, out=sys.stdout)


def _list(options: argparse.Namespace) -> int:
    from agent.cli import listing

    signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    return listing.main(as_json=options.json, out=sys.stdout)


def _config_file(options: argparse.Namespace) -> Path | None:
    if options.config is not None:
        return Path(options.config)
    return DEFAULT_CONFIG if DEFAULT_CONFIG.exists() else None


def _overrides(options: argparse.Namespace) -> dict[str, str]:
    overrides = {}
    for text in options.set:
        key, equals, value = text.partition("=")
        if not equals:
            raise ConfigError(t("--set {text}: want KEY=VALUE", text=text))
        overrides[key.strip()] = value
    return overrides


def parser(kind: type[argparse.ArgumentParser]) -> argparse.ArgumentParser:
    """What may be typed, in the language that is spoken."""
    found = kind(prog="gpuward-agent", description=t("Reports facts about this node to gpuward's brain."))
    found.add_argument(
        "--lang",
        choices=LANGUAGES,
        help=t("language of help and messages, also behind a command; default: that of the locale"),
    )
    commands = found.add_subparsers(required=True, metavar="COMMAND")

    config = argparse.ArgumentParser(add_help=False)
    config.add_argument(
        "--config",
        metavar="FILE",
        help=t("TOML file (default: {config} if it exists)", config=DEFAULT_CONFIG),
    )
    config.add_argument(
        "--set", metavar="KEY=VALUE", action="append", default=[], help=t("sets one option; may be repeated")
    )

    run = commands.add_parser("run", parents=[config], help=t("the node agent"))
    run.add_argument(
        "--check",
        action="store_true",
        help=t("only reads the configuration: 0, or 2 and what is wrong with it"),
    )
    run.set_defaults(call=_run)

    join = commands.add_parser(
        "join",
        help=t("joins a cell: makes this node's key and writes the configuration"),
        description=t(
            "Joins a cell with a token of `gpuward cell token`. Makes this node's NKEY, which never leaves "
            "the node, beside the configuration, and writes there how the cell is reached and whose commands "
            "count. Safe to run again."
        ),
    )
    join.add_argument(
        "token", metavar="TOKEN", help=t("or - to read it from standard input: others see arguments")
    )
    join.add_argument("--config", metavar="FILE", help=t("default: {config}", config=DEFAULT_CONFIG))
    join.add_argument(
        "--node", default="", help=t("name of this node (default: the host name up to its first dot)")
    )
    join.add_argument(
        "--new-key",
        action="store_true",
        help=t("with a new key in place of the one that is there (TOKEN: of `gpuward cell token --replace`)"),
    )
    join.set_defaults(call=_join)

    checking = commands.add_parser("check", help=t(check.ABOUT))
    check.arguments(checking)
    checking.set_defaults(call=check.run)

    once = commands.add_parser(
        "once",
        parents=[config],
        help=t("runs every collector once; events as JSON lines"),
        description=t(
            "Reads every source once and prints the events that would be sent, one JSON line each."
        ),
    )
    once.add_argument(
        "--root", metavar="DIR", type=Path, help=t("a recorded machine: its /proc, /sys, /dev below DIR")
    )
    once.add_argument(
        "--kmsg", metavar="FILE", type=Path, help=t("kernel log to read instead of the machine's own")
    )
    once.set_defaults(call=_once)

    decode = commands.add_parser(
        "decode",
        help=t("what kernel log lines mean, as JSON lines"),
        description=t(
            "Reads kernel log lines as /dev/kmsg, journald, dmesg or dmesg --decode write them. One JSON line "
            "for each that means something."
        ),
    )
    decode.add_argument(
        "files", metavar="FILE", nargs="*", type=Path, help=t("default: standard input; - too")
    )
    decode.add_argument(
        "--driver",
        metavar="VERSION",
        default="",
        help=t(
            "NVIDIA driver, e.g. 580.82: NVLink5 errors are read by its layout (default: as the log says)"
        ),
    )
    decode.set_defaults(call=_decode)

    listing = commands.add_parser("list", help=t("collectors, sources, actions and event kinds"))
    listing.add_argument("--json", action="store_true", help=t("as one JSON object"))
    listing.set_defaults(call=_list)
    return found
