"""Which BMC a node has: the tables `[bmc.<name>]` in the order of the file, and their fallbacks."""

import re
import tomllib
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import yaml

from agent.contract.errors import ConfigError, Refused, Unreachable
from brain.actions.bmc_base import Backend, Bmc, BmcOptions
from brain.options import kind, secret

_NODE = re.compile(r"[A-Za-z0-9_]([A-Za-z0-9._-]{0,62})")
Make = Callable[[Mapping[str, Any], str], tuple[BmcOptions, Backend]]  # a table and where it stands


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

    def of(self, node: str) -> list[Table]:
        """The node's table and its fallbacks, in the order of trying; Refused when no table has the node.

        The first table whose glob fits wins; one that is another's fallback is only used as that.
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
    async def open(self, node: str, say: Callable[[str], None] = lambda _: None) -> AsyncIterator[Bmc]:
        """Logs in; the fallback only when nobody answers, never after a refusal. Errors as Backend.open."""
        async with AsyncExitStack() as stack:
            yield await self._enter(stack, node, say)

    async def _enter(self, stack: AsyncExitStack, node: str, say: Callable[[str], None]) -> Bmc:
        silent: list[str] = []
        for table in self.of(node):
            try:
                bmc = await stack.enter_async_context(table.backend.open(node))
            except Unreachable as error:
                silent.append(str(error))
                continue
            if silent:
                say(f"{'; '.join(silent)}; going on with {bmc.where}")
            return bmc
        raise Unreachable("; ".join(silent))

    def _chain(self, table: Table) -> Iterator[Table]:
        yield table
        if table.options.fallback:
            yield from self._chain(self._tables[table.options.fallback])


class Addresses:
    """Node → address of its BMC, by the pattern or the file of a table."""

    def __init__(self, given: BmcOptions, where: str) -> None:
        """ConfigError when the options give none, or the file cannot be read."""
        if bool(given.address) == bool(given.addresses):
            raise ConfigError(f"{where}: give either address (with {{node}}) or addresses (a file)")
        if given.address and given.address.count("{node}") == 0 and any(c in given.nodes for c in "*?["):
            raise ConfigError(f"{where}.address: must contain {{node}}: `nodes` fits more than one node")
        if given.address and re.search(r"[{}]", given.address.replace("{node}", "")):
            raise ConfigError(f"{where}.address: knows only {{node}}")
        self._pattern, self._path, self._where = given.address, given.addresses, where
        self._stamp: tuple[int, int] | None = None
        self._read: Mapping[str, str] = {}
        if self._path is not None:
            self._table(self._path)

    def of(self, node: str) -> str:
        """The address. Refused: the file does not have the node, or can no longer be read."""
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
        """Read again when the file has changed: nodes come and go without a restart of the brain."""
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


def password(given: BmcOptions, where: str) -> str:
    """Read anew at each login, so that it can be changed without a restart. Refused when it cannot be read."""
    try:
        return secret(given.password_file, f"{where}.password_file")
    except ConfigError as error:
        raise Refused(str(error)) from error


def build(config: Mapping[str, Mapping[str, Any]], known: Mapping[str, Make]) -> Bmcs:
    """The tables of the configuration; ConfigError names the key."""
    tables: dict[str, Table] = {}
    for name, raw in config.items():
        where = f"bmc.{name}"
        given, backend = known[kind(raw, where, known)](raw, where)
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
