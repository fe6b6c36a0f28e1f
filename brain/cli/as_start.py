"""`gpuward run --check`: builds what a start builds, and begins none of it.

A start reads files and tables in the order in which its parts need them (brain/app.py). Here the same functions build the same
parts: what a part refuses, the check refuses in the same words. Nothing is written, asked or listened to.
"""

import tomllib
from collections.abc import Callable, Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn, cast

from agent.contract.errors import BugError, ConfigError
from brain import config, toml_lines
from brain.actions import build_real, kube_conditions
from brain.actions.base import Order
from brain.adapters import archive_store, keys, operator_mode, signing_key
from brain.adapters.broker import brain_connection
from brain.all_wrong import AllWrong
from brain.cell.registry import CellRegistry
from brain.cell.trust import TrustFile
from brain.console.brain_view import BrainView
from brain.console.server import Console
from brain.core.inputs import StepResult
from brain.core.pack.spec import Scalar
from brain.leader import trace_outputs
from brain.leader.report_mail import scheduled_reports
from brain.notify import dead_mans_switch, notifier
from brain.outgoing import DIRECT, Outgoing, outgoing
from brain.own_name import own_name
from brain.ufm import events

# A table -> those that name what stands in it
NAMES_OF: Mapping[str, tuple[str, ...]] = {
    "groups": ("settings",),
    "channels": ("groups", "settings", "reports"),
}


async def check(loaded: config.BrainConfig) -> None:
    """ConfigError: the brain would not start with this configuration, or could not do what it names. All of it, a line for each:
    what one part refuses keeps no other part from being looked at.
    """
    wrong = AllWrong()
    with wrong.also():
        own_name(loaded)
    loaded = _before_the_cell(loaded)
    way = DIRECT
    with wrong.also():
        way = outgoing(loaded.outgoing)
    async with AsyncExitStack() as stack:
        with wrong.also():
            loaded.places()
        with wrong.also():
            if loaded.archive.on:
                archive_store.require(loaded.archive)
        _check_bus(loaded, wrong)
        await check_tables(loaded, wrong, way)
        with wrong.also():
            scheduled_reports(loaded)
        with wrong.also():
            for output in trace_outputs.outputs(loaded.traces):
                stack.push_async_callback(output.close)
        with wrong.also():
            # A console asks its brain when somebody comes; what it is built from is the configuration.
            Console(cast("BrainView", _NotRunning(config=loaded))).routes()
    wrong.end()


async def with_the_rest(path: Path, said: str) -> str:
    """What is wrong with a file that cannot be read as a configuration, `said`, and with what else stands there."""
    left = _right_part(path)
    if left is None:
        return said
    wrong = AllWrong()
    with wrong.also():
        config.check_modes(left)
    await check_tables(left, wrong, DIRECT)
    more = toml_lines.with_lines(
        "\n".join(f"{path}: {line}" for line in wrong.lines), str(path), config.read_text(path)
    )
    lines = dict.fromkeys([*said.splitlines(), *more.splitlines()])
    return toml_lines.in_order("\n".join(lines), str(path))


def _right_part(path: Path) -> config.BrainConfig | None:
    """The configuration without the tables and keys at its top in which something is wrong, so that the others can be looked at;
    None: it is no TOML, or nobody can tell which they are.
    """
    try:
        raw = tomllib.loads(config.read_text(path))
    except (ConfigError, tomllib.TOMLDecodeError):
        return None
    while True:
        try:
            return config.parse(raw, "", path.resolve().parent)
        except ConfigError as error:
            keys = (line.removeprefix(": ").partition(": ")[0] for line in str(error).splitlines())
            tops = {key.partition(".")[0] for key in keys} & raw.keys()
            tops.update(more for key in tuple(tops) for more in NAMES_OF.get(key, ()))
            if not tops & raw.keys():
                return None
            raw = {key: value for key, value in raw.items() if key not in tops}


async def check_tables(loaded: config.BrainConfig, wrong: AllWrong, way: Outgoing) -> None:
    """What is wrong with the tables of plug-ins and the groups. One that is refused is taken out, and the others built anew."""
    tables = RefusedTables(loaded, wrong)
    async with AsyncExitStack() as stack:

        def channels(now: config.BrainConfig) -> None:
            stack.push_async_callback(notifier.build(now.channels, {}, now.data_dir, way=way).close)

        def actions(now: config.BrainConfig) -> None:
            build_real(now, _NoNodes(), stack, _unasked)

        def listeners(now: config.BrainConfig) -> None:
            ufms = events.listeners(now.ufm, put=_nobody, note=_unsaid, leads=_never, data_dir=now.data_dir)
            clusters = kube_conditions.listeners(
                now.schedulers, put=_nobody, note=_unsaid, leads=_never, known=tuple
            )
            for ufm in ufms:
                stack.push_async_callback(ufm.close)
            for cluster in clusters:
                stack.push_async_callback(cluster.close)

        def switches(now: config.BrainConfig) -> None:
            for one in dead_mans_switch.dead_mans_switches(
                now.dead_mans_switches, cell=now.cell, works=_never, note=_unsaid
            ):
                stack.push_async_callback(one.close)

        for build in (channels, actions, listeners, switches):
            tables.look(build)
    with wrong.also():
        notifier.check_groups(loaded.groups, loaded.channels or (notifier.LOG,))


class RefusedTables:
    """A configuration from which each table that was refused is taken out, so that the next one can be looked at."""

    def __init__(self, loaded: config.BrainConfig, wrong: AllWrong) -> None:
        self._left = loaded
        self._wrong = wrong
        self._gone: list[str] = []

    def look(self, build: Callable[[config.BrainConfig], None]) -> None:
        """Builds what it can be built from what is left."""
        while True:
            try:
                build(self._left)
            except ConfigError as error:
                lines = str(error).splitlines()
                for line in lines:
                    if not any(repr(name) in line for name in self._gone):  # else it only follows from that
                        self._wrong.add(line)
                if not self._take_out(lines[0]):
                    return
            else:
                return

    def _take_out(self, line: str) -> bool:
        """Goes on without the table that the line is about; False: it is about none."""
        for kind in config.PLUG_INS:
            tables: Mapping[str, object] = getattr(self._left, kind)
            for name in tables:
                if line.startswith((f"{kind}.{name}.", f"{kind}.{name}:")):
                    self._left = self._left.model_copy(
                        update={kind: {one: table for one, table in tables.items() if one != name}}
                    )
                    self._gone.append(name)
                    return True
        return False


def missing_of_the_cell(loaded: config.BrainConfig) -> list[Path]:
    """The files that `gpuward cell init` makes and that the configuration names, as long as it has not run here: a file is
    written, and checked, before that.
    """
    if loaded.cell_dir.exists():
        return []
    console, nats = loaded.console, loaded.nats
    named = (console.tls_cert_file, console.tls_key_file, nats.seed_file, nats.ca_file)
    return [file for file in named if file is not None and file.is_relative_to(loaded.cell_dir)]


def _before_the_cell(loaded: config.BrainConfig) -> config.BrainConfig:
    """The configuration without those files."""
    missing = missing_of_the_cell(loaded)
    console, nats = loaded.console, loaded.nats
    if console.tls_cert_file in missing or console.tls_key_file in missing:
        console = console.model_copy(update={"tls_cert_file": None, "tls_key_file": None})
    gone = {key: None for key in ("seed_file", "ca_file") if getattr(nats, key) in missing}
    nats = nats.model_copy(update=gone if loaded.cell_dir.exists() else {**gone, "operator": None})
    return loaded.model_copy(update={"console": console, "nats": nats})


def _check_bus(loaded: config.BrainConfig, wrong: AllWrong) -> None:
    """The keys, who may connect, and how the brain does."""
    with wrong.also():
        signing_key.check(loaded)
        if loaded.signing_key.exists():
            keys.read_signer(loaded.signing_key)
    with wrong.also():
        CellRegistry(loaded.registry_file).nodes()
    with wrong.also():
        TrustFile(loaded.cell_dir).state()
    with wrong.also():
        jwts = operator_mode.of(loaded)
        if not loaded.embedded:
            brain_connection(loaded.nats, name="", seed=jwts.user.seed if jwts else "")  # reads its files


@dataclass(frozen=True, slots=True, kw_only=True)
class _NotRunning:
    """What a console needs of its brain before anybody comes."""

    config: config.BrainConfig

    def note(self, kind: str, text: str, who: str = "") -> None:
        """Nobody reads notes of a brain that does not run."""


class _NoNodes:
    """No action runs here, so none commands a node."""

    async def perform(
        self, node: str, action: str, params: Mapping[str, Scalar], *, of: Order, part: str
    ) -> StepResult:
        """BugError: see above."""
        raise BugError(
            f"{action} was asked of {node} by a check of the configuration ({params}, {of.id}.{part})"
        )


async def _unasked(node: str, body: bytes, timeout_s: float) -> bytes:
    raise BugError(f"{node} was asked by a check of the configuration ({len(body)} bytes, {timeout_s} s)")


def _nobody(_: object) -> NoReturn:
    raise BugError("a check of the configuration has no log")


def _unsaid(kind: str, text: str) -> None:
    """As `_NotRunning.note`."""


def _never() -> bool:
    return False
