"""Reads the agent's configuration: a TOML file, then what a person typed. Every error names file, key, and what is wanted."""

import base64
import binascii
import re
import tomllib
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from agent.config import EVIDENCE_TOOLS, AgentConfig
from agent.config import kind as of
from agent.contract import subjects
from agent.contract.actions import ACTIONS
from agent.contract.errors import ConfigError

_MAY_BE_EMPTY = ("ibdiagnet",)  # a tool that is not run then
_TOOLS = ("nvidia_smi", "dcgmi", "devlink", "ibportstate", "modprobe", "rmmod", *_MAY_BE_EMPTY)


def load(path: Path | None, overrides: Mapping[str, str] | None = None) -> AgentConfig:
    """The configuration in `path` (None: only defaults), then `overrides` (key → text as typed by a person).

    ConfigError names the file (or "command line") and the key, and what is wanted there.
    """
    values: dict[str, Any] = {}
    if path is not None:
        try:
            raw = tomllib.loads(path.read_text(encoding="utf-8"))
        except OSError as error:
            raise ConfigError(
                f"{path}: cannot be read ({error.strerror}): give another file with --config"
            ) from error
        except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
            raise ConfigError(f"{path}: not TOML: {error}") from error
        values |= {key: _value(key, value, str(path)) for key, value in raw.items()}
    for key, text in (overrides or {}).items():
        values[key] = _value(key, _typed(key, text), "command line")
    return _checked(AgentConfig(**values), str(path) if path else "command line")


def _value(key: str, value: Any, where: str) -> Any:
    """`value` in the field's type, or ConfigError."""
    if key not in AgentConfig.__dataclass_fields__:
        raise ConfigError(
            f"{where}: unknown key {key!r} (known: {', '.join(AgentConfig.__dataclass_fields__)})"
        )
    kind = of(key)
    number = isinstance(value, (int, float)) and not isinstance(value, bool)
    whole = isinstance(value, int) and not isinstance(value, bool)
    fits = {
        "text": isinstance(value, str),
        "path": isinstance(value, str),
        "number": number,
        "whole number": whole,
        "true or false": isinstance(value, bool),
        "list of texts": isinstance(value, list) and all(isinstance(item, str) for item in value),
        "list of whole numbers": isinstance(value, list) and all(type(item) is int for item in value),
        "table": isinstance(value, dict) and all(isinstance(item, str) for item in value.values()),
    }[kind]
    if not fits:
        raise ConfigError(f"{where}: {key} must be a {kind}, not {value!r}")
    least = AgentConfig.__dataclass_fields__[key].metadata["least"]
    if least is not None and not least <= value < 1e12:  # refuses nan and inf too
        raise ConfigError(f"{where}: {key} must be {least} or more, not {value!r}")
    if kind == "path":
        return Path(value)
    if kind == "number":
        return float(value)
    return tuple(value) if isinstance(value, list) else value


def _typed(key: str, text: str) -> Any:
    """What a person typed for `key`, as TOML would hold it: lists comma separated, tables as `a=b,c=d`."""
    kind = of(key) if key in AgentConfig.__dataclass_fields__ else "text"
    parts = [part.strip() for part in text.split(",") if part.strip()]
    try:
        if kind == "whole number":
            return int(text)
        if kind == "number":
            return float(text)
        if kind == "true or false":
            return {"true": True, "false": False}.get(text, text)
        if kind == "list of whole numbers":
            return [int(part) for part in parts]
    except ValueError:
        return text  # _value says what is wanted
    if kind == "list of texts":
        return parts
    # Base64 ends with "=": only the first one of a part separates.
    return dict(part.partition("=")[::2] for part in parts) if kind == "table" else text


def _checked(config: AgentConfig, where: str) -> AgentConfig:
    """`config` with its node name filled in; ConfigError for values that cannot work."""
    try:
        subjects.token(config.cell, "cell")
        node = (
            subjects.token(config.node, "node")
            if config.node
            else subjects.node_name(config.host().hostname())
        )
    except ConfigError as error:
        raise ConfigError(f"{where}: {error}; set it in the configuration") from error
    for name in config.allow:
        if name not in ACTIONS:
            raise ConfigError(f"{where}: allow: unknown action {name!r} (known: {', '.join(ACTIONS)})")
    for key_id, text in config.trusted_keys.items():
        try:
            size = len(base64.b64decode(text, validate=True))
        except binascii.Error:
            size = -1
        if size != 32:
            raise ConfigError(
                f"{where}: trusted_keys.{key_id} must be the base64 of a 32-byte Ed25519 public key"
            )
    try:
        has_job = "job" in re.compile(config.job_id_pattern).groupindex
    except re.error:
        has_job = False
    if not has_job:
        raise ConfigError(f"{where}: job_id_pattern must be a regular expression with a group (?P<job>...)")
    for name, path in config.evidence_tools.items():
        if name not in EVIDENCE_TOOLS or (path and not path.startswith("/")):
            raise ConfigError(
                f"{where}: evidence_tools.{name}: give the absolute path of one of {', '.join(EVIDENCE_TOOLS)}"
            )
    for key in _TOOLS:
        path = getattr(config, key)
        if not path.startswith("/") and (path or key not in _MAY_BE_EMPTY):
            raise ConfigError(f"{where}: {key} must be an absolute path, not {path!r}")
    if sorted(config.driver_unload) != sorted(config.driver_load) or not config.driver_load:
        raise ConfigError(f"{where}: driver_unload and driver_load must name the same modules")
    if not config.servers():
        raise ConfigError(f"{where}: nats_url must name at least one server, e.g. nats://127.0.0.1:4222")
    return replace(config, node=node)
