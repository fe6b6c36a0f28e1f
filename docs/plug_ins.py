"""The options of the brain's plug-ins, as tables made from their dataclasses."""

import importlib
import inspect
from collections.abc import Iterator, Mapping
from dataclasses import is_dataclass

from brain.actions import bmc_tables, scheduler, switches
from brain.actions.fabrics import ManagersOptions
from brain.notify import dead_mans_switch, notifier, templates
from brain.ufm.client import UfmOptions
from docs.field_tables import table

# Key of the configuration -> its types; "" stands for a table that has no type.
TABLES: Mapping[str, Mapping[str, str]] = {
    "channels": notifier.TYPES,
    "bmc": bmc_tables.TYPES,
    "schedulers": scheduler.TYPES,
    "switches": switches.TYPES,
    "dead_mans_switches": dead_mans_switch.TYPES,
}
WITHOUT_TYPE: Mapping[str, type] = {"subnet_managers": ManagersOptions, "ufm": UfmOptions}


def sections() -> Iterator[str]:
    """Yields the lines of the reference."""
    for key, types in TABLES.items():
        for name, place in types.items():
            yield f'### `[{key}.<name>]` with `type = "{name}"`\n'
            yield from table(options_of(name, place))
        if key == "channels":
            yield from _names_in_templates()
    for key, kind in WITHOUT_TYPE.items():
        yield f"### `[{key}.<name>]`\n"
        yield from table(kind)


def _names_in_templates() -> Iterator[str]:
    yield "### Names in templates\n"
    yield "In `fields` of type `jira`, and in paths and bodies of type `ticket`. A dollar is `$$`; a text that is nothing but"
    yield "`$nodes` is a number.\n"
    yield "| name | what it is |"
    yield "|---|---|"
    yield from (f"| `${name}` | {meaning} |" for name, meaning in templates.NAMES.items())
    yield "| `$<name>` | of the table `words`: what it has for the severity |"
    yield ""


def options_of(name: str, place: str) -> type:
    """Returns the dataclass with the options of a type: the one in its module whose docstring has `type = "<name>"`."""
    module = importlib.import_module(place.partition(":")[0])
    found = [
        kind
        for kind in vars(module).values()
        if inspect.isclass(kind) and is_dataclass(kind) and f'`type = "{name}"`' in (kind.__doc__ or "")
    ]
    if len(found) != 1:
        file = str(module.__name__).replace(".", "/") + ".py"
        raise LookupError(
            f'{file}: the docstring of its dataclass of options must say: The keys of a table with `type = "{name}"`.'
        )
    return found[0]
