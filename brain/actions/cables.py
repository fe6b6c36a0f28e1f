"""The switch port at the other end of a node's cable, from a YAML file of the site.

gpu001:
  mlx5_0.1: {switch: leaf-1, port: "12"}     # InfiniBand: <device>.<port>
  eth2: {switch: tor-7, port: Ethernet1/3}   # otherwise the interface
leaf-1:
  "1": {switch: spine-1, port: "33"}         # between switches: known, and left alone
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import yaml
from pydantic import TypeAdapter, ValidationError

from agent.contract.errors import ConfigError, Refused, Unreachable
from brain.glance import FileHangs, Latest

# Safe as an argument, even of a remote shell (ssh joins its arguments): no blank, quote, $ or ;, and no leading dash.
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.:/-]{0,62}")


@dataclass(frozen=True, slots=True, kw_only=True)
class SwitchPort:
    """The other end of a cable."""

    switch: str
    port: str
    __pydantic_config__: ClassVar[dict[str, Any]] = {"extra": "forbid"}


class CableMap:
    """The content of the file, read again when it has changed."""

    def __init__(self, path: Path, where: str) -> None:
        """ConfigError names the file, the node and the port."""
        self._path = path
        self._where = where
        self._stamp = 0.0
        self._cables: Mapping[str, Mapping[str, SwitchPort]] = {}
        self._latest = Latest(self._read, path)
        self._read()

    def end(self, node: str, name: str, *, switch_links: bool) -> SwitchPort:
        """Returns the switch port of `<node>` `<name>`. Refused when it is unknown, or between switches. Unreachable: the file
        was never read, and its disk hangs.
        """
        try:
            self._latest()
        except FileHangs as error:
            raise Unreachable(str(error)) from error
        except ConfigError as error:
            raise Refused(str(error)) from error
        switches = {far.switch for ports in self._cables.values() for far in ports.values()}
        found = self._cables.get(node, {}).get(name)
        if found is None:
            raise Refused(f"{self._path} knows no cable of {node} {name}")
        if node in switches and not switch_links:
            raise Refused(f"{node} {name} is a link between switches: many nodes depend on it")
        return found

    def _read(self) -> None:
        try:
            stamp = self._path.stat().st_mtime
            if stamp == self._stamp:
                return
            raw = yaml.safe_load(self._path.read_text(encoding="utf-8")) or {}
            cables = TypeAdapter(dict[str, dict[str, SwitchPort]]).validate_python(raw)
        except OSError as error:
            raise ConfigError(f"{self._where}: {self._path}: {error.strerror}") from error
        except (yaml.YAMLError, UnicodeDecodeError) as error:
            says = str(error).splitlines()[0]
            raise ConfigError(f"{self._where}: {self._path}: not YAML: {says}") from error
        except ValidationError as error:
            first = error.errors(include_url=False)[0]
            at = ".".join(str(part) for part in first["loc"])
            raise ConfigError(f"{self._where}: {self._path}: {at}: {first['msg']}") from error
        self._checked(cables)
        self._cables, self._stamp = cables, stamp

    def _checked(self, cables: Mapping[str, Mapping[str, SwitchPort]]) -> None:
        taken: dict[tuple[str, str], str] = {}
        for node, ports in cables.items():
            for name, far in ports.items():
                at = f"{self._where}: {self._path}: {node}.{name}"
                for text in (far.switch, far.port):
                    if not _NAME.fullmatch(text):
                        raise ConfigError(
                            f"{at}: {text!r} must be letters, digits and _.:/- and begin without a dash"
                        )
                key = (far.switch, far.port)
                if key in taken:
                    raise ConfigError(
                        f"{at}: {far.switch} port {far.port} has the cable of {taken[key]} already"
                    )
                taken[key] = f"{node}.{name}"
