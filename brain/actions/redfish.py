"""BMCs with Redfish, through the client library sushy (decision 12). One Redfish session per use, closed at its end.

Values and states: DSP0268 (ComputerSystem: PowerState, ResetType), DSP0266 (sessions).
"""

import asyncio
import ssl
from collections.abc import AsyncIterator, Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import urlsplit

import sushy
from sushy import auth as logins
from sushy import exceptions as says
from sushy.resources.system.system import System
from urllib3 import exceptions as wire

from agent.contract.errors import ConfigError, Refused, Unreachable
from brain import fence, reach
from brain.actions import redfish_health, redfish_readings
from brain.actions.bmc_base import Backend, BmcOptions, BmcRequest, EventSource, Power, Readings
from brain.actions.bmc_health import BmcHealth
from brain.actions.bmc_tables import Addresses
from brain.actions.redfish_connector import Abandoned, BoundedConnector, local, meaning
from brain.actions.redfish_reader import at
from brain.options import options

T = TypeVar("T")
_ROOT = "/redfish/v1/"
_LOGOUT_S = 5.0
_FAILS = (says.SushyError, Abandoned, wire.HTTPError, OSError)  # requests' errors are OSErrors
_POWER = {
    "On": Power.ON,
    "Paused": Power.ON,
    "Off": Power.OFF,
    "PoweringOn": Power.CHANGING,
    "PoweringOff": Power.CHANGING,
}
_KINDS: Mapping[BmcRequest, tuple[sushy.ResetType, ...]] = {  # the first one that the BMC allows is used
    BmcRequest.ON: (sushy.ResetType.ON, sushy.ResetType.FORCE_ON),
    BmcRequest.OFF: (sushy.ResetType.FORCE_OFF,),
    BmcRequest.SHUTDOWN: (sushy.ResetType.GRACEFUL_SHUTDOWN,),
    BmcRequest.CYCLE: (sushy.ResetType.POWER_CYCLE,),
    BmcRequest.RESTART: (sushy.ResetType.GRACEFUL_RESTART,),
    BmcRequest.RESET: (sushy.ResetType.FORCE_RESTART,),
    BmcRequest.NMI: (sushy.ResetType.NMI,),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class RedfishOptions(BmcOptions):
    """The keys of a table with `type = "redfish"`."""

    # PEM file with the CAs of the BMCs; none: the system's CAs
    ca_file: Path | None = None
    # true: certificates are not verified and http:// is allowed, so anyone on the network path can act
    insecure: bool = False
    # Id of the system, may contain {node}; empty: the BMC has exactly one
    system: str = ""


class Redfish:
    """One table of the configuration."""

    def __init__(self, given: RedfishOptions, where: str) -> None:
        self._given, self._where = given, where
        self._addresses = Addresses(given, where)
        paths = ssl.get_default_verify_paths()
        trusted = str(given.ca_file) if given.ca_file else paths.cafile or paths.capath or True
        self._verify: bool | str = False if given.insecure else trusted
        self._refused: dict[str, str] = {}  # node -> the password that its BMC refused; it is not tried again

    async def reach(self, node: str) -> str:
        """As in Backend."""
        url = await self._addresses.looked_up(node)
        _check(url, self._where, insecure=self._given.insecure)
        await reach.connects_to(url, within_s=self._given.connect_s, tls=self._context())
        return url

    @asynccontextmanager
    async def open(self, node: str) -> AsyncIterator["_Session"]:
        """As in Backend."""
        url, word = await self._addresses.login(node)
        _check(url, self._where, insecure=self._given.insecure)
        if self._refused.get(node) == word:
            raise Refused(
                f"{url} has refused this password before; not tried again, so that the account is not locked"
            )
        given = self._given
        connector = BoundedConnector(
            url, verify=self._verify, connect_s=given.connect_s, answer_s=given.answer_s
        )
        session = _Session(url, connector, given, self._context)
        try:
            try:
                await session.enter(given.user, word, given.system.replace("{node}", node))
            except Refused:
                if session.login_refused:
                    self._refused[node] = word
                raise
            self._refused.pop(node, None)
            yield session
        finally:
            await session.leave()

    def _context(self) -> ssl.SSLContext:
        context = ssl.create_default_context(cafile=str(self._given.ca_file) if self._given.ca_file else None)
        if self._given.insecure:
            context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        return context


class _Session:
    """One login to one BMC. All requests go through a thread of its own, one after the other."""

    def __init__(
        self,
        url: str,
        connector: BoundedConnector,
        given: RedfishOptions,
        context: Callable[[], ssl.SSLContext],
    ) -> None:
        self.where, self.timing = f"redfish {url}", given.timing
        self.login_refused = False
        self._given, self._context = given, context
        self._url, self._connector, self._most_s = url, connector, 4 * (given.connect_s + given.answer_s)
        self._word = ""
        self._service_root: Mapping[str, Any] = {}
        self._thread = ThreadPoolExecutor(1, "redfish")
        self._jobs = 0
        self._auth: logins.AuthBase | None = None
        self._root: sushy.Sushy | None = None  # kept: its destructor closes the session
        self._system: System | None = None

    async def enter(self, user: str, word: str, system: str) -> None:
        """Logs in and finds the system."""
        self._word = word
        await self._do(partial(self._log_in, user, word, system))

    async def leave(self) -> None:
        """Closes the session; one that cannot be closed expires on the BMC."""
        closing = self._in_thread(self._jobs + 1, self._log_out)
        self._thread.shutdown(wait=False)
        await asyncio.wait({closing}, timeout=_LOGOUT_S)

    async def power(self) -> Power:
        """As in Bmc."""
        found = await self._do(lambda: self._fresh().json.get("PowerState"))
        return _POWER.get(found, Power.UNKNOWN)

    async def offers(self) -> frozenset[BmcRequest]:
        """As in Bmc: the allowable values of the system or of its ActionInfo."""
        allowed = await self._do(lambda: self._fresh().get_allowed_reset_system_values())
        return frozenset(wanted for wanted, kinds in _KINDS.items() if allowed.intersection(kinds))

    async def last_reset(self) -> str:
        """As in Bmc: ComputerSystem.LastResetTime (since schema 1.12)."""
        return str(await self._do(lambda: self._fresh().json.get("LastResetTime")) or "")

    async def request(self, wanted: BmcRequest) -> None:
        """As in Bmc."""
        await self._do(partial(self._ask, wanted))

    async def readings(self, within_s: float) -> Readings:
        """As in Bmc."""
        work = partial(redfish_readings.collect, self._get, self._found.json, within_s)
        return await self._do(work, within_s + self._most_s)

    async def health(self, within_s: float, turn: int) -> BmcHealth:
        """As in Bmc."""
        work = partial(redfish_health.collect, self._get, self._found.json, within_s, turn)
        return await self._do(work, within_s + self._most_s)

    async def events(self) -> EventSource | None:
        """As in Announcing: EventService.ServerSentEventUri (since schema 1.1)."""
        path, tls = await self._do(self._event_path)
        if not path.startswith("/"):
            return None
        return EventSource(
            where=self.where,
            url=self._url.rstrip("/") + path,
            user=self._given.user,
            word=self._word,
            tls=tls,
            connect_s=self._given.connect_s,
            answer_s=self._given.answer_s,
        )

    @property
    def _found(self) -> System:
        if self._system is None:
            raise Unreachable(f"{self.where}: not logged in")
        return self._system

    async def _do(self, work: Callable[[], T], most_s: float | None = None) -> T:
        """Runs work in the thread. When the caller stops waiting, what has not been sent yet is not sent any more."""
        self._jobs = number = self._jobs + 1
        try:
            async with asyncio.timeout(most_s or self._most_s):
                return await self._in_thread(number, work)
        except _FAILS as error:  # TimeoutError, ours as well, is an OSError
            self._connector.abandoned = number
            asking = (
                self._connector.job == number and self._connector.sent == "POST" and self._system is not None
            )
            raise meaning(error, self.where, asking=asking) from error
        except asyncio.CancelledError:
            self._connector.abandoned = number
            raise

    def _in_thread(self, number: int, work: Callable[[], T]) -> asyncio.Future[T]:
        loop, asked = asyncio.get_running_loop(), fence.current()

        def job() -> T:
            self._connector.job, self._connector.sent = number, ""
            self._connector.fence, self._connector.loop = asked, loop
            return work()

        return loop.run_in_executor(self._thread, job)

    def _log_in(self, user: str, word: str, system: str) -> None:
        try:
            self._service_root = root = self._connector.get(_ROOT).json()
        except says.AccessError:
            root = {}  # against the standard, some BMCs want a password even here; they support only basic
        except ValueError as error:
            raise Refused(f"{self.where} does not speak Redfish: {error}") from error
        try:
            self._start(root, user, word)
            path = f"{_ROOT}Systems/{system}" if system else self._only(root)
            self._system = System(self._connector, path)
        except says.AccessError:
            self.login_refused = True  # the first use of the password, either way
            raise

    def _start(self, root: Mapping[str, Any], user: str, word: str) -> None:
        """Logs in by a session where the BMC supports them, otherwise by basic. A wrong password is sent only once."""
        if isinstance(root.get("Links"), dict) and root["Links"].get("Sessions"):
            try:
                self._auth = logins.SessionAuth(user, word)
                self._root = sushy.Sushy(self._url, auth=self._auth, connector=self._connector)
                return
            except says.AccessError:
                raise
            except says.HTTPError:  # sessions are disabled or all in use; the password was not checked
                pass
        self._auth = logins.BasicAuth(user, word)
        self._connector.set_http_basic_auth(user, word)

    def _only(self, root: Mapping[str, Any]) -> str:
        path = (root.get("Systems") or {}).get("@odata.id", f"{_ROOT}Systems")
        members = self._get(path).get("Members", [])
        if len(members) != 1:
            names = ", ".join(str(m.get("@odata.id", "?")).rsplit("/", 1)[-1] for m in members[:8])
            raise Refused(f"{self.where} has {len(members)} systems ({names}): name one with `system`")
        return str(members[0]["@odata.id"])

    def _log_out(self) -> None:
        try:
            if self._auth is not None:
                self._auth.close()
        except _FAILS:
            if isinstance(self._auth, logins.SessionAuth):
                self._auth.reset_session_attrs()  # otherwise its destructor would try again, at any time
        finally:
            self._connector.close()

    def _fresh(self) -> System:
        self._found.refresh()
        return self._found

    def _ask(self, wanted: BmcRequest) -> None:
        allowed = self._fresh().get_allowed_reset_system_values()
        kind = next((kind for kind in _KINDS[wanted] if kind in allowed), None)
        if kind is None:
            has = ", ".join(sorted(one.value for one in allowed))
            raise Refused(f"{self.where} does not offer {wanted!s} (only {has})")
        self._found.reset_system(kind)

    def _event_path(self) -> tuple[str, ssl.SSLContext | None]:
        link = at(self._service_root, "EventService").get("@odata.id")
        try:
            service = self._get(str(link)) if link else {}
        except (says.HTTPError, ValueError):  # named, and not there
            service = {}
        if service.get("ServiceEnabled") is False or not service.get("ServerSentEventUri"):
            return "", None
        tls = self._context() if self._url.startswith("https:") else None
        return local(str(service["ServerSentEventUri"])), tls

    def _get(self, path: str) -> dict[str, Any]:
        found = self._connector.get(path).json()
        return found if isinstance(found, dict) else {}


def _check(url: str, where: str, *, insecure: bool, shown: str = "") -> None:
    """Refused says what is wrong with it; `shown`: as it was written."""
    parts, shown = urlsplit(url), shown or url
    if parts.scheme not in ("https", "http") or not parts.hostname or parts.path not in ("", "/"):
        raise Refused(f"{where}: the address must be https://host or https://host:port, not {shown!r}")
    if parts.scheme == "http" and not insecure:
        raise Refused(
            f"{where}: {shown} is not https; the password would be readable (insecure = true allows it)"
        )


def build(table: Mapping[str, Any], where: str) -> tuple[BmcOptions, Backend]:
    """Builds the backend of a table; ConfigError names the key."""
    given = options(RedfishOptions, table, where)
    if given.address:
        try:
            _check(given.address.replace("{node}", "n1"), where, insecure=given.insecure, shown=given.address)
        except (Refused, ValueError) as error:
            raise ConfigError(str(error)) from error
    if given.ca_file is not None and not given.ca_file.is_file():
        raise ConfigError(f"{where}.ca_file: {given.ca_file} cannot be read")
    return given, Redfish(given, where)
