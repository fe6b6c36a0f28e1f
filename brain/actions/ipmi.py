"""BMCs that speak IPMI 2.0 over LAN (RMCP+), by `ipmitool` (decision 12). Each command is a login of its own.

`-v` makes ipmitool say why a session failed; without it a wrong password and a dead BMC read the same.
"""

import asyncio
import math
import re
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field

from agent.contract.errors import ConfigError, Refused, TimedOut, Unreachable
from agent.contract.messages import Scalar, clip
from brain.actions import tool
from brain.actions.bmc_base import Backend, BmcOptions, Power, Readings, Wish
from brain.actions.bmc_tables import Addresses, password
from brain.options import options

_ADDRESS = re.compile(
    r"(?:\[(?P<v6>[0-9A-Fa-f:.]+)\]|(?P<host>[A-Za-z0-9_][A-Za-z0-9._-]*))(?::(?P<port>[0-9]{1,5}))?"
)
_COMMANDS = {
    Wish.ON: "on",
    Wish.OFF: "off",
    Wish.SHUTDOWN: "soft",
    Wish.CYCLE: "cycle",
    Wish.RESET: "reset",
    Wish.NMI: "diag",
}
_LOGIN = re.compile(r"RAKP [24].*(invalid|error)|unauthorized name", re.IGNORECASE)
_SESSION = re.compile(
    r"Error in open session response message : (?!insufficient)|Set Session Privilege Level to \w+ failed",
    re.IGNORECASE,
)
_NO_SESSION = "Unable to establish"  # said before any command is sent
_SAID_NO = re.compile(r"failed: (?!.*(timeout|unspecified))", re.IGNORECASE)  # the BMC's completion code
_BUSY = re.compile(r"failed: .*(node busy|initialization in progress)", re.IGNORECASE)
_NOISE = re.compile(  # what -v says of every session
    r"^(Loading IANA|Running |Discovered IPMB|Get HPM\.x Capabilities|Invalid completion code received).*$",
    re.MULTILINE,
)
_FACTS = ("Manufacturer Name", "Product Name", "Firmware Revision")
_EVENTS = 20
_WELL = ("ok", "ns", "na", "")


@dataclass(frozen=True, slots=True, kw_only=True)
class IpmiOptions(BmcOptions):
    """What a table of `type = "ipmi"` holds."""

    tool: Path = Path("/usr/bin/ipmitool")
    cipher_suite: Literal[3, 17] = 17  # 17: SHA-256, 3: SHA-1 for older BMCs
    privilege: Literal["USER", "OPERATOR", "ADMINISTRATOR"] = "OPERATOR"  # the least that switches power
    tries: Annotated[int, Field(ge=1, le=10)] = (
        3  # UDP loses packets; what may have been done is sent once only
    )


class Ipmi:
    """One table of the configuration."""

    def __init__(self, given: IpmiOptions, where: str) -> None:
        self._given, self._where = given, where
        self._addresses = Addresses(given, where)
        self._refused: dict[str, str] = {}  # node -> the password that its BMC refused: not tried again

    @asynccontextmanager
    async def open(self, node: str) -> AsyncIterator["_Host"]:
        """As in Backend."""
        host, port = _split(await asyncio.to_thread(self._addresses.of, node), self._where)
        word = password(self._given, self._where)
        if self._refused.get(node) == word:
            raise Refused(
                f"{host} has refused this password before; not tried again, so that it locks nobody out"
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
    """One BMC. Nothing is kept open between two commands."""

    def __init__(self, given: IpmiOptions, host: str, port: int) -> None:
        self._given = given
        self.where, self.pace = f"ipmi {host}" + (f":{port}" if port != 623 else ""), given.pace
        self.login_refused = False
        self._argv = [
            *(str(given.tool), "-I", "lanplus", "-H", host, "-p", str(port), "-U", given.user),
            *("-f", str(given.password_file), "-C", str(given.cipher_suite), "-L", given.privilege),
            *("-N", str(max(1, math.ceil(given.connect_s / given.tries)))),
        ]

    async def power(self) -> Power:
        """As in Bmc."""
        says = (await self._read("-v", "chassis", "power", "status")).strip().lower()
        if says.endswith("is on"):
            return Power.ON
        return Power.OFF if says.endswith("is off") else Power.UNKNOWN

    async def offers(self) -> frozenset[Wish]:
        """As in Bmc. IPMI has no way to ask: a BMC says no when it is asked for what it cannot do."""
        return frozenset(_COMMANDS)

    async def last_reset(self) -> str:
        """IPMI does not tell."""
        return ""

    async def ask(self, wish: Wish) -> None:
        """As in Bmc. ipmitool sends it once (-R 1); again only where no session came about."""
        if wish not in _COMMANDS:
            raise Refused(f"IPMI has no {wish!s}")
        for left in reversed(range(self._given.tries)):
            done = await self._tool(["-R", "1", "-v", "chassis", "power", _COMMANDS[wish]])
            if done.status == 0:
                return
            says = self._says(done)
            if done.status is not None and _NO_SESSION in done.err:
                self._login(says)
                if left:
                    continue
                raise Unreachable(f"{self.where}: {says}")
            if done.status is not None and _BUSY.search(done.err):
                raise Unreachable(f"{self.where} says not now: {says}")
            if done.status is not None and _SAID_NO.search(done.err):
                raise Refused(f"{self.where}: {says}")
            raise TimedOut(
                f"{self.where} did not answer the request ({says}): it may or may not have been done"
            )

    async def readings(self, within_s: float) -> Readings:
        """As in Bmc."""
        loop = asyncio.get_running_loop()
        ends, lacks = loop.time() + within_s, []

        async def have(*command: str) -> str:
            """The output; a sensor that fails makes ipmitool fail at the end, and what it said before counts."""
            left_s = ends - loop.time()
            if left_s > 0:
                done = await self._tool(["-R", str(self._given.tries), *command], left_s)
                if done.status == 0 or done.out.strip():
                    return done.out
                says = self._says(done)
            else:
                says = "no time left"
            lacks.append(f"{' '.join(command)}: {says}")
            return ""

        about = _pairs(await have("mc", "info"))
        chassis = _pairs(await have("chassis", "status"))
        events = (await have("sel", "elist", "last", str(_EVENTS))).splitlines()
        sensors, bad = _sensors(await have("sdr", "elist"))
        facts: dict[str, Scalar] = {key: about[key] for key in _FACTS if about.get(key)}
        facts |= {
            key: value for key, value in chassis.items() if value and value not in ("false", "inactive")
        }
        return Readings(
            facts=facts,
            sensors=sensors,
            bad=tuple(bad),
            events=tuple(clip(" ".join(line.split()), 200) for line in reversed(events) if "|" in line),
            lacks=tuple(lacks),
        )

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

    async def _tool(self, command: list[str], most_s: float | None = None) -> tool.Ran:
        try:
            return await tool.run(
                [*self._argv, *command], deadline_s=min(most_s or math.inf, self._given.answer_s)
            )
        except tool.Late as late:
            return late.ran

    def _says(self, done: tool.Ran) -> str:
        if done.status is None:
            return f"no answer within {self._given.answer_s:g} s"
        text = " ".join(_NOISE.sub("", done.err).split())
        return clip(text, 200) or f"{self._given.tool.name} ended with {done.status}"


def _pairs(text: str) -> dict[str, str]:
    """`Power Overload       : false`"""
    rows = (line.partition(":") for line in text.splitlines())
    return {key.strip(): value.strip() for key, _, value in rows if value.strip()}


def _sensors(text: str) -> tuple[dict[str, str], list[str]]:
    """`CPU1 Temp | 30h | ok | 3.1 | 45 degrees C`; all readings, and the names of those that are not well."""
    found: dict[str, str] = {}
    bad: list[str] = []
    for line in text.splitlines():
        row = [part.strip() for part in line.split("|")]
        if len(row) != 5 or row[2] == "ns":  # ns: no reading, as of an empty slot
            continue
        name = row[0] if row[0] not in found else f"{row[0]} {row[1]}"
        found[name] = row[4] if row[2] in _WELL else f"{row[4]} ({row[2]})"
        if row[2] not in _WELL:
            bad.append(name)
    return found, bad


def _split(address: str, where: str) -> tuple[str, int]:
    """Host and port of `host`, `host:port` or `[v6]:port`; never something that the tool takes for an option."""
    fits = _ADDRESS.fullmatch(address)
    port = int(fits["port"] or 623) if fits else 0
    if fits is None or not 0 < port < 65536:
        raise Refused(f"{where}: the address must be host or host:port, not {address!r}")
    return fits["v6"] or fits["host"], port


def build(table: Mapping[str, Any], where: str) -> tuple[BmcOptions, Backend]:
    """The back end of a table; ConfigError names the key."""
    given = options(IpmiOptions, table, where)
    if given.user.startswith("-"):
        raise ConfigError(f"{where}.user: {given.user!r} is not a user's name")
    if given.address:
        try:
            _split(given.address.replace("{node}", "n1"), f"{where}.address")
        except Refused as error:
            raise ConfigError(str(error)) from error
    return given, Ipmi(given, where)
