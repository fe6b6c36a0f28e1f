"""All addresses of this node that probe and are probed, as the file of the fleet says at the time."""

import asyncio
import ipaddress
from hashlib import blake2b
from pathlib import Path

from agent.collectors.samples_node import ProbeRound
from agent.contract.errors import ConfigError
from agent.host import Host
from agent.probes.endpoint import ProbeEndpoint
from agent.probes.hosts import HostsError, ProbePart, read
from agent.shared import rtnetlink
from agent.shared.secret_file import secret

_LEAST_KEY = 16  # characters
_Stamps = tuple[tuple[int, int], ...]


class ProbeMesh:
    """Open from the first `follow` to `close`."""

    def __init__(
        self, hosts: Path, key: Path, node: str, *, port: int, near: int, far: int, size: int, period_s: float
    ) -> None:
        self._hosts, self._key_file, self._node = hosts, key, node
        self._port, self._near, self._far, self._size, self._period_s = port, near, far, size, period_s
        self._read: _Stamps = ()
        self._endpoints: list[ProbeEndpoint] = []

    async def follow(self) -> None:
        """Opens the ports as the files say, and again when one of them has changed; OSError."""
        stamps = await asyncio.to_thread(self._stamps)
        if stamps == self._read:
            return
        parts, key, links = await asyncio.to_thread(self._plan)
        self.close()
        for part in parts:
            endpoint = ProbeEndpoint(
                part,
                link=_link_of(part.own.address, links),
                port=self._port,
                key=key,
                size=self._size,
                period_s=self._period_s,
            )
            endpoint.open()
            self._endpoints.append(endpoint)
        self._read = stamps

    def close(self) -> None:
        """Closes what is open."""
        for endpoint in self._endpoints:
            endpoint.close()
        self._endpoints.clear()
        self._read = ()

    async def round(self, host: Host, wait_s: float) -> list[ProbeRound]:
        """Asks all peers, and waits so long for their answers."""
        for endpoint in self._endpoints:
            endpoint.ask()
        await asyncio.sleep(wait_s)
        return [endpoint.round(host.mono_s()) for endpoint in self._endpoints]

    def _stamps(self) -> _Stamps:
        found = (self._hosts.stat(), self._key_file.stat())
        return tuple((one.st_mtime_ns, one.st_ino) for one in found)

    def _plan(self) -> tuple[list[ProbePart], bytes, dict[str, list[str]]]:
        try:
            text = secret(self._key_file, "probe_key_file")
        except ConfigError as error:
            raise OSError(str(error)) from error
        if len(text) < _LEAST_KEY:
            raise OSError(f"probe_key_file: {self._key_file} has fewer than {_LEAST_KEY} characters")
        parts = read(self._hosts, self._node, near=self._near, far=self._far)
        return parts, blake2b(text.encode()).digest(), rtnetlink.addresses(lasting=False)


def _link_of(address: str, links: dict[str, list[str]]) -> str:
    """The interface that has the address; OSError when none has."""
    if ipaddress.ip_address(address).is_loopback:
        return "lo"
    for link, here in links.items():
        if any(one.partition("/")[0] == address for one in here):
            return link
    raise HostsError(
        f"no interface of this node has the address {address} that the file of probe_hosts gives it"
    )
