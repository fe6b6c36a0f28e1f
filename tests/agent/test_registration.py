"""Whoever forgets to register a plug-in of the agent learns which line to add where."""

import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from agent import config_file
from agent.actions import CLASSES
from agent.collectors import every_collector
from agent.collectors.base import Collector, CollectorSetup
from agent.collectors.clock import ClockOptions
from agent.config import AgentConfig
from agent.contract.actions import ACTIONS
from agent.contract.kinds import KINDS
from agent.contract.lines import areas
from agent.contract.look import OWN, SOURCES_OF_KINDS
from agent.host import Host
from agent.sources import every_source
from agent.sources.base import SourceSetup
from tests.agent import registration
from tests.agent.registration import ROOT

COLLECTOR = """\
from typing import ClassVar

from agent.collectors.base import Collector


class MadeUpCollector(Collector):
    name: ClassVar[str] = "made_up"
    wants: ClassVar[tuple[type, ...]] = ()
    kinds: ClassVar[tuple[str, ...]] = ("node.made_up",)

    def feed(self, sample, now_s):
        return ()
"""
SOURCE = """\
class MadeUpSource(Source):
    name: ClassVar[str] = "made_up"
    needs: ClassVar[str] = "/sys/class/hwmon"
"""
AREA = """\
class MadeUpArea:
    markers: ClassVar[tuple[str, ...]] = ("made_up",)
    kinds: ClassVar[tuple[str, ...]] = ("node.made_up",)

    def read(self, text):
        return None
"""
KIND = 'KINDS = (Kind(name="node.made_up", component="node"),)\n'
NODE_ACTION = """\
class MadeUp(NodeAction):
    name: ClassVar[str] = "made.up"

    async def plan(self, params):
        return []

    async def run(self, params):
        return Done(text="")
"""


def nothing(messages: list[str]) -> None:
    """Fails with the messages, as they are to be read."""
    if messages:
        pytest.fail("\n".join(messages), pytrace=False)


def listed(classes: tuple[type, ...]) -> set[tuple[str, str]]:
    """(module, class) of each."""
    return {(one.__module__, one.__name__) for one in classes}


def area_classes() -> tuple[type, ...]:
    """The areas of kernel lines."""
    return tuple(type(area) for area in areas(kept=True))


def folder_with(tmp_path: Path, folder: str, file: str, text: str) -> Path:
    """A folder of the repository with just this file; the root above it."""
    (tmp_path / folder).mkdir(parents=True)
    (tmp_path / folder / file).write_text(text)
    return tmp_path


def test_every_collector_is_listed() -> None:
    """A file with a collector that is not in COLLECTORS would do nothing."""
    nothing(registration.unregistered(registration.COLLECTORS, listed(every_collector())))
    assert len(registration.unregistered(registration.COLLECTORS, ())) == len(every_collector()), (
        "each is recognised"
    )


PLAIN = 'class Made(Source):\n    name = "made"\n'


@pytest.mark.parametrize("file", ["made.py", "more/made.py"])
def test_a_forgotten_plug_in_is_named_however_it_is_written(tmp_path: Path, file: str) -> None:
    """Without annotations, with half of its attributes inherited, in a folder below."""
    path = tmp_path / "agent/sources" / file
    path.parent.mkdir(parents=True)
    path.write_text(PLAIN)
    (message,) = registration.unregistered(registration.SOURCES, listed(every_source()), tmp_path)
    assert f"{file}: Made is not registered" in message.replace("more.made", "more/made")


def test_a_forgotten_area_without_annotations_is_named(tmp_path: Path) -> None:
    """It has no base to be known by."""
    text = 'class MadeArea:\n    kinds = ("node.made",)\n\n    def read(self, text): ...\n'
    root = folder_with(tmp_path, "agent/contract/lines", "made.py", text)
    assert len(registration.unregistered(registration.LINES, (), root)) == 1


def test_no_two_sources_have_one_name() -> None:
    """`list`, the metrics and agent.source_failed tell them apart by it."""
    names = [source.name for source in every_source()]
    assert len(names) == len(set(names))


def test_no_declaration_is_hidden() -> None:
    """A second declaration of one name would win without a word, and a file that is in no table declare nothing."""
    nothing(registration.hidden("agent/contract/kinds", "KINDS", KINDS))
    nothing(registration.hidden("agent/contract/actions", "ACTIONS", ACTIONS))


def test_a_hidden_declaration_is_named() -> None:
    """With its file."""
    others = {name: kind for name, kind in KINDS.items() if name != "node.clock"}
    (message,) = registration.hidden("agent/contract/kinds", "KINDS", others)
    assert message.startswith(
        "agent/contract/kinds/host.py: node.clock is not in the whole table, or declared twice"
    )


def test_every_option_and_field_has_its_unit_and_is_explained() -> None:
    """The reference and deploy/agent.toml show them; a name that ends with a unit has that one."""
    for kind in KINDS.values():
        for one in kind.fields:
            measured = one.type == "float"
            nothing(registration.without_unit(kind.name, one.name, one.unit, one.summary, measured=measured))
    for group in config_file.groups():
        for option in group.options:
            measured = option.type == "number"
            nothing(
                registration.without_unit(group.part, option.key, option.unit, option.doc, measured=measured)
            )
    for action in ACTIONS.values():
        for param in action.params:
            assert param.summary.strip(), f"{action.name}: {param.name} has no sentence that explains it"


def test_a_missing_unit_is_named() -> None:
    """And a missing sentence."""
    assert registration.without_unit("clock", "offset_s", "", "how far") == [
        "clock: offset_s needs the unit s or 1/s, not ''"
    ]
    assert registration.without_unit("clock", "well", "", " ") == [
        "clock: well has no sentence that explains it"
    ]
    assert registration.without_unit("clock", "s", "", "an address without a unit") == []
    assert registration.without_unit("clock", "grace", "", "how long", measured=True) == [
        "clock: grace needs `unit=`, and a name that ends with it, such as grace_s"
    ]
    assert registration.without_unit("clock", "drift", "ppm", "how fast", measured=True) == []


def test_a_forgotten_collector_is_named(tmp_path: Path) -> None:
    """With both lines that it needs."""
    root = folder_with(tmp_path, "agent/collectors", "made_up.py", COLLECTOR)
    (message,) = registration.unregistered(registration.COLLECTORS, listed(every_collector()), root)
    assert message == (
        "agent/collectors/made_up.py: MadeUpCollector is not registered. In agent/collectors/__init__.py add the import\n"
        "    from agent.collectors.made_up import MadeUpCollector\n"
        "and to COLLECTORS\n"
        "    MadeUpCollector,"
    )


def test_every_collector_restates_or_says_why_not() -> None:
    """One that keeps a condition and forgets `restate` would be silent in every look: a verification would pass."""
    nothing(registration.silent_in_looks(every_collector()))


def test_a_collector_that_forgets_its_conditions_is_named() -> None:
    """With the line for one that keeps none."""

    class MadeUpCollector(Collector):
        """Neither."""

    (message,) = registration.silent_in_looks([MadeUpCollector])
    assert "MadeUpCollector has neither of `restate`" in message
    assert message.endswith('one_off: ClassVar[str] = "lines of a log"')


def test_every_source_is_listed() -> None:
    """A file with a source that is not in SOURCES would do nothing."""
    nothing(registration.unregistered(registration.SOURCES, listed(every_source())))
    assert len(registration.unregistered(registration.SOURCES, ())) == len(every_source()), (
        "each is recognised"
    )


def test_every_source_stands_behind_its_kinds() -> None:
    """Whoever adds a source or a kind says which silence proves nothing while the source is blind."""
    names = [source.name for source in every_source()]
    nothing(registration.without_kinds(names, SOURCES_OF_KINDS, list(KINDS.values()), OWN))


def test_a_source_behind_no_kind_is_named() -> None:
    """And a kind that rests on none."""
    table = {"adjtimex": ("adjtimex",), "sun": ("sun",)}
    first, second, third = registration.without_kinds(
        ["adjtimex", "fan"], table, [KINDS["node.clock"], KINDS["node.module"]], OWN
    )
    assert first.startswith("agent/contract/look.py: the source fan is missing. Add to SOURCES_OF_KINDS")
    assert first.endswith('\n    "fan": ("...",),')
    assert second.endswith("remove sun: no source has that name")
    assert third.startswith("agent/contract/look.py: node.module rests on '/proc/modules', which no source")


def test_a_forgotten_source_is_named(tmp_path: Path) -> None:
    """With both lines that it needs."""
    root = folder_with(tmp_path, "agent/sources", "made_up.py", SOURCE)
    (message,) = registration.unregistered(registration.SOURCES, listed(every_source()), root)
    assert "    from agent.sources.made_up import MadeUpSource\nand to SOURCES\n    MadeUpSource," in message


def test_every_area_of_kernel_lines_is_listed() -> None:
    """A file with an area that is not in areas() would do nothing."""
    nothing(registration.unregistered(registration.LINES, listed(area_classes())))
    assert len(registration.unregistered(registration.LINES, ())) == len(area_classes()), "each is recognised"


def test_a_forgotten_area_is_named(tmp_path: Path) -> None:
    """With both lines that it needs."""
    root = folder_with(tmp_path, "agent/contract/lines", "made_up.py", AREA)
    (message,) = registration.unregistered(registration.LINES, listed(area_classes()), root)
    assert (
        "    from agent.contract.lines.made_up import MadeUpArea\nand to areas()\n    MadeUpArea(),"
        in message
    )


def action_classes() -> set[tuple[str, str]]:
    """(module, class) of each action of a node."""
    return {(f"agent.actions.{module}", name) for module, name in CLASSES.values()}


def test_every_action_is_listed() -> None:
    """A file with an action that is not in CLASSES would do nothing."""
    nothing(registration.unregistered(registration.ACTIONS, action_classes()))
    assert len(registration.unregistered(registration.ACTIONS, ())) == len(CLASSES), "each is recognised"


def test_a_forgotten_action_is_named(tmp_path: Path) -> None:
    """With the line that it needs; its class is not imported before it is used."""
    root = folder_with(tmp_path, "agent/actions", "made_up.py", NODE_ACTION)
    (message,) = registration.unregistered(registration.ACTIONS, action_classes(), root)
    assert message == (
        "agent/actions/made_up.py: MadeUp is not registered. In agent/actions/__init__.py add to CLASSES\n"
        '    "made.up": ("made_up", "MadeUp"),'
    )


def test_every_kind_of_an_area_file_is_in_the_table() -> None:
    """A file of kinds that is not in the table declares nothing."""
    nothing(registration.unlisted_areas(KINDS))


def test_a_forgotten_file_of_kinds_is_named(tmp_path: Path) -> None:
    """With what its area needs in the table."""
    root = folder_with(tmp_path, "agent/contract/kinds", "made_up.py", KIND)
    (message,) = registration.unlisted_areas(KINDS, root)
    assert "agent/contract/kinds/made_up.py declares node.made_up" in message
    assert "add `made_up` to the import and to KINDS\n    made_up.KINDS," in message


def claims() -> dict[str, tuple[str, ...]]:
    """Who emits which kinds."""
    return {one.__name__: one.kinds for one in every_collector()} | {
        type(area).__name__: area.kinds for area in areas()
    }


def test_every_emitted_kind_is_declared() -> None:
    """A kind that is not declared is dropped at run time, as a bug of the collector."""
    nothing(registration.undeclared(claims(), KINDS))


def test_an_undeclared_kind_is_named() -> None:
    """With the file where its like are declared, or the folder where there are none."""
    first, second = registration.undeclared({"MadeUpCollector": ("node.made_up", "made_up.speed")}, KINDS)
    assert first.startswith(
        "MadeUpCollector emits node.made_up, which is not declared. Add to KINDS in agent/contract/kinds/"
    )
    assert first.splitlines()[0].endswith(("/host.py", "/node.py"))
    assert '\n    Kind(name="node.made_up", ' in first
    assert "the area file of agent/contract/kinds/ where it belongs" in second


def test_every_emitted_kind_is_claimed() -> None:
    """What a collector's file mentions is in its `kinds`: `list`, the documents and the tests go by those."""
    for collector in every_collector():
        path = ROOT / (collector.__module__.replace(".", "/") + ".py")
        nothing(registration.unclaimed(path, collector.__name__, collector.kinds, KINDS))


def test_an_unclaimed_kind_is_named(tmp_path: Path) -> None:
    """With its line."""
    path = tmp_path / "made_up.py"
    path.write_text(f'{COLLECTOR}\n    def other(self):\n        return "node.clock"\n')
    (message,) = registration.unclaimed(path, "MadeUpCollector", ("node.made_up",), KINDS)
    assert message == 'made_up.py:15: MadeUpCollector emits node.clock: add "node.clock" to its `kinds`'


LISTED_OPTIONS = {
    *(part for collector in every_collector() for part in collector.options),
    *(part for source in every_source() for part in source.options),
}


def test_every_option_that_a_collector_reads_is_listed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Else its keys would be unknown in a file."""
    read: list[type] = []

    def options(_: CollectorSetup, part: type) -> Any:
        read.append(part)
        return part()

    monkeypatch.setattr(CollectorSetup, "options", options)
    for collector in every_collector():
        read.clear()
        collector.of(CollectorSetup())
        nothing(registration.unlisted_options(collector.__name__, LISTED_OPTIONS, read))
        assert set(collector.options) == set(read), "what it lists it also reads"


def test_every_option_that_a_source_reads_is_listed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its own, or those of a collector."""
    read: list[type] = []

    def options(_: AgentConfig, part: type) -> Any:
        read.append(part)
        found = part()
        # Where a source has nothing to read without them.
        asked = {"job_logs": ("/x",), "journal_units": ("x",)}
        return part(**{key: value for key, value in asked.items() if hasattr(found, key)})

    monkeypatch.setattr(AgentConfig, "options", options)
    for source in every_source():
        read.clear()
        source.of(SourceSetup(host=Host(root=Path("/recorded")), config=AgentConfig()))
        nothing(registration.unlisted_options(source.__name__, LISTED_OPTIONS, read))
        assert set(source.options) <= set(read), "what it lists it also reads"


def test_an_unlisted_option_is_named() -> None:
    """With the line that lists it."""
    (message,) = registration.unlisted_options("MadeUpCollector", {ClockOptions}, [ClockOptions, AgentConfig])
    assert message.startswith("MadeUpCollector reads AgentConfig, which no file can set")
    assert message.endswith("options: ClassVar[tuple[type[Any], ...]] = (AgentConfig,)")


PLUG_INS = {
    "collectors-apart": ("agent/collectors", "from agent.collectors.clock import ClockCollector\n"),
    "sources-apart": ("agent/sources", "from agent.sources.udev import UdevSource\n"),
    "actions-apart": ("agent/actions", "from agent.actions.mtu_set import MtuSet\n"),
    "lines-apart": ("agent/contract/lines", "from agent.contract.lines.disk import DiskArea\n"),
}


@pytest.mark.parametrize("contract", list(PLUG_INS))
def test_a_new_plug_in_may_not_import_another_one(tmp_path: Path, contract: str) -> None:
    """Without a line of its own in .importlinter, the file is compared with its folder."""
    folder, imports = PLUG_INS[contract]
    shutil.copytree(ROOT / "agent", tmp_path / "agent")
    config = tmp_path / ".importlinter"
    config.write_text((ROOT / ".importlinter").read_text().replace("    brain\n    simulations\n", "", 1))
    new = tmp_path / folder / "made_up.py"
    new.write_text("")
    command = [str(Path(sys.executable).with_name("lint-imports")), "--no-cache", "--contract", contract]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stdout
    new.write_text(imports)
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=60)
    assert done.returncode == 1, done.stdout
    package = folder.replace("/", ".")
    assert f"{package}.made_up is not allowed to import {imports.split()[1]}" in done.stdout
