"""The command `gpuward`."""

import os
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import click

from agent.contract.errors import ConfigError, GpuwardError
from agent.contract.inert import inert_lines
from agent.shared.standard_output import standard_output
from agent.shared.words import LANGUAGES, language, later, speaking, t, wanted, without_lang
from brain.cli import own_brain
from brain.cli.client import Client
from brain.cli.lazy import Lazy, LazyGroup, lazy

# One line for each command: where it is, and its line in the list.
COMMANDS: dict[str, Lazy] = {
    "run": lazy("brain.cli.run:run", "The brain service."),
    "status": lazy("brain.cli.queries:status", "The state of the brain, and the holds and modes in force."),
    "incidents": lazy("brain.cli.queries:incidents", "Open incidents."),
    "runs": lazy("brain.cli.queries:runs", "Runs of runbooks: what is done, and what waits for a person."),
    "remedies": lazy("brain.cli.outcomes:remedies", "What helped against which fault, and what did not."),
    "readiness": lazy(
        "brain.cli.outcomes:readiness", "What runbooks would have done by themselves, and what people did."
    ),
    "nodes": lazy("brain.cli.queries:nodes", "The nodes and their newest heartbeats."),
    "fleet": lazy("brain.cli.fleet:fleet", "Many cells under one view: who leads, what is open."),
    "explain": lazy(
        "brain.cli.explain:explain", "Whatever has an id: the whole chain, back to the kernel line."
    ),
    "evidence": lazy("brain.cli.evidence:evidence", "Fetches the evidence bundle of an incident or step."),
    "watch": lazy("brain.cli.watch:watch", "Incidents and notes as they happen."),
    "top": lazy(
        "brain.cli.top_command:top", "Incidents, runs and nodes live in a terminal, and answered there."
    ),
    "console": lazy(
        "brain.cli.console:console", "A link that opens the console in a browser, logged in as you."
    ),
    "hold": lazy(
        "brain.cli.operator_commands:hold", "Nothing disruptive is done in a scope until it is released."
    ),
    "release": lazy("brain.cli.operator_commands:release", "Ends a hold."),
    "approve": lazy("brain.cli.operator_commands:approve", "Agrees to what a run wants to do next."),
    "deny": lazy("brain.cli.operator_commands:deny", "Ends a run."),
    "ack": lazy("brain.cli.operator_commands:ack", "Acknowledges an incident: its page is not repeated."),
    "note": lazy(
        "brain.cli.operator_commands:note", "Writes something down about an incident, for the others."
    ),
    "close": lazy("brain.cli.operator_commands:close", "Closes an incident."),
    "mode": lazy(
        "brain.cli.operator_commands:mode", "How far a runbook may go by itself: observe, approve or auto."
    ),
    "return": lazy("brain.cli.operator_commands:return_", "A node is healthy again: its symptoms end."),
    "forget": lazy("brain.cli.operator_commands:forget", "A node is gone for good: nothing of it is left."),
    "start": lazy("brain.cli.operator_commands:start", "Starts a runbook on a node without a fault."),
    "reset": lazy(
        "brain.cli.operator_commands:reset", "Lets disruptive runs begin again after the breaker has tripped."
    ),
    "log": lazy(
        "brain.cli.log:log", "The log as a file: exported, looked at, replayed; from its archive too."
    ),
    "token": lazy("brain.cli.tokens:token", "Who may come in: makes, lists and revokes tokens."),
    "cell": lazy("brain.cli.cell:cell", "Who belongs to a cell: its certificates, nodes and join tokens."),
    "topology": lazy(
        "brain.cli.topology:topology", "Where nodes stand: shown, checked, made from others' files."
    ),
    "doctor": lazy("brain.cli.doctor:doctor", "Looks over a whole installation, and says what to do."),
    "check": lazy("brain.cli.check:check", "Validates rules and runbooks, runs their examples."),
    "completion": lazy("brain.cli.completion:completion", "What bash, zsh or fish needs to complete these."),
    "backtest": lazy(
        "brain.cli.backtest_command:backtest", "What gpuward would have seen and decided, of a recording."
    ),
    "diagnose": lazy("brain.cli.diagnose:diagnose", "Paste a dmesg: what is wrong, how sure, what to do."),
}

FOLDERS = (Path(__file__).resolve().parent / "words",)  # of the catalogue, a folder for each language in it
_AS_WHOM = later(": say it as root (sudo), or as the user to whom that belongs")

# What the composition root mounts: it is in a layer above the brain, so it is not imported here.
MOUNTED: dict[str, str] = {
    "up": "Everything on one machine: NATS, brain, this machine's agent, simulated nodes.",
    "drill": "Injects a fault into a simulated node of a running `up`.",
    "simulate": "A fleet's faults over weeks: what comes of them under gpuward, and without it.",
}


@click.command()
@click.option(
    "--url",
    envvar="GPUWARD_URL",
    default="",
    help=f"Where the brain is. Default: as {own_brain.DEFAULT_CONFIG} says, else {own_brain.DEFAULT_URL}.",
)
@click.option(
    "--token-file",
    envvar="GPUWARD_TOKEN_FILE",
    type=click.Path(path_type=Path),
    help="File with your token. Default on the machine of the brain: that of the user who started it.",
)
@click.option(
    "--ca-file",
    envvar="GPUWARD_CA_FILE",
    type=click.Path(path_type=Path),
    help="PEM file with the CA of an https:// brain; default: those of the system.",
)
@click.option(
    "--lang",
    type=click.Choice(LANGUAGES),
    expose_value=False,
    help="Language of help and answers, also behind a command; default: that of the locale. With --json always English.",
)
@click.version_option(package_name="gpuward")
@click.pass_context
def _options(ctx: click.Context, url: str, token_file: Path | None, ca_file: Path | None) -> None:
    ctx.obj = Client(url, token_file, ca_file, place=None if url else own_brain.place())


def group(mounted: Mapping[str, Callable[[], click.Command]]) -> LazyGroup:
    """Returns the command `gpuward` with all its subcommands; `mounted`: how to import those of MOUNTED."""
    commands = {
        name: Lazy(load=mounted[name], help=text) for name, text in MOUNTED.items() if name in mounted
    }
    made = LazyGroup(
        "gpuward",
        commands | COMMANDS,
        options=_options,
        summary="Watches a GPU fleet, finds out what is wrong, and heals it.",
    )
    if language() == "en":
        return made
    from brain.cli.language import in_language

    return in_language(made)


def run(mounted: Mapping[str, Callable[[], click.Command]], args: Sequence[str] | None = None) -> None:
    """Runs a command line, and ends the process. An error for the operator is one line, without a traceback.

    Exit status: 0 done, 1 failed, 2 the operator must correct an option or a file, 3 a second person must
    agree (console.two_persons), 130 interrupted.
    """
    given = sys.argv[1:] if args is None else args
    with standard_output("gpuward"), speaking(wanted(given, os.environ), FOLDERS):
        sys.exit(_status(group(mounted), without_lang(given)))


def _told(error: GpuwardError) -> str:
    """What it says, in the language that is spoken, as far as it is a sentence of ours."""
    text = str(error)
    if language() != "en":
        from brain import sentences

        text = sentences.told(text, language())
    return inert_lines(text)


def _status(command: click.Command, args: Sequence[str]) -> int:
    try:
        return command.main(args, prog_name="gpuward", standalone_mode=False) or 0
    except click.ClickException as error:
        error.show()
        return error.exit_code
    except click.Abort:
        return 130
    except ConfigError as error:
        click.echo(f"gpuward: {_told(error)}", err=True)
        return 2
    except OSError as error:
        if error.filename is None:
            raise
        action = t(_AS_WHOM) if isinstance(error, PermissionError) and os.geteuid() else ""
        click.echo(f"gpuward: {inert_lines(str(error.filename))}: {error.strerror}{action}", err=True)
        return 2
    except GpuwardError as error:
        click.echo(f"gpuward: {_told(error)}", err=True)
        return 1
