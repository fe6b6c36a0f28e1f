"""Whoever forgets to register a plug-in of the brain learns which line to add where.

The checks are functions (registration.py), so that the tests can also show them a gap.
"""

import configparser
import inspect
from collections.abc import Mapping
from contextlib import AsyncExitStack
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any, get_args

import pytest

from agent.contract.actions import ACTIONS as NODE_ACTIONS
from brain.actions import bmc_tables, build, scheduler, switches
from brain.adapters import codec
from brain.cli.lazy import Lazy
from brain.cli.main import COMMANDS
from brain.config import BrainConfig, parse
from brain.console.api import verbs
from brain.core.inputs import EventSeen, Input, PackLoaded
from brain.core.operators import commands
from brain.core.pack.actions import BRAIN_ACTIONS
from brain.core.pack.spec import Settings
from brain.notify import notifier
from brain.options import plug_in
from docs import field_comments
from docs.plug_ins import TABLES as TABLES_OF_TYPES
from docs.plug_ins import WITHOUT_TYPE, options_of
from tests.brain import registration
from tests.brain.actions.idle_fleet import FLEET
from tests.brain.registration import ROOT, Table

TABLES = [
    (registration.CHANNELS, registration.CHANNEL_TYPES, notifier.TYPES),
    (registration.ACTIONS, registration.SCHEDULER_TYPES, scheduler.TYPES),
    (registration.ACTIONS, registration.BMC_TYPES, bmc_tables.TYPES),
    (registration.ACTIONS, registration.SWITCH_TYPES, switches.TYPES),
]
IDS = ["channels", "schedulers", "bmc", "switches"]
ACTION = """\
class MadeUp:
    name: ClassVar[str] = "bmc.made_up"

    async def plan(self, order):
        return []

    async def run(self, order):
        return None
"""


def place(one: Lazy) -> str:
    """Where a command is: `module:function`."""
    return str(inspect.getclosurevars(one.load).nonlocals["place"])


def nothing(messages: list[str]) -> None:
    """Fails with the messages, as they are to be read."""
    if messages:
        pytest.fail("\n".join(messages), pytrace=False)


def folder_with(tmp_path: Path, file: str, text: str) -> Path:
    """A repository with just this file."""
    path = tmp_path / file
    path.parent.mkdir(parents=True)
    path.write_text(text, encoding="utf-8")
    return tmp_path


def whole_site(folder: Path) -> BrainConfig:
    """A site with every table of the configuration that actions need."""
    (folder / "secret").write_text("x", encoding="utf-8")
    (folder / "cables.yaml").write_text("{}", encoding="utf-8")
    command = ["/bin/true", "{switch}", "{port}", "{do}"]
    tables: dict[str, Any] = {
        "bmc": {"a": {"type": "ipmi", "address": "{node}", "user": "u", "password_file": "secret"}},
        "schedulers": {"a": {"type": "slurm"}},
        "subnet_managers": {"a": {"hosts": [{"node": "sm1"}]}},
        "switches": {"a": {"type": "command", "command": command, "cables": "cables.yaml"}},
    }
    return parse(tables, "site.toml", folder)


async def test_every_action_of_the_brain_is_declared_performed_and_built(tmp_path: Path) -> None:
    """What is declared and not built is refused at every site; what is not declared can be in no runbook."""
    classes = registration.action_classes()
    nothing(registration.undeclared(classes, BRAIN_ACTIONS))
    nothing(registration.not_implemented(BRAIN_ACTIONS, classes))
    async with AsyncExitStack() as stack:
        built = build(whole_site(tmp_path), FLEET, stack).actions
    nothing(registration.not_built(classes, built))
    assert set(built) == set(BRAIN_ACTIONS)
    assert len(classes) == len(BRAIN_ACTIONS), "each is recognised, and none is performed twice"


def test_no_action_is_declared_twice() -> None:
    """The later declaration would win without a word: with its own repeat class, and what it disrupts."""
    assert not set(BRAIN_ACTIONS) & set(NODE_ACTIONS)
    nothing(registration.declared_twice())


def test_a_second_declaration_is_named(tmp_path: Path) -> None:
    """Also one in a single line."""
    root = folder_with(
        tmp_path, registration.DECLARATIONS, '_spec("bmc.nmi", 1)\n_spec(\n    "bmc.nmi",\n)\n'
    )
    assert registration.declared_twice(root) == [
        "brain/core/pack/actions.py:2: bmc.nmi is declared already: the later row would win"
    ]


def test_a_forgotten_declaration_of_an_action_is_named(tmp_path: Path) -> None:
    """With the row of the table, and the other way round with the class."""
    root = folder_with(tmp_path, "brain/actions/made_up.py", ACTION)
    (found,) = registration.action_classes(root)
    assert registration.undeclared([found], BRAIN_ACTIONS) == [
        "brain/actions/made_up.py: MadeUp performs bmc.made_up, which is not declared. "
        "In brain/core/pack/actions.py add to BRAIN_ACTIONS\n"
        '    _spec("bmc.made_up", "...", Disrupts..., Repeat..., <timeout in s>),'
    ]
    assert registration.not_implemented(["bmc.made_up", "bmc.led", "dns.flush"], [found]) == [
        "brain/core/pack/actions.py declares bmc.led, and no class performs it. "
        "In brain/actions/made_up.py (or a file of its own) add a class\n"
        '    name: ClassVar[str] = "bmc.led"',
        "brain/core/pack/actions.py declares dns.flush, and no class performs it. "
        "In brain/actions/dns.py (or a file of its own) add a class\n"
        '    name: ClassVar[str] = "dns.flush"',
    ]


def test_an_action_that_no_site_gets_is_named(tmp_path: Path) -> None:
    """With the list of its area, or the line of a new area."""
    root = folder_with(tmp_path, "brain/actions/made_up.py", ACTION)
    (found,) = registration.action_classes(root)
    assert registration.not_built([found], {"bmc.nmi"}, root) == [
        "brain/actions/made_up.py: MadeUp is never built. In brain/actions/made_up.py add a function "
        "`area(site: Site) -> list[Action]`, and in brain/actions/__init__.py import made_up and add to AREAS\n"
        "    made_up.area,"
    ]
    (root / found.file).write_text(f"{ACTION}\n\ndef area(site):\n    return []\n", encoding="utf-8")
    assert registration.not_built([found], {"bmc.nmi"}, root) == [
        "brain/actions/made_up.py: MadeUp is never built. In brain/actions/made_up.py add it to what `area` returns\n"
        "    MadeUp(...)"
    ]
    assert registration.not_built([found], {"bmc.made_up"}, root) == []


def test_an_action_of_an_area_in_several_files_is_sent_to_the_file_that_builds_it(tmp_path: Path) -> None:
    """The area is the file with `area` that imports the class's module."""
    root = folder_with(tmp_path, "brain/actions/made_up.py", ACTION)
    area = "from brain.actions.made_up import MadeUp\n\n\ndef area(site):\n    return []\n"
    (root / "brain/actions/bmc.py").write_text(area, encoding="utf-8")
    assert registration.not_built(registration.action_classes(root), {"bmc.nmi"}, root) == [
        "brain/actions/made_up.py: MadeUp is never built. In brain/actions/bmc.py add it to what `area` returns\n"
        "    MadeUp(...)"
    ]


@pytest.mark.parametrize(("folder", "table", "types"), TABLES, ids=IDS)
def test_every_type_of_a_plug_in_is_in_its_table(folder: str, table: Table, types: Mapping[str, str]) -> None:
    """And each entry of the table is a function that can be called as the table's comment says."""
    nothing(registration.unregistered(folder, table, types))
    assert len(registration.unregistered(folder, table, {})) == len(types), "each is recognised"
    for name in types:
        function = plug_in({"type": name}, "x", types)
        assert tuple(one.lstrip("_") for one in inspect.signature(function).parameters) == table.params, name


@pytest.mark.parametrize(
    ("folder", "table", "text", "line"),
    [
        (
            registration.CHANNELS,
            registration.CHANNEL_TYPES,
            "def build(name, table, where, way) -> Matrix: ...",
            'notifier.py add to TYPES\n    "matrix": "brain.notify.matrix:build",',
        ),
        (
            registration.ACTIONS,
            registration.SCHEDULER_TYPES,
            "def build(name, table, where) -> Pbs: ...",
            'scheduler.py add to TYPES\n    "matrix": "brain.actions.matrix:build",',
        ),
        (
            registration.ACTIONS,
            registration.BMC_TYPES,
            "def build(table, where) -> tuple[BmcOptions, Backend]: ...",
            'bmc_tables.py add to TYPES\n    "matrix": "brain.actions.matrix:build",',
        ),
        (
            registration.ACTIONS,
            registration.SWITCH_TYPES,
            "def build(table, where, _ufms) -> Gnmi: ...",
            'switches.py add to TYPES\n    "matrix": "brain.actions.matrix:build",',
        ),
    ],
    ids=IDS,
)
def test_a_forgotten_type_is_named(tmp_path: Path, folder: str, table: Table, text: str, line: str) -> None:
    """With the file and the row of its table; the function of another table is left alone."""
    root = folder_with(tmp_path, f"{folder}/matrix.py", text)
    (message,) = registration.unregistered(folder, table, {"log": "brain.notify.log:build"}, root)
    assert message.startswith(f"{folder}/matrix.py: `build` is not registered. In ")
    assert message.endswith(line)
    others = [other for place, other, _ in TABLES if place == folder and other != table]
    for other in others:
        assert registration.unregistered(folder, other, {}, root) == []


# `build` of these makes the whole from the tables.
WHOLE = {
    "brain.notify.notifier:build",
    "brain.notify.tickets:build",  # what its two types have in common
    "brain.actions.__init__:build",
    "brain.actions.bmc_tables:build",
}


@pytest.mark.parametrize("folder", [registration.CHANNELS, registration.ACTIONS])
def test_every_build_function_is_in_a_table(folder: str) -> None:
    """Also one whose parameters are those of no table."""
    known = {place for _, _, types in TABLES for place in types.values()}
    nothing(registration.strangers(folder, known | WHOLE))


@pytest.mark.parametrize(
    "text",
    [
        "def build(name, options): ...\n",
        "class Matrix:\n    async def send(self): ...\n    async def close(self): ...\n",
    ],
)
def test_a_channel_that_fits_no_table_is_named(tmp_path: Path, text: str) -> None:
    """Other parameters, or no function at all."""
    root = folder_with(tmp_path, "brain/notify/matrix.py", text)
    (message,) = registration.strangers(registration.CHANNELS, (), root)
    assert message.startswith("brain/notify/matrix.py: its `build` is in no table")


def test_every_way_to_the_same_thing_is_under_its_import_rule() -> None:
    """Most modules of brain/actions are parts of a backend: the contract lists the backends, and a new one would miss it."""
    config = configparser.ConfigParser()
    config.read(ROOT / ".importlinter")
    apart = set(config["importlinter:contract:backends-apart"]["modules"].split())
    built = {
        place.partition(":")[0]
        for folder, _, types in TABLES
        if folder == registration.ACTIONS
        for place in types.values()
    }
    nothing([f".importlinter: backends-apart: modules: add\n    {name}" for name in sorted(built - apart)])


def test_every_operator_command_is_known_to_engine_console_and_command_line() -> None:
    """A command that one of them lacks could be typed and not sent, or sent and not handled."""
    typed = [name for name, one in COMMANDS.items() if place(one).startswith("brain.cli.operator_commands:")]
    nothing(registration.missing_verbs(commands.VERBS, verbs.VERBS, typed))


def test_a_missing_operator_command_is_named() -> None:
    """In each of the three tables, with its row."""
    have = ["hold", "release"]
    assert registration.missing_verbs(["hold"], have, have) == [
        "the operator command release is missing in brain/core/operators/commands.py: VERBS. Add\n"
        '    "release": _release,'
    ]
    assert registration.missing_verbs(have, ["hold"], ["hold"]) == [
        "the operator command release is missing in brain/console/api/verbs.py: VERBS. Add\n"
        '    "release": ((<required arguments>), (<optional arguments>), Role.<the weakest that may>),',
        "the operator command release is missing in brain/cli/main.py: COMMANDS. Add\n"
        '    "release": lazy("brain.cli.operator_commands:release", "..."),',
    ]


def test_every_command_is_listed_and_can_be_loaded() -> None:
    """A command that the table does not name cannot be typed; one that cannot be loaded fails when it is."""
    nothing(registration.unlisted_commands([place(one) for one in COMMANDS.values()]))
    assert len(registration.unlisted_commands(())) == len(COMMANDS), "each is recognised"
    for name, one in COMMANDS.items():
        assert one.load().name == name


def test_an_unlisted_command_is_named(tmp_path: Path) -> None:
    """With its row."""
    text = "@click.command()\n@for_client\ndef rack_view(client): ...\n\n\ndef helper(): ...\n"
    root = folder_with(tmp_path, "brain/cli/rack.py", text)
    assert registration.unlisted_commands([], root) == [
        "brain/cli/rack.py: the command rack_view is not listed. In brain/cli/main.py add to COMMANDS\n"
        '    "rack-view": lazy("brain.cli.rack:rack_view", "..."),'
    ]


def test_every_input_of_the_engine_can_be_put_on_the_log() -> None:
    """Events come from nodes, and a pack has its own form; each other input has a token."""
    of_brains = set(get_args(Input)) - {EventSeen, PackLoaded}
    nothing(registration.inputs_without_token(of_brains, codec.PLAIN))
    assert set(codec.PLAIN.values()) == of_brains


def test_an_input_without_a_token_is_named() -> None:
    """With its row."""

    class Weather:
        """An input that the codec does not know."""

    assert registration.inputs_without_token([Weather], codec.PLAIN) == [
        "the input Weather cannot be put on the log. In brain/adapters/codec.py add to PLAIN\n"
        '    "weather": Weather,'
    ]


def kinds_of_options() -> list[type]:
    """The options of every plug-in, with those of their bases and parts."""
    found = [options_of(name, place) for types in TABLES_OF_TYPES.values() for name, place in types.items()]
    parts = [one.type for kind in found for one in fields(kind) if is_dataclass(one.type)]
    return [Settings, *found, *WITHOUT_TYPE.values(), *(part for part in parts if isinstance(part, type))]


@pytest.mark.parametrize("kind", kinds_of_options(), ids=lambda kind: kind.__name__)
def test_every_option_of_a_plug_in_is_explained(kind: type) -> None:
    """The comment above a field is its line in the reference."""
    comments = field_comments.of(kind)
    nothing(
        [
            f"{kind.__module__}: {kind.__name__}.{one.name} has no comment above it: its line in docs/reference.md"
            for one in fields(kind)
            if not comments.get(one.name) and not is_dataclass(one.type)
        ]
    )
