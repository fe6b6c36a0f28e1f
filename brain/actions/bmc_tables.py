"""Finds the BMC of a node: the tables `[bmc.<name>]` in the order of the file, and their fallbacks."""

import re
import tomllib
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, TypeVar

import yaml

from agent.contract.errors import ConfigError, Refused, Unreachable
from agent.shared.secret_file import secret
from brain.actions.bmc_base import Backend, Bmc, BmcOptions
from brain.aside import aside
from brain.glance import FileHangs
from brain.options import plug_in

T = TypeVar("T")
_NODE = re.compile(r"[A-Za-z0-9_]([A-Za-z0-9._-]{0,62})")
# One line for each type of BMC: a function (its table, "bmc.<name>" for errors) -> (BmcOptions, Backend).
TYPES: Mapping[str, str] = {
    "redfish": "brain.actions.redfish:build",
    "ipmi": "brain.actions.ipmi:build",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """One `[bmc.<name>]`."""

    name: str
    options: BmcOptions
    backend: Backend


class Bmcs:
    """The BMCs of the site."""

    def __init__(self, tables: Mapping[str, Table]) -> None:
        self._tables = tables
        spare = {table.options.fallback for table in tables.values()}
        self._first = [table for table in tables.values() if table.name not in spare]

    def tables_of(self, node: str) -> list[Table]:
        """Returns the node's table and its fallbacks in the order of use; Refused when no table has the node.

        The first table whose glob matches is used. A table that is another's fallback is only used as such.
        """
        if _NODE.fullmatch(node) is None:
            raise Refused(f"{node!r} is not the name of a node")
        for table in self._first:
            if fnmatchcase(node, table.options.nodes):
                return list(self._chain(table))
        raise Refused(
            f"no BMC: no table [bmc.<name>] of the brain's configuration has a `nodes` that fits {node}"
        )

    @asynccontextmanager
    async def open(self, node: str, progress: Callable[[str], None] = lambda _: None) -> AsyncIterator[Bmc]:
        """Logs in. The fallback is used only when the BMC does not answer, never after a refusal. Errors as Backend.open."""
        async with AsyncExitStack() as stack:
            yield await self._enter(stack, node, progress)

    async def _enter(self, stack: AsyncExitStack, node: str, progress: Callable[[str], None]) -> Bmc:
        unreachable: list[str] = []
        for table in self.tables_of(node):
            try:
                bmc = await stack.enter_async_context(table.backend.open(node))
            except Unreachable as error:
                unreachable.append(str(error))
                continue
            if unreachable:
                progress(f"{'; '.join(unreachable)}; continuing with {bmc.where}")
            return bmc
        raise Unreachable("; ".join(unreachable))

    def _chain(self, table: Table) -> Iterator[Table]:
        yield table
        if table.options.fallback:
            yield from self._chain(self._tables[table.options.fallback])


class Addresses:
    """The addresses of BMCs by node, from the pattern or the file of a table."""

    def __init__(self, given: BmcOptions, where: str) -> None:
        """ConfigError when the options have neither or both, or the file cannot be read."""
        if bool(given.address) == bool(given.addresses):
            raise ConfigError(f"{where}: give either address (with {{node}}) or addresses (a file)")
        if given.address and given.address.count("{node}") == 0 and any(c in given.nodes for c in "*?["):
            raise ConfigError(f"{where}.address: must contain {{node}}: `nodes` fits more than one node")
        if given.address and re.search(r"[{}]", given.address.replace("{node}", "")):
            raise ConfigError(f"{where}.address: knows only {{node}}")
        self._given = given
        self._pattern, self._path, self._where = given.address, given.addresses, where
        self._stamp: tuple[int, int] | None = None
        self._read: Mapping[str, str] = {}
        if self._path is not None:
            self._table(self._path)

    async def login(self, node: str) -> tuple[str, str]:
        """Returns the address, and the password of one login, so that it can be changed without a restart. Refused as
        `address_of`, or there is no password. Unreachable: the disk of a file hangs.
        """
        return await self._aside(lambda: (self.address_of(node), _password(self._given, self._where)))

    async def looked_up(self, node: str) -> str:
        """Returns the address; errors as above."""
        return await self._aside(lambda: self.address_of(node))

    async def _aside(self, read: Callable[[], T]) -> T:
        try:
            return await aside(read, self._path or self._given.password_file)
        except FileHangs as error:
            raise Unreachable(str(error)) from error

    def address_of(self, node: str) -> str:
        """Returns the address. Refused: the file does not list the node, or can no longer be read."""
        if self._path is None:
            return self._pattern.replace("{node}", node)
        try:
            found = self._table(self._path).get(node)
        except ConfigError as error:
            raise Refused(str(error)) from error
        if found is None:
            raise Refused(f"{self._path} has no BMC address of {node}")
        return found

    def _table(self, path: Path) -> Mapping[str, str]:
        """Returns the content of the file, read again when it has changed: nodes come and go while the brain runs."""
        try:
            state = path.stat()
            stamp = (state.st_mtime_ns, state.st_size)
            if stamp != self._stamp:
                text = path.read_text(encoding="utf-8")
                raw = tomllib.loads(text) if path.suffix == ".toml" else yaml.safe_load(text) or {}
                if not isinstance(raw, dict) or not all(isinstance(v, str) for v in raw.values()):
                    raise ConfigError(f'{self._where}.addresses: {path}: want node = "address" only')
                self._read, self._stamp = {str(node): address for node, address in raw.items()}, stamp
        except (OSError, ValueError, yaml.YAMLError) as error:
            raise ConfigError(f"{self._where}.addresses: {path}: {str(error).splitlines()[0]}") from error
        return self._read


def _password(given: BmcOptions, where: str) -> str:
    try:
        return secret(given.password_file, f"{where}.password_file")
    except ConfigError as error:
        raise Refused(str(error)) from error


def build(config: Mapping[str, Mapping[str, Any]]) -> Bmcs:
    """Builds the tables of the configuration; ConfigError names the key."""
    tables: dict[str, Table] = {}
    for name, raw in config.items():
        where = f"bmc.{name}"
        given, backend = plug_in(raw, where, TYPES)(raw, where)
        if not Path(str(raw.get("tool", "/"))).is_absolute():
            raise ConfigError(f"{where}.tool: must be an absolute path, not {raw['tool']!r}")
        secret(given.password_file, f"{where}.password_file")
        tables[name] = Table(name=name, options=given, backend=backend)
    for name, table in tables.items():
        seen = [name]
        while (name := tables[name].options.fallback) != "":
            if name not in tables:
                raise ConfigError(f"bmc.{seen[-1]}.fallback: there is no table [bmc.{name}]")
            if name in seen:
                raise ConfigError(f"bmc.{seen[-1]}.fallback: goes round in a circle")
            seen.append(name)
        del table
    return Bmcs(tables)
