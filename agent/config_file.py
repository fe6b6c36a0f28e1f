"""Reads the agent's configuration: a TOML file, then what was typed on the command line.

Every error names the file with its line, or the command line, and the key, and says what is wanted there.
"""

import os
import re
import tomllib
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, fields, replace
from difflib import get_close_matches
from math import inf
from pathlib import Path
from typing import Any

from agent.collectors import RARE, collectors_with
from agent.config import AgentConfig
from agent.contract import subjects
from agent.contract.errors import ConfigError
from agent.options import Option, declared
from agent.sources import sources_with

_TOO_LARGE = 1e12
_COMMAND_LINE = "command line"


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """Options that one part declares."""

    # `agent` | `source <name>` | `collector <name>`
    part: str
    options: tuple[Option, ...]


def groups(keys: Collection[str] = tuple(RARE)) -> Iterator[Group]:
    """All options: those of agent.config, then those of each source and collector. What several share comes once. `keys`: of the
    parts that are rare, only those that these keys ask for.
    """
    parts: tuple[tuple[str, tuple[type[Any], ...]], ...] = (
        ("agent", (AgentConfig,)),
        *((f"source {source.name}", source.options) for source in sources_with(keys)),
        *((f"collector {collector.name}", collector.options) for collector in collectors_with(keys)),
    )
    done: set[type[Any]] = set()
    first: dict[str, str] = {}
    for part, declarations in parts:
        found = [option for one in declarations if one not in done for option in declared(one)]
        done.update(declarations)
        for option in found:
            if option.key in first:
                raise TypeError(f"option {option.key} is declared by {first[option.key]} and by {part}")
            first[option.key] = part
        yield Group(part=part, options=tuple(found))


def load(path: Path | None, overrides: Mapping[str, str] | None = None) -> AgentConfig:
    """The configuration in `path` (None: only defaults), then `overrides` (key → text as it was typed)."""
    raw: dict[str, Any] = {}
    text = ""
    if path is not None:
        text = _text(path)
        try:
            raw = tomllib.loads(text)
        except tomllib.TOMLDecodeError as error:
            raise ConfigError(f"{path}: not TOML: {error}") from error
    known = _known((*raw, *(overrides or {})))
    values: dict[str, Any] = {}
    for key, value in raw.items():
        values[key] = _value(known, key, value, f"{path}{_line(text, key)}")
    for key, typed in (overrides or {}).items():
        value = _from_text(known[key].type, typed) if key in known else typed
        values[key] = _value(known, key, value, _COMMAND_LINE)
    if "data_dir" not in values and (made := os.environ.get("STATE_DIRECTORY")):
        values["data_dir"] = Path(made.partition(":")[0])  # of the unit: another one with hands than without
    own = {item.name for item in fields(AgentConfig)}
    plugins = {key: value for key, value in values.items() if key not in own}
    config = AgentConfig(**{key: value for key, value in values.items() if key in own}, plugins=plugins)
    return _checked(config, str(path) if path else _COMMAND_LINE)


def _known(keys: Collection[str]) -> Mapping[str, Option]:
    """The options among which these keys are: of rare parts, which are not imported for nothing, as few as have them."""
    for among in (keys, tuple(RARE)):
        known = {option.key: option for group in groups(among) for option in group.options}
        if all(key in known for key in keys):
            break
    return known


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8").removeprefix("\ufeff")
    except OSError as error:
        raise ConfigError(
            f"{path}: cannot be read ({error.strerror}): give another file with --config"
        ) from error
    except UnicodeDecodeError as error:
        raise ConfigError(f"{path}: not TOML: {error}") from error


def _line(text: str, key: str) -> str:
    """`:7` where the key begins on line 7; empty where it is written in a way that is not recognised."""
    name = re.escape(key)
    place = re.search(rf"""(?m)^[ \t]*(?:\[[ \t]*)?(?:{name}|"{name}"|'{name}')[ \t]*[].=]""", text)
    return f":{text.count(chr(10), 0, place.start()) + 1}" if place else ""


_FITS: Mapping[str, Callable[[Any], bool]] = {
    "text": lambda value: isinstance(value, str),
    "path": lambda value: isinstance(value, str),
    "number": lambda value: isinstance(value, int | float) and not isinstance(value, bool),
    "whole number": lambda value: isinstance(value, int) and not isinstance(value, bool),
    "true or false": lambda value: isinstance(value, bool),
    "list of texts": lambda value: isinstance(value, list) and all(isinstance(one, str) for one in value),
    "list of whole numbers": lambda value: isinstance(value, list) and all(type(one) is int for one in value),
    "table": lambda value: isinstance(value, dict) and all(isinstance(one, str) for one in value.values()),
    "tables": lambda value: isinstance(value, dict) and all(isinstance(one, dict) for one in value.values()),
}


def _value(known: Mapping[str, Option], key: str, raw: Any, where: str) -> Any:
    """`raw` in the option's type."""
    option = known.get(key)
    if option is None:
        close = get_close_matches(key, known)
        meant = f": did you mean {', '.join(close)}?" if close else f" (known: {', '.join(known)})"
        raise ConfigError(f"{where}: unknown key {key!r}{meant}")
    if not _FITS[option.type](raw):
        raise ConfigError(f"{where}: {key} must be a {option.type}, not {raw!r}")
    if option.least is not None and not option.least <= raw < _TOO_LARGE:  # refuses nan and inf too
        bound = f"less than {_TOO_LARGE:g}" if _TOO_LARGE <= raw < inf else f"{option.least} or more"
        raise ConfigError(f"{where}: {key} must be {bound}, not {raw!r}")
    if option.type == "path":
        value: Any = Path(raw)
    elif option.type == "number":
        value = float(raw)
    else:
        value = tuple(raw) if isinstance(raw, list) else raw
    if option.check is not None and (wrong := option.check(key, value)):
        raise ConfigError(f"{where}: {wrong}")
    return value


def _from_text(type_: str, text: str) -> Any:
    """What was typed, as TOML would hold it: lists comma separated, tables as `a=b,c=d`."""
    parts = [part.strip() for part in text.split(",") if part.strip()]
    try:
        if type_ == "whole number":
            return int(text)
        if type_ == "number":
            return float(text)
        if type_ == "true or false":
            return {"true": True, "false": False}.get(text, text)
        if type_ == "list of whole numbers":
            return [int(part) for part in parts]
    except ValueError:
        return text  # _value reports what is wanted
    if type_ == "list of texts":
        return parts
    # Base64 ends with "=": only the first one of a part separates.
    return dict(part.partition("=")[::2] for part in parts) if type_ == "table" else text


def _checked(config: AgentConfig, where: str) -> AgentConfig:
    """`config` with its node name filled in; ConfigError for values that do not fit each other."""
    try:
        subjects.token(config.cell, "cell")
        node = (
            subjects.token(config.node, "node")
            if config.node
            else subjects.node_name(config.host().hostname(), "set `node`")
        )
    except ConfigError as error:
        raise ConfigError(f"{where}: {error}") from error
    if sorted(config.driver_unload) != sorted(config.driver_load) or not config.driver_load:
        raise ConfigError(f"{where}: driver_unload and driver_load must name the same modules")
    return replace(config, node=node)
