"""What is declared is simulated, and what is simulated is listed; a failure names the line to add.

The checks are functions, so that the last tests can show them a gap.
"""

import re
from collections.abc import Collection, Iterable
from pathlib import Path
from types import ModuleType

import pytest

from agent.contract import actions as contract
from brain.core.pack.actions import BRAIN_ACTIONS
from simulations import actions, drills
from simulations.actions import FABRIC_ACTIONS, INFRASTRUCTURE_ACTIONS
from tests.simulations.stories import STORIES, happened, played

INFRASTRUCTURE, FABRIC = "simulations/actions/infrastructure.py", "simulations/actions/fabric.py"


def areas(package: ModuleType) -> dict[str, list[str]]:
    """Area -> the names of its actions, as the contract declares them."""
    return {
        name: [spec.name for spec in module.ACTIONS]
        for name, module in vars(package).items()
        if isinstance(module, ModuleType) and hasattr(module, "ACTIONS")
    }


def not_simulated(declared: Iterable[str], simulated: Collection[str], file: str) -> list[str]:
    """A line to add to the table of the file, for each declared action that it does not simulate."""
    return [
        f'{file}: ACTIONS: add "{name}": {re.sub("[^a-z0-9]", "_", name)},'
        for name in declared
        if name not in simulated
    ]


def not_declared(simulated: Iterable[str], declared: Collection[str], file: str) -> list[str]:
    """A line to remove from the table of the file, for each action that is no longer declared."""
    return [f'{file}: ACTIONS: remove "{name}"' for name in simulated if name not in declared]


def not_listed(folder: Path, table: str, listed: Collection[str], list_name: str) -> list[str]:
    """A name to add to the list of a package, for each of its files that has such a table."""
    return [
        f"{folder.parent.name}/{folder.name}/__init__.py: import {_name(folder, file)}, and add it to {list_name}"
        for file in sorted(folder.rglob("*.py"))
        if re.search(rf"^{table}\b", file.read_text(encoding="utf-8"), re.MULTILINE)
        and file != folder / "__init__.py"
        and _name(folder, file) not in listed
    ]


def _name(folder: Path, file: Path) -> str:
    return ".".join(file.relative_to(folder).with_suffix("").parts)


def without_story(names: Iterable[str], stories: Collection[str]) -> list[str]:
    """A line to add to the table of stories, for each drill that it lacks: what happens today, to be judged first."""
    lines = []
    for name in names:
        if name not in stories:
            found = happened(played(name).timeline)
            rows = [f'"{name}": {row!r},'.replace("'", '"') for row in found]
            lines.append(f"tests/simulations/stories.py: STORIES: add {' or '.join(rows) or 'no incident'}")
    return lines


def module_names(modules: Iterable[ModuleType]) -> list[str]:
    return [module.__name__.rpartition(".")[2] for module in modules]


def folder(package: ModuleType) -> Path:
    return Path(str(package.__file__)).parent


def none_left(lines: list[str]) -> None:
    """Fails with these lines."""
    assert not lines, "\n".join(["", *lines])


@pytest.mark.parametrize("area", sorted({*areas(contract), *module_names(actions.NODE_AREAS)}))
def test_every_action_of_a_node_is_simulated_in_the_file_of_its_area(area: str) -> None:
    """A new action of the agent needs its simulated action; a removed one leaves none behind."""
    declared = areas(contract).get(area, [])
    simulated = getattr(actions, area).ACTIONS if area in module_names(actions.NODE_AREAS) else {}
    file = f"simulations/actions/{area}.py"
    none_left(not_simulated(declared, simulated, file) + not_declared(simulated, declared, file))


def test_every_action_of_the_brain_is_simulated_for_a_node_or_for_a_fabric() -> None:
    """A new action of the brain needs its simulated action; a removed one leaves none behind."""
    assert not set(INFRASTRUCTURE_ACTIONS) & set(FABRIC_ACTIONS), "an action is simulated twice"
    none_left(
        not_simulated(BRAIN_ACTIONS, {*INFRASTRUCTURE_ACTIONS, *FABRIC_ACTIONS}, INFRASTRUCTURE)
        + not_declared(INFRASTRUCTURE_ACTIONS, BRAIN_ACTIONS, INFRASTRUCTURE)
        + not_declared(FABRIC_ACTIONS, BRAIN_ACTIONS, FABRIC)
    )


def test_every_file_of_actions_is_listed() -> None:
    """An action that no list names cannot be performed."""
    listed = [*module_names(actions.NODE_AREAS), "infrastructure", "fabric"]
    none_left(not_listed(folder(actions), "ACTIONS", listed, "NODE_AREAS"))


def test_every_file_of_drills_is_listed() -> None:
    """A drill that no list names cannot be injected."""
    none_left(not_listed(folder(drills), "DRILLS", module_names(drills.AREAS), "AREAS"))


def test_every_drill_is_in_one_area_only() -> None:
    """Two drills of one name would be one in the list."""
    names = [drill.name for area in drills.AREAS for drill in area.DRILLS]
    assert len(names) == len(set(names))


def test_every_drill_has_a_story() -> None:
    """What becomes of it is written down; `repair` has no story, as it breaks nothing."""
    breaking = [name for name, drill in drills.DRILLS.items() if drill.breaks]
    none_left(without_story(breaking, STORIES))
    assert set(STORIES) <= set(breaking), "a story without a drill"


def test_an_action_that_is_not_simulated_is_named_with_its_line() -> None:
    """The file, the table and the row; for a row too many, the row to remove."""
    file = "simulations/actions/gpu.py"
    assert not_simulated(["gpu.reset", "gpu.mig_set"], {"gpu.reset"}, file) == [
        'simulations/actions/gpu.py: ACTIONS: add "gpu.mig_set": gpu_mig_set,'
    ]
    assert not_declared(["gpu.reset", "gpu.mig_set"], {"gpu.reset"}, file) == [
        'simulations/actions/gpu.py: ACTIONS: remove "gpu.mig_set"'
    ]


def test_a_file_that_is_not_listed_is_named(tmp_path: Path) -> None:
    """Only a file with a table is meant: one that the others share needs no place in the list."""
    package = tmp_path / "simulations" / "drills"
    package.mkdir(parents=True)
    for name, text in {
        "gpu": "DRILLS: tuple[Drill, ...] = ()\n",
        "storage": "DRILLS = ()\n",
        "drill": "class Drill: ...\n",
        "__init__": "DRILLS = {}\n",
    }.items():
        (package / f"{name}.py").write_text(text)
    assert not_listed(package, "DRILLS", ["gpu"], "AREAS") == [
        "simulations/drills/__init__.py: import storage, and add it to AREAS"
    ]


def test_a_drill_without_a_story_is_named_with_what_happens() -> None:
    """The row can be copied into the table, once it is what one wants."""
    (line,) = without_story(["link-down", "mtu-drift"], {"mtu-drift"})
    assert line == (
        'tests/simulations/stories.py: STORIES: add "link-down": ("link-down", "closed", ["link.bounce"]),'
    )
