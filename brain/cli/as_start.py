"""`gpuward run --check`: builds what a start builds, and begins none of it.

A start reads files and tables in the order in which its parts need them (brain/app.py). Here the same functions build the same
parts: what a part refuses, the check refuses in the same words. Nothing is written, asked or listened to.
"""

from collections.abc import Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn, cast

from agent.contract.errors import BugError
from brain import config
from brain.actions import build_real, kube_conditions
from brain.actions.base import Order
from brain.adapters import archive_store, keys, operator_mode, signing_key
from brain.adapters.broker import brain_connection
from brain.cell.registry import CellRegistry
from brain.cell.trust import TrustFile
from brain.console.brain_view import BrainView
from brain.console.server import Console
from brain.core.inputs import StepResult
from brain.core.pack.spec import Scalar
from brain.leader import trace_outputs
from brain.leader.report_mail import scheduled_reports
from brain.notify import dead_mans_switch, notifier
from brain.outgoing import outgoing
from brain.own_name import own_name
from brain.ufm import events


async def check(loaded: config.BrainConfig) -> None:
    """ConfigError: the brain would not start with this configuration, or could not do what it names."""
    own_name(loaded)
    loaded = _before_the_cell(loaded)
    way = outgoing(loaded.outgoing)
    async with AsyncExitStack() as stack:
        loaded.places()
        if loaded.archive.on:
            archive_store.require(loaded.archive)
        _bus(loaded)
        stack.push_async_callback(
            notifier.build(loaded.channels, loaded.groups, loaded.data_dir, way=way).close
        )
        build_real(loaded, _NoNodes(), stack, _unasked)
        for ufm in events.listeners(
            loaded.ufm, put=_nobody, note=_unsaid, leads=_never, data_dir=loaded.data_dir
        ):
            stack.push_async_callback(ufm.close)
        scheduled_reports(loaded)
        for cluster in kube_conditions.listeners(
            loaded.schedulers, put=_nobody, note=_unsaid, leads=_never, known=tuple
        ):
            stack.push_async_callback(cluster.close)
        for output in trace_outputs.outputs(loaded.traces):
            stack.push_async_callback(output.close)
        for switch in dead_mans_switch.dead_mans_switches(
            loaded.dead_mans_switches, cell=loaded.cell, works=_never, note=_unsaid
        ):
            stack.push_async_callback(switch.close)
        # A console asks its brain when somebody comes; what it is built from is the configuration.
        Console(cast("BrainView", _NotRunning(config=loaded))).routes()


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


def _bus(loaded: config.BrainConfig) -> None:
    """The keys, who may connect, and how the brain does."""
    signing_key.check(loaded)
    if loaded.signing_key.exists():
        keys.read_signer(loaded.signing_key)
    CellRegistry(loaded.registry_file).nodes()
    TrustFile(loaded.cell_dir).state()
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
