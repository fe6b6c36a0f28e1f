"""Probes of a few peers over the data network, and the answers to theirs: loss and round-trip times of its paths.

The parts that do it (agent/probes) are loaded only where `probe_hosts` is set.
"""

import asyncio
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Self

from agent.host import Host
from agent.options import absolute_path, at_most, option
from agent.shared.rhythm import pause
from agent.sources.base import Emit, Source, SourceSetup

if TYPE_CHECKING:
    from agent.probes.mesh import ProbeMesh

_WAIT_S = 1.0


def _absolute_or_empty(key: str, path: str) -> str:
    return absolute_path(key, path) if path else ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProbeSourceOptions:
    """What an operator can set."""

    probe_hosts: str = option(
        "",
        "file with a line `node address leaf-switch` for each address of the data network, the same on all nodes: this agent "
        "probes a few of them by UDP, and answers those that probe it; empty: it does neither, and opens no port",
        example="/etc/gpuward/probe-hosts",
        check=_absolute_or_empty,
    )
    probe_key_file: str = option(
        "/etc/gpuward/probe.key",
        "file with the secret that all agents of the cell have in common for probes (mode 0600; a line of 16 characters and "
        "more): what does not carry it is not answered",
        check=absolute_path,
    )
    probe_port: int = option(4797, "UDP port of the probes, at both ends", least=1, check=at_most(65535))
    probe_interval_s: float = option(
        10.0, "pause between the five packets to each peer", unit="s", least=2, check=at_most(60)
    )
    probe_near: int = option(
        2, "peers of the same leaf switch that each address probes", least=0, check=at_most(4)
    )
    probe_far: int = option(
        2, "other leaf switches behind each of which it probes one peer", least=0, check=at_most(4)
    )
    probe_bytes: int = option(
        64,
        "size of a packet without its headers, which is never sent in fragments: 8972 (IPv4) shows a path with an MTU below 9000",
        unit="bytes",
        least=64,
        check=at_most(8972),
    )


class ProbeSource(Source):
    """Emits ProbeRound for each of this node's addresses, after each pause."""

    name: ClassVar[str] = "probes"
    needs: ClassVar[str] = "probe_hosts and probe_key_file, and UDP 4797 (probe_port) between the nodes"
    options: ClassVar[tuple[type[Any], ...]] = (ProbeSourceOptions,)

    def __init__(
        self, host: Host, node: str, options: ProbeSourceOptions, *, wait_s: float = _WAIT_S
    ) -> None:
        """`wait_s`: for the answers of a round."""
        self._wait_s = wait_s
        self._host, self._node, self._options = host, node, options
        self._mesh: ProbeMesh | None = None
        self._turn = asyncio.Lock()

    @classmethod
    def of(cls, setup: SourceSetup) -> Self | None:
        """None on a recorded machine, and where it is not asked for."""
        options = setup.options(ProbeSourceOptions)
        return (
            cls(setup.host, setup.config.node, options) if setup.host.live and options.probe_hosts else None
        )

    async def run(self, emit: Emit) -> None:
        """Probe and answer until cancelled. OSError: a file is missing or wrong, or an address is not this node's."""
        options = self._options
        from agent.probes.mesh import ProbeMesh  # only where it is asked for: the agent's memory is a promise

        mesh = ProbeMesh(
            Path(options.probe_hosts),
            Path(options.probe_key_file),
            self._node,
            port=options.probe_port,
            near=options.probe_near,
            far=options.probe_far,
            size=options.probe_bytes,
            period_s=options.probe_interval_s,
        )
        try:
            while True:
                await mesh.follow()
                self._mesh = mesh
                await pause(options.probe_interval_s)
                await self.look(emit)
        finally:
            self._mesh = None
            mesh.close()

    async def look(self, emit: Emit) -> None:
        """One round. OSError while the port is not open."""
        async with self._turn:
            if self._mesh is None:
                raise OSError("the probes' port is not open")
            for sample in await self._mesh.round(self._host, self._wait_s):
                emit(sample)

    async def once(self, emit: Emit) -> None:
        """Nothing: one round proves nothing, and the port is the running agent's."""
