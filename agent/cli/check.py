"""`gpuward-agent check`: is this node fit for jobs, by what its agent knows?

For Slurm's Prolog, Epilog and HealthCheckProgram (docs/slurm.md), which wait for it: most of its time is Python's own start,
so it imports next to nothing. An agent that is down, hung, silent or blind never takes a node away: the node counts as fit then.
"""

import argparse
import json
import os
import socket
import sys
import time

from agent.contract.drain_reason import plain, written
from agent.contract.fitness import GPU, GROUPS, MAX_ANSWER_BYTES, SOCKET

TYPE_CHECKING = False  # as typing's, whose import takes as long as the answer
if TYPE_CHECKING:
    from typing import Any, TextIO

ABOUT = "says whether this node is fit for jobs, from the agent's memory: 0 yes, or not known; 1 no, with the reasons"


def t(english: str, /, **values: object) -> str:
    """As agent.shared.words.t, which is there only where another language than English is spoken: its import takes time."""
    words = sys.modules.get("agent.shared.words")
    return str(words.t(english, **values)) if words else english.format(**values) if values else english


def arguments(parser: argparse.ArgumentParser) -> None:
    """Declares what may be typed."""
    parser.add_argument(
        "--also",
        metavar="GROUP,...",
        type=_groups,
        default=(),
        help=t("what else makes the node unfit; with a Prolog, what many nodes share drains all of them. ")
        + "; ".join(f"{name}: {t(what)}" for name, what in GROUPS.items() if name != GPU),
    )
    parser.add_argument("--json", action="store_true", help=t("prints what the agent has answered"))
    parser.add_argument(
        "--drain-reason",
        action="store_true",
        help=t("prints one line, as the reason of a drain, where it is unfit"),
    )
    parser.add_argument(
        "--timeout",
        metavar="TIME",
        type=_seconds,
        default=0.1,
        help=t("for the answer, e.g. 0.1s (the default)"),
    )
    parser.add_argument(
        "--socket",
        metavar="PATH",
        default=SOCKET,
        help=t("check_socket of the agent; {socket}", socket=SOCKET),
    )


def main(argv: list[str]) -> int:
    """The exit status: 0 fit, or nothing is known; 1 unfit; 2 wrong usage."""
    parser = argparse.ArgumentParser(
        prog="gpuward-agent check",
        description=f"{ABOUT[0].upper()}{ABOUT[1:]}; 2 wrong usage.",
        # Of its own accord it would import shutil, bz2 and lzma to ask how wide the terminal is.
        formatter_class=lambda prog: argparse.HelpFormatter(prog, width=100),
    )
    arguments(parser)
    return run(parser.parse_args(argv))


def run(options: argparse.Namespace) -> int:
    """As main."""
    groups = (GPU, *options.also)
    try:
        said = _asked(options.socket, options.timeout)
        reasons = [
            plain(one["text"]) for one in said["conditions"] if one["group"] in groups and not one["stale"]
        ]
        doubts = [
            t("{name} does not run ({why})", name=plain(name), why=plain(why))
            for name, why in said["blind"].items()
        ]
    except (OSError, ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        said, reasons, doubts = {}, [], [_why(error, options)]
    if doubts:
        verdict = t("unfit") if reasons else t("nothing is known against this node")
        _say(sys.stderr, f"gpuward-agent: {'; '.join(doubts)}: {verdict}")
    if options.json:
        known = {"fit": not reasons, "known": bool(said), "reasons": reasons}
        _say(sys.stdout, json.dumps({**known, **said}))
    elif reasons:
        _say(sys.stdout, written("; ".join(reasons)) if options.drain_reason else "\n".join(reasons))
    return 1 if reasons else 0


class _NoAnswerError(ValueError):
    """What came is none; the text is ours."""


def _why(error: Exception, options: argparse.Namespace) -> str:
    """What stands in the way of an answer, and who does what about it."""
    if isinstance(error, PermissionError):
        return t(
            "user {user} may not ask the agent, which answers root and its own user only. Type it as root; in Slurm's programs: "
            "SlurmdUser must be root (docs/slurm.md)",
            user=_user(),
        )
    if isinstance(error, (FileNotFoundError, ConnectionRefusedError)):
        return t(
            "the agent does not answer: none runs, or not at {path} (check_socket of its agent.toml; --socket names another). On "
            "this node, as root: systemctl status gpuward-agent",
            path=plain(options.socket),
        )
    if isinstance(error, TimeoutError):
        return t(
            "the agent does not answer within {timeout_s} s: it hangs, or has too much to do. On this node, as root: "
            "systemctl status gpuward-agent",
            timeout_s=f"{options.timeout:g}",
        )
    said = error.strerror if isinstance(error, OSError) else str(error)
    words = said if isinstance(error, _NoAnswerError) else plain(said or "")
    return t("the agent does not answer ({error})", error=words or type(error).__name__)


def _user() -> str:
    """The name of whoever asks."""
    import pwd

    try:
        return plain(pwd.getpwuid(os.geteuid()).pw_name)
    except KeyError:
        return str(os.geteuid())


def _asked(path: str, timeout_s: float) -> "dict[str, Any]":
    """The agent's answer. OSError: there is none in time; ValueError: it is none."""
    end_s = time.monotonic() + timeout_s
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
        connection.settimeout(timeout_s)
        _connect(connection, path, end_s)
        got = b""
        while not got.endswith(b"\n"):
            left_s = end_s - time.monotonic()
            if left_s <= 0:
                raise TimeoutError
            connection.settimeout(left_s)
            part = connection.recv(65536)
            got += part
            if not part or len(got) > MAX_ANSWER_BYTES:
                raise _NoAnswerError(t("{got} bytes that are no answer", got=len(got)))
    said = json.loads(got)
    if not isinstance(said, dict):
        raise _NoAnswerError(t("no object"))
    return said


def _connect(connection: socket.socket, path: str, end_s: float) -> None:
    """Connects. Where too many wait already the kernel says so at once: then again, as long as there is time."""
    while True:
        try:
            connection.connect(path)
        except BlockingIOError:
            if time.monotonic() >= end_s:
                raise TimeoutError from None
            time.sleep(0.002)  # a socket that is full tells nobody when it has room again
        else:
            return


def _say(where: "TextIO | None", text: str) -> None:
    """Writes a line, where anybody listens. What cannot be written changes no verdict."""
    if where is None:  # closed by whoever started us
        return
    try:
        print(text, file=where, flush=True)
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), where.fileno())


def _groups(text: str) -> tuple[str, ...]:
    names = tuple(name.strip() for name in text.split(",") if name.strip())
    if unknown := [name for name in names if name not in GROUPS]:
        raise argparse.ArgumentTypeError(
            t("no group {unknown} (known: {groups})", unknown=repr(unknown[0]), groups=", ".join(GROUPS))
        )
    return names


def _seconds(text: str) -> float:
    number, unit_s = (text[:-2], 0.001) if text.endswith("ms") else (text.removesuffix("s"), 1.0)
    try:
        seconds = float(number) * unit_s
    except ValueError:
        seconds = 0.0
    if not 0.0 < seconds <= 60.0:
        raise argparse.ArgumentTypeError(
            t("{text} is no time above 0 and up to 60 s, e.g. 0.1s or 100ms", text=repr(text))
        )
    return seconds
