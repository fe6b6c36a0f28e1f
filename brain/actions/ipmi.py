"""BMCs with IPMI 2.0 over LAN (RMCP+), through `ipmitool` (decision 12). Each command logs in by itself.

With `-v` ipmitool prints why a session failed; without it a wrong password and a dead BMC look the same.
"""

import asyncio
import math
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field

from agent.contract.errors import ConfigError, Refused, TimedOut, Unreachable
from agent.contract.messages import Scalar, clip
from agent.shared import tool
from brain.actions import ipmi_health, rmcp, tools
from brain.actions.bmc_base import Backend, BmcOptions, BmcRequest, Power, Readings
from brain.actions.bmc_health import BmcHealth
from brain.actions.bmc_tables import Addresses
from brain.options import options

_ADDRESS = re.compile(
    r"(?:\[(?P<v6>[0-9A-Fa-f:.]+)\]|(?P<host>[A-Za-z0-9_][A-Za-z0-9._-]*))(?::(?P<port>[0-9]{1,5}))?"
)
_COMMANDS = {
    BmcRequest.ON: "on",
    BmcRequest.OFF: "off",
    BmcRequest.SHUTDOWN: "soft",
    BmcRequest.CYCLE: "cycle",
    BmcRequest.RESET: "reset",
    BmcRequest.NMI: "diag",
}
_LOGIN = re.compile(r"RAKP [24].*(invalid|error)|unauthorized name", re.IGNORECASE)
_SESSION = re.compile(
    r"Error in open session response message : (?!insufficient)|Set Session Privilege Level to \w+ failed",
    re.IGNORECASE,
)
_NO_SESSION = "Unable to establish"  # printed before any command is sent
_REJECTED = re.compile(r"failed: (?!.*(timeout|unspecified))", re.IGNORECASE)  # the BMC's completion code
_BUSY = re.compile(r"failed: .*(node busy|initialization in progress)", re.IGNORECASE)
_NOISE = re.compile(  # what -v prints about every session
    r"^(Loading IANA|Running |Discovered IPMB|Get HPM\.x Capabilities|Invalid completion code received).*$",
    re.MULTILINE,
)
_FACTS = ("Manufacturer Name", "Product Name", "Firmware Revision")
_EVENTS = 20
_WELL = ("ok", "ns", "na", "")


@dataclass(frozen=True, slots=True, kw_only=True)
class IpmiOptions(BmcOptions):
    """The keys of a table with `type = "ipmi"`."""

    # Absolute path of ipmitool
    tool: Path = Path("/usr/bin/ipmitool")
    # 17: SHA-256, 3: SHA-1 for older BMCs
    cipher_suite: Literal[3, 17] = 17
    # OPERATOR is the least that can switch power
    privilege: Literal["USER", "OPERATOR", "ADMINISTRATOR"] = "OPERATOR"
    # Attempts for a lost UDP packet; a request that may have been carried out is sent only once
    tries: Annotated[int, Field(ge=1, le=10)] = 3


class Ipmi:
    """One table of the configuration."""

    def __init__(self, given: IpmiOptions, where: str) -> None:
        self._given, self._where = given, where
        self._addresses = Addresses(given, where)
        self._refused: dict[str, str] = {}  # node -> the password that its BMC refused; it is not tried again

    async def reach(self, node: str) -> str:
        """As in Backend."""
        host, port = _split(await self._addresses.looked_up(node), self._where)
        await rmcp.ping(host, port, within_s=self._given.connect_s, tries=self._given.tries)
        return f"{host}:{port}"

    @asynccontextmanager
    async def open(self, node: str) -> AsyncIterator["_Host"]:
        """As in Backend."""
        address, word = await self._addresses.login(node)
        host, port = _split(address, self._where)
        if self._refused.get(node) == word:
            raise Refused(
                f"{host} has refused this password before; not tried again, so that the account is not locked"
            )
        bmc = _Host(self._given, host, port)
        try:
            await bmc.power()
        except Refused:
            if bmc.login_refused:
                self._refused[node] = word
            raise
        self._refused.pop(node, None)
        yield bmc


class _Host:
    """One BMC. No connection is kept between two commands."""

    def __init__(self, given: IpmiOptions, host: str, port: int) -> None:
        self._given = given
        self.where, self.timing = f"ipmi {host}" + (f":{port}" if port != 623 else ""), given.timing
        self.login_refused = False
        self._power = Power.UNKNOWN  # when it was last read
        self._argv = [
            *(str(given.tool), "-I", "lanplus", "-H", host, "-p", str(port), "-U", given.user),
            *("-f", str(given.password_file), "-C", str(given.cipher_suite), "-L", given.privilege),
            *("-N", str(max(1, math.ceil(given.connect_s / given.tries)))),
        ]

    async def power(self) -> Power:
        """As in Bmc."""
        says = (await self._read("-v", "chassis", "power", "status")).strip().lower()
        off = Power.OFF if says.endswith("is off") else Power.UNKNOWN
        self._power = Power.ON if says.endswith("is on") else off
        return self._power

    async def offers(self) -> frozenset[BmcRequest]:
        """As in Bmc. IPMI cannot be queried for it: a BMC rejects a request that it does not support."""
        return frozenset(_COMMANDS)

    async def last_reset(self) -> str:
        """As in Bmc. IPMI does not report it."""
        return ""

    async def request(self, wanted: BmcRequest) -> None:
        """As in Bmc. ipmitool sends the request once (-R 1); it is repeated only when no session was established."""
        if wanted not in _COMMANDS:
            raise Refused(f"IPMI has no {wanted!s}")
        for left in reversed(range(self._given.tries)):
            command = ["-R", "1", "-v", "chassis", "power", _COMMANDS[wanted]]
            done = await self._tool(command, run=tools.change)
            if done.status == 0:
                return
            says = self._says(done)
            if done.status is not None and _NO_SESSION in done.err:
                self._login(says)
                if left:
                    continue
                raise Unreachable(f"{self.where}: {says}")
            if done.status is not None and _BUSY.search(done.err):
                raise Unreachable(f"{self.where} is busy: {says}")
            if done.status is not None and _REJECTED.search(done.err):
                raise Refused(f"{self.where}: {says}")
            raise TimedOut(
                f"{self.where} did not answer the request ({says}): it may or may not have been done"
            )

    async def readings(self, within_s: float) -> Readings:
        """As in Bmc."""
        loop = asyncio.get_running_loop()
        ends, missing = loop.time() + within_s, []

        async def output(*command: str) -> str:
            """Returns the output, which also counts when a failed sensor makes ipmitool fail at the end."""
            left_s = ends - loop.time()
            if left_s > 0:
                done = await self._tool(["-R", str(self._given.tries), *command], left_s)
                if done.status == 0 or done.out.strip():
                    return done.out
                says = self._says(done)
            else:
                says = "no time left"
            missing.append(f"{' '.join(command)}: {says}")
            return ""

        about = _pairs(await output("mc", "info"))
        chassis = _pairs(await output("chassis", "status"))
        events = (await output("sel", "elist", "last", str(_EVENTS))).splitlines()
        sensors, bad = _sensors(await output("sdr", "elist"))
        facts: dict[str, Scalar] = {key: about[key] for key in _FACTS if about.get(key)}
        facts |= {
            key: value for key, value in chassis.items() if value and value not in ("false", "inactive")
        }
        return Readings(
            facts=facts,
            sensors=sensors,
            bad=tuple(bad),
            events=tuple(clip(" ".join(line.split()), 200) for line in reversed(events) if "|" in line),
            missing=tuple(missing),
        )

    async def health(self, within_s: float, turn: int) -> BmcHealth:  # noqa: ARG002  # as the port has it
        """As in Bmc. Two commands beside that of the login: all sensors, and the end of the event log, at every turn."""
        loop = asyncio.get_running_loop()
        ends, missing, found = loop.time() + within_s, [], []
        for command in (("sdr", "elist"), ("sel", "elist", "last", str(ipmi_health.ENTRIES))):
            left_s = max(0.1, ends - loop.time())
            done = await self._tool(["-R", str(self._given.tries), *command], left_s)
            found.append(done.out)
            if done.status != 0 and not done.out.strip():
                missing.append(f"{' '.join(command)}: {self._says(done)}")
        sensors, events = found
        if len(missing) == len(found):
            raise Unreachable(f"{self.where}: {'; '.join(missing)}")
        return ipmi_health.read(sensors, events, missing, on=self._power is not Power.OFF)

    async def _read(self, *command: str) -> str:
        done = await self._tool(["-R", str(self._given.tries), *command])
        if done.status == 0:
            return done.out
        says = self._says(done)
        self._login(says)
        raise Unreachable(f"{self.where}: {says}")

    def _login(self, says: str) -> None:
        if _LOGIN.search(says):
            self.login_refused = True
            raise Refused(f"{self.where} refuses our user or password: {says}")
        if _SESSION.search(says):
            raise Refused(f"{self.where} refuses the session (cipher_suite, privilege): {says}")

    async def _tool(
        self,
        command: list[str],
        most_s: float | None = None,
        run: Callable[..., Awaitable[tool.Completed]] = tools.read,
    ) -> tool.Completed:
        try:
            return await run(
                [*self._argv, *command], deadline_s=min(most_s or math.inf, self._given.answer_s)
            )
        except tool.Late as late:
            return late.ran

    def _says(self, done: tool.Completed) -> str:
        if done.status is None:
            return f"no answer within {self._given.answer_s:g} s"
        text = " ".join(_NOISE.sub("", done.err).split())
        return clip(text, 200) or f"{self._given.tool.name} ended with {done.status}"


def _pairs(text: str) -> dict[str, str]:
    """Parses lines like `Power Overload       : false`."""
    rows = (line.partition(":") for line in text.splitlines())
    return {key.strip(): value.strip() for key, _, value in rows if value.strip()}


def _sensors(text: str) -> tuple[dict[str, str], list[str]]:
    """Parses lines like `CPU1 Temp | 30h | ok | 3.1 | 45 degrees C`; returns all readings and the unhealthy names."""
    found: dict[str, str] = {}
    bad: list[str] = []
    for line in text.splitlines():
        row = [part.strip() for part in line.split("|")]
        if len(row) != 5 or row[2] == "ns":  # ns: no reading, e.g. an empty slot
            continue
        name = row[0] if row[0] not in found else f"{row[0]} {row[1]}"
        found[name] = row[4] if row[2] in _WELL else f"{row[4]} ({row[2]})"
        if row[2] not in _WELL:
            bad.append(name)
    return found, bad


def _split(address: str, where: str) -> tuple[str, int]:
    """Splits `host`, `host:port` or `[v6]:port`; the host can never be taken for an option of the tool."""
    fits = _ADDRESS.fullmatch(address)
    port = int(fits["port"] or 623) if fits else 0
    if fits is None or not 0 < port < 65536:
        raise Refused(f"{where}: the address must be host or host:port, not {address!r}")
    return fits["v6"] or fits["host"], port


def build(table: Mapping[str, Any], where: str) -> tuple[BmcOptions, Backend]:
    """Builds the backend of a table; ConfigError names the key."""
    given = options(IpmiOptions, table, where)
    if given.user.startswith("-"):
        raise ConfigError(f"{where}.user: {given.user!r} is not a user's name")
    if given.address:
        try:
            _split(given.address.replace("{node}", "n1"), f"{where}.address")
        except Refused as error:
            raise ConfigError(str(error)) from error
    return given, Ipmi(given, where)
