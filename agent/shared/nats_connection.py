"""A connection to NATS that is kept for ever, with a fresh client for each attempt.

nats-py can reconnect by itself, but then it sends what it buffered before the outage ahead of what its callers send
again, which breaks the order of events. On a black-holed connection with a full buffer it also waits for the old
socket to drain. So a lost client is thrown away with everything that it had buffered, and the session starts over:
what must arrive is in a spool or an outbox and is sent again by id; what ages (a lease, a beat) must not arrive late.
"""

import asyncio
import contextlib
import logging
import random
import ssl
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from urllib.parse import urlsplit

import nats
from nats.aio.client import Client

from agent.contract.errors import ConfigError
from agent.shared import reasons
from agent.shared.nats_client import NatsClient
from agent.shared.nats_parser import MOST_MESSAGE
from agent.shared.rhythm import until_next
from agent.shared.tasks import end

_log = logging.getLogger(__name__)

CONNECT_TIMEOUT_S = 3
PING_S = 1.0
SILENT_S = 2.0  # a server that has not answered a ping for so long is given up
# Twice as long each time that one was, up to so many times, until a session lasts: a server that is short of its processor
# answers late, and everybody who comes back makes that worse.
MOST_PATIENCE = 8
PATIENT_S = 60.0  # a session that lasted as long was a good one for that
FIRST_PAUSE_S = 0.05
MAX_PAUSE_S = 2.0
_NEVER_S = 10**9  # nats-py's own pings wake the process once more each time: see _hold
STEADY_S = 2.0  # a session that lasted as long was a good one: the pauses begin small again

# What nats-py can raise when the connection is lost or the server is not ready yet. JetStream's errors are among them.
LOST = (nats.errors.Error, OSError, asyncio.TimeoutError)
_MOST_TOLD = 20  # different errors of one outage


def _tells_something(record: logging.LogRecord) -> bool:
    """Not asyncio's complaint of how nats-py turns to TLS, which comes with each connection that a server ends."""
    return not str(record.msg).startswith("returning true from eof_received() has no effect")


@dataclass(frozen=True, slots=True, kw_only=True)
class Identity:
    """As whom a client connects, and whom it trusts there."""

    # The NKEY seed; empty: none.
    seed: str = ""
    # The JWT of the user whose seed it is, for servers in operator mode; empty: none.
    jwt: str = ""
    tls: ssl.SSLContext | None = None


class NatsConnection:
    """How one process reaches its NATS servers."""

    def __init__(
        self,
        servers: Sequence[str],
        *,
        name: str,
        identity: Callable[[], Identity] = Identity,
        inbox_prefix: str = "_INBOX",
        validate_subjects: bool = True,
        look_s: float = 1.0,
        ping_s: float = PING_S,
        most: int = MOST_MESSAGE,
        on_error: Callable[[str], None] = lambda _: None,
    ) -> None:
        """`name`: what the server's connection list shows. `identity`: asked before each attempt, as keys and authorities
        are exchanged while we run. `validate_subjects`: has nats-py check each subject. `look_s`: how often the state of the
        connection is checked. `ping_s`: how often the server is asked for an answer. `most`: bytes of the longest message that
        is taken. `on_error`: hears what the server refuses besides. ConfigError: what `servers` has is not a URL of a server,
        or as of `identity`.
        """
        self._servers = [_checked(url) for url in servers]
        self._name = name
        self._identity = identity
        self._seed = identity().seed  # with which we connected last
        self._again = asyncio.Event()
        self._inbox_prefix = inbox_prefix
        self._validate_subjects = validate_subjects
        self._look_s = look_s
        self._ping_s = ping_s
        self._most = most
        self._told_error = on_error
        self._server = ""
        self._order = _mixed(self._servers)  # in which the servers are tried next
        self._tls: ssl.SSLObject | None = None  # of the connection that we have or had
        self._announced = False
        self._cause: Exception | None = None  # why the present attempt fails
        self._told: set[str] = set()  # errors since the last good session
        self._patience = 1  # times the usual, with a server that does not answer
        self.connected = False
        self.since_s = 0.0  # when the present or the last session began, by the monotonic clock
        self.why = ""  # it is not connected, or was not the last time

    @property
    def peer(self) -> tuple[str, int] | None:
        """Host and port of the server that we are or were connected to; None before the first connection."""
        return _address(self._server)

    @property
    def certificate(self) -> tuple[float, float] | None:
        """From when and until when the certificate holds that the server shows, seconds since 1970; None: it showed none yet."""
        shown = self._tls.getpeercert() if self._tls else None
        if not shown:
            return None
        since, until = (ssl.cert_time_to_seconds(str(shown[key])) for key in ("notBefore", "notAfter"))
        return since, until

    def uses(self, seed: str) -> bool:
        """Are we connected with this seed?"""
        return self.connected and self._seed == seed

    def reconnect(self) -> None:
        """Ends the present session, and begins the next one with what `identity` says then."""
        self._again.set()

    def elsewhere(self) -> bool:
        """Ends the present session, and begins the next one at another server, where there is one (which is returned): this
        one answers, and is cut off from the others, or takes nothing.
        """
        if len(self._servers) < 2 or not self.connected:
            return False
        self._order = sorted(self._order, key=lambda url: _address(url) == self.peer)
        _log.warning(
            "NATS %s: what is asked there gets no answer: another server is tried", shown(self._server)
        )
        self.reconnect()
        return True

    async def serve(self, session: Callable[[Client], Awaitable[None]]) -> None:
        """Connects, runs `session` until the connection is lost (then the session is cancelled), and starts over, for
        ever. Errors of the session other than `LOST` are raised here.
        """
        loop = asyncio.get_running_loop()
        logging.getLogger("asyncio").addFilter(_tells_something)  # once, however often it is said
        pause_s = FIRST_PAUSE_S
        while True:
            try:
                client = await self.connect()
            except LOST as error:
                self._report(reasons.of_connection(error))
            else:
                started_s = loop.time()
                try:
                    await self._hold(client, session)
                except LOST as error:
                    self._report(reasons.of_connection(error))
                finally:
                    self.connected = False
                    await close(client)
                if loop.time() - started_s >= STEADY_S:
                    pause_s = FIRST_PAUSE_S
                    self._told.clear()
            await asyncio.sleep(pause_s)
            pause_s = min(MAX_PAUSE_S, pause_s * 2)

    async def connect(self) -> Client:
        """Connects once. `LOST`: it could not. Whoever calls it closes the client (`close`)."""
        try:
            identity = self._identity()
        except ConfigError as error:  # a file that is being exchanged, or was taken away
            raise ConnectionError(str(error)) from error
        self._seed = identity.seed
        self._cause = None
        self._again.clear()
        order = self._order
        self._order = [*order[1:], order[0]]  # one that hangs does not cost the next attempt its time, too
        try:
            async with asyncio.timeout(CONNECT_TIMEOUT_S + 1):
                client = NatsClient(self._most)
                await client.connect(
                    order,
                    dont_randomize=True,
                    name=self._name,
                    inbox_prefix=self._inbox_prefix,
                    nkeys_seed_str=identity.seed or None,
                    user_jwt_cb=identity.jwt.encode if identity.jwt else None,
                    tls=identity.tls,
                    allow_reconnect=False,
                    connect_timeout=CONNECT_TIMEOUT_S,
                    ping_interval=_NEVER_S,
                    skip_subject_validation=not self._validate_subjects,
                    error_cb=self._on_error,
                )
        except TimeoutError as error:  # nats-py has tried it several times, and said why it failed
            raise self._cause or error from error
        except OSError:  # that of a bad certificate is a ValueError too
            raise
        except (AttributeError, ValueError, TypeError, KeyError) as error:
            # nats-py trusts that a NATS server greets it.
            why = f"{type(error).__name__}: {error}"
            raise nats.errors.Error(f"what listens there is no NATS server ({why})") from error
        if (
            type(client.max_payload) is not int or client.max_payload <= 0
        ):  # nats-py compares with it at each message
            await close(client)
            raise nats.errors.Error("what listens there is no NATS server (max_payload)")
        return client

    async def _hold(self, client: Client, session: Callable[[Client], Awaitable[None]]) -> None:
        """Runs the session until it ends or the connection is lost."""
        self._server = client.connected_url.geturl() if client.connected_url else ""
        self._order = _mixed(self._servers)
        writer = _writer(client)
        self._tls = writer.get_extra_info("ssl_object") if writer else None
        if not self._announced:
            self._announced = True
            _log.info("connected to %s", shown(self._server))
        self.connected, self.since_s = True, time.monotonic()
        task = asyncio.ensure_future(session(client))
        again = asyncio.ensure_future(self._again.wait())
        ping: asyncio.Task[None] | None = None
        pinged_s, unanswered_s = 0.0, 0.0
        try:
            # Polled: nats-py calls closed_cb only after it has drained the dead socket. Its task that reads ends sooner,
            # except on a connection on which nothing comes through; without it nothing is heard any more.
            reading: asyncio.Task[None] | None = getattr(client, "_reading_task", None)
            waits = {task, again} if reading is None else {task, again, reading}
            # Two looks at least: after the first one our own answer may still be unread, when we were held up ourselves.
            base_s, began_s, patience = max(SILENT_S, 2 * self._look_s), time.monotonic(), self._patience
            while not client.is_closed and unanswered_s < base_s * patience:
                done, _ = await asyncio.wait(
                    waits, timeout=until_next(self._look_s), return_when=asyncio.FIRST_COMPLETED
                )
                if done:
                    break
                if ping is not None and not ping.done():
                    unanswered_s += (
                        self._look_s
                    )  # by looks: if we were held up ourselves, that is not the server's silence
                elif time.monotonic() - pinged_s >= self._ping_s - self._look_s / 2:
                    ping = asyncio.ensure_future(_answered(client))
                    pinged_s, unanswered_s = time.monotonic(), 0.0
                    if pinged_s - began_s >= PATIENT_S:
                        patience = 1
            if again.done():
                _log.info("connecting again")
            elif not task.done():
                silent = unanswered_s >= base_s * patience
                self._patience = min(MOST_PATIENCE, 2 * patience) if silent else patience
                self._report("connection lost")
                # First: nats-py's wait for a socket that takes nothing ignores its cancellation.
                _abort(client)
        finally:
            # Unlike `await task`, this cannot confuse its cancellation with ours.
            await end(task, again, *([ping] if ping else ()))
        if not task.cancelled():
            task.result()

    async def _on_error(self, error: Exception) -> None:
        self._told_error(str(error))
        if isinstance(error, LOST):
            self._cause = error
        self._report(reasons.of_connection(error))

    def _report(self, error: str) -> None:
        """Logs each error once until a session was a good one, not once per attempt."""
        self.why = error
        if error not in self._told:
            if len(self._told) >= _MOST_TOLD:
                self._told.clear()
            self._told.add(error)
            self._announced = False
            _log.warning("NATS %s: %s", ",".join(map(shown, self._servers)), error)


class TlsContexts:
    """The TLS settings for some servers. Made again only when the authorities change: it costs memory each time."""

    def __init__(self, servers: Sequence[str], key: str, *, todo: str = "correct that file") -> None:
        """`key` names the configuration key of the authorities in the ConfigError, and `todo` says what to do then."""
        self._wanted = any(url.startswith("tls:") for url in servers)
        self._key = key
        self._todo = todo
        self._pem: str | None = None
        self._context: ssl.SSLContext | None = None

    def of(self, pem: str) -> ssl.SSLContext | None:
        """Trusts these authorities (empty: the system's). None where no server wants TLS and none is given."""
        if pem != self._pem:
            self._context = self._made(pem)
            self._pem = pem
        return self._context

    def _made(self, pem: str) -> ssl.SSLContext | None:
        if not pem and not self._wanted:
            return None
        try:
            context = ssl.create_default_context(cadata=pem or None)
        except (ssl.SSLError, ValueError) as error:
            raise ConfigError(f"{self._key}: not certificates in PEM: {error}: {self._todo}") from error
        context.minimum_version = ssl.TLSVersion.TLSv1_3
        return context


async def _answered(client: Client) -> None:
    """Returns when the server has answered a ping. Where it cannot even be sent, never."""
    try:
        await client.flush(timeout=_NEVER_S)
    except LOST:
        await asyncio.Event().wait()


async def close(client: Client) -> None:
    """Closes a client within a second or so, whatever state its connection is in."""
    with contextlib.suppress(*LOST):
        async with asyncio.timeout(1.0):
            await client.close()
    _abort(client)


def _abort(client: Client) -> None:
    """Ends the socket. A black-holed one would keep its buffer and nats-py's tasks for many minutes."""
    writer = _writer(client)
    if writer is not None:
        with contextlib.suppress(AttributeError):  # of a transport that has ended already
            writer.transport.abort()


def _writer(client: Client) -> asyncio.StreamWriter | None:
    """Of its socket: there is no public way."""
    writer: asyncio.StreamWriter | None = getattr(getattr(client, "_transport", None), "_io_writer", None)
    return writer


def _checked(url: str) -> str:
    """ConfigError: not a URL that we can use."""
    scheme, colon, _ = url.partition("://")
    if colon and scheme not in ("nats", "tls"):
        raise ConfigError(f"NATS server {shown(url)!r}: write nats://HOST:PORT, or tls://HOST:PORT for TLS")
    return url


def _mixed(servers: Sequence[str]) -> list[str]:
    """In random order: so a fleet spreads over them."""
    return random.sample(servers, len(servers))


def _address(url: str) -> tuple[str, int] | None:
    """Host and port; None where there is no host."""
    parts = urlsplit(url if "://" in url else f"nats://{url}")
    return (parts.hostname, parts.port or 4222) if parts.hostname else None


def shown(url: str) -> str:
    """Without the user and the password."""
    before, at, host = url.rpartition("@")
    return f"{before.partition('://')[0]}://…@{host}" if at else url
