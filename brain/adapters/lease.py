"""Leader election: a lease in a JetStream key-value bucket whose entries expire after their time to live.

The holder renews the lease with the revision it knows; a write by another brain makes the renewal fail. The lease
counts as held only until a deadline on this machine's monotonic clock, measured from before the last renewal was sent.
So a holder that hangs or is cut off stops before its entry expires and the next one is let in, whatever the network does
to the answers. A holder whose process has ended need not be waited for: docs/decisions/0041.
"""

import asyncio
import contextlib
import logging
import time
from collections.abc import Callable

from nats.aio.client import Client
from nats.js.api import KeyValueConfig, StorageType
from nats.js.errors import (
    APIError,
    BadRequestError,
    KeyNotFoundError,
    KeyWrongLastSequenceError,
    NotFoundError,
)
from nats.js.kv import KeyValue

from agent.contract import subjects
from agent.shared.nats_connection import LOST
from brain.adapters import copies, presence, stream_config

_log = logging.getLogger(__name__)

MARGIN = 0.1  # share of the time to live by which the holder stops before the entry expires
RENEWALS = 4  # per time to live
LOOKS = 16  # per time to live, by those that wait for the lease
# Share of the time to live after which a lease that is not renewed may be one whose holder is gone: longer than from one
# renewal to the next, so that nobody asks while all is well, and nobody is replaced who does renew it.
OVERDUE = 1.2 / RENEWALS
_BUCKET_STREAM = f"KV_{subjects.LEASE_BUCKET}"
_TAKEN = (KeyWrongLastSequenceError, BadRequestError)


class Lease:
    """One brain's claim to the lease of its cell. Call `serve` once for each connection."""

    def __init__(
        self,
        cell: str,
        brain: str,
        ttl_s: float,
        *,
        before: str = "",
        replicas: int = 1,
        clock: Callable[[], float] = time.monotonic,
        fit: Callable[[], bool] = lambda: True,
    ) -> None:
        """`fit`: is this brain able to lead? One that is not leaves it to another that is (docs/decisions/0062).

        `before`: a holder that is known to have ended, whatever the server thinks of it; empty: none is known."""
        self._key = cell
        self._brain = brain  # unique per process: a restarted brain is another holder
        # Entries that nobody else holds
        self._own = frozenset(name.encode() for name in (brain, before) if name)
        self._ttl_s = ttl_s
        self._replicas = replicas
        self._clock = clock
        self._fit = fit
        self._until = 0.0
        self._revision = 0
        self._client: Client | None = None  # the present connection
        self._bucket_: KeyValue | None = None  # there
        self._renewing = asyncio.Lock()
        self._seen = (0, 0.0)  # the revision of another holder's entry, and since when it stands
        self.epoch = 0  # of the lease that is or was held
        self.unstored = False  # NATS did not answer, or failed, when this brain last tried to take it

    @property
    def held(self) -> bool:
        """May this brain act now?"""
        connected = self._client is not None and self._client.is_connected
        return connected and self._clock() < self._until

    async def serve(self, client: Client, won: Callable[[int], None], known_epoch: Callable[[], int]) -> None:
        """Competes for the lease, renews it, and calls `won(epoch)` each time this brain acquires it.

        `known_epoch` is the highest epoch on the log; a new epoch is above it. Releases the lease when cancelled.
        """
        bucket, base = await self._bucket(client)
        self._client, self._bucket_ = client, bucket
        self._seen = (0, 0.0)
        shown = await presence.show(client, self._key, self._brain)
        able = await presence.show_able(client, self._key, self._brain, self._fit)
        try:
            while True:
                try:
                    leaves_it = await self._leaves_it(client)
                    if self._revision and leaves_it:
                        _log.warning(
                            "this brain gives up the lead: another one is able to lead, and it is not"
                        )
                        async with self._renewing:
                            await self._release(client, bucket)
                    if self._revision:
                        await self._renew(bucket)
                    if not self._revision and not leaves_it and await self._take(client, bucket):
                        self.epoch = max(base + self._revision, known_epoch() + 1)
                        won(self.epoch)
                    self.unstored = False
                except LOST:  # a server without a leader, or with a full disk: the lease runs out by itself
                    self.unstored = True
                    if await self._bucket_is_gone(client):
                        bucket, base = await self._made_again(client)
                await asyncio.sleep(self._ttl_s / (RENEWALS if self._revision else LOOKS))
        finally:
            self._bucket_ = None
            await self._release(client, bucket)
            self._client = None
            await presence.hide(shown)
            await presence.hide(able)

    async def confirm(self) -> bool:
        """Renews the lease now, which only its holder can: True when the server has said so just now.

        While the server does not answer, it is asked again until the lease has run out.
        """
        while self.held and self._bucket_ is not None:
            before = self._until
            with contextlib.suppress(*LOST):
                await self._renew(self._bucket_)
            if self.held and self._until > before:
                return True
            if self.held:
                await asyncio.sleep(self._ttl_s / RENEWALS / 5)
        return False

    def drop(self) -> None:
        """Stops counting as the holder immediately."""
        self._until = 0.0

    async def _bucket(self, client: Client) -> tuple[KeyValue, int]:
        """Returns the bucket and the base of its revisions: its creation time in milliseconds.

        A recreated bucket starts again at revision 1, and agents refuse an epoch older than the one they know.
        """
        jetstream = client.jetstream()
        config = KeyValueConfig(
            bucket=subjects.LEASE_BUCKET,
            history=1,
            ttl=self._ttl_s,
            storage=StorageType.FILE,
            replicas=self._replicas,
        )
        try:
            bucket = await jetstream.create_key_value(config)
        except BadRequestError:
            # It exists with another time to live, e.g. from before a change of the configuration.
            name = _BUCKET_STREAM
            keys = {"max_age": self._ttl_s, "duplicate_window": min(self._ttl_s, 120)}
            await stream_config.change(client, name, {key: int(s * 10**9) for key, s in keys.items()})
            bucket = await jetstream.key_value(subjects.LEASE_BUCKET)
            await copies.at_least(client, name, self._replicas)
        info = await jetstream.stream_info(_BUCKET_STREAM)
        assert info.created is not None  # noqa: S101 - the server always sends it
        return bucket, int(info.created.timestamp() * 1000)

    async def _bucket_is_gone(self, client: Client) -> bool:
        """Has somebody deleted it, or its stream?"""
        try:
            await client.jetstream(timeout=self._ttl_s / RENEWALS).stream_info(_BUCKET_STREAM)
        except NotFoundError:
            return True
        except LOST:
            return False
        return False

    async def _made_again(self, client: Client) -> tuple[KeyValue, int]:
        """Another bucket in its place, once a lease of the one before has run out wherever it was held."""
        _log.warning("somebody has deleted %s on NATS: it is made again", _BUCKET_STREAM)
        self._bucket_, self._revision = None, 0
        self.drop()
        await asyncio.sleep(self._ttl_s)
        bucket, base = await self._bucket(client)
        self._bucket_ = bucket
        return bucket, base

    async def _leaves_it(self, client: Client) -> bool:
        """Is this brain not able to lead, and another one is? One that is alone does what it can."""
        if self._fit():
            return False
        return await presence.is_another_able(client, self._key, self._brain, within_s=self._ttl_s / LOOKS)

    async def _take(self, client: Client, bucket: KeyValue) -> bool:
        """Takes the lease if nobody has it: no entry, our own of before a lost connection, that of the run before this one, or
        one of a holder that is gone.
        """
        try:
            entry = await bucket.get(self._key)
        except KeyNotFoundError:  # expired, or given back
            return await self._write(bucket, None)
        if entry.value in self._own or await self._is_gone(client, entry):
            return await self._write(bucket, entry.revision)
        return False

    async def _is_gone(self, client: Client, entry: KeyValue.Entry) -> bool:
        """Has the holder of this entry stopped renewing it, and has the server no connection of it any more?"""
        revision, since = self._seen
        if entry.revision != revision:
            self._seen = (entry.revision or 0, self._clock())
            return False
        if self._clock() - since < self._ttl_s * OVERDUE:
            return False
        holder = (entry.value or b"").decode(errors="replace")
        return not await presence.is_shown(client, self._key, holder, within_s=self._ttl_s / LOOKS)

    async def _write(self, bucket: KeyValue, last: int | None) -> bool:
        """False: somebody else was faster."""
        before = self._clock()
        try:
            if last is None:
                self._revision = await bucket.create(self._key, self._brain.encode())
            else:
                self._revision = await bucket.update(self._key, self._brain.encode(), last=last)
        except (*_TAKEN, KeyNotFoundError):
            return False
        self._until = before + self._ttl_s * (1 - MARGIN)
        return True

    async def _renew(self, bucket: KeyValue) -> None:
        async with self._renewing:  # each renewal needs the revision of the one before
            if self._revision:
                await self._renew_now(bucket)

    async def _renew_now(self, bucket: KeyValue) -> None:
        before = self._clock()
        try:
            async with asyncio.timeout(self._ttl_s / 2):
                self._revision = await bucket.update(self._key, self._brain.encode(), last=self._revision)
            if not self.held:
                self._revision = 0  # it expired in the meantime: a new epoch is needed
            else:
                self._until = before + self._ttl_s * (1 - MARGIN)
        except (*_TAKEN, APIError):
            self.drop()
            self._revision = 0
        except TimeoutError:
            if not self.held:
                self._revision = 0

    async def _release(self, client: Client, bucket: KeyValue) -> None:
        """Deletes the entry if connected, so that a standby takes over immediately."""
        revision, self._revision = self._revision, 0
        held = self.held
        self.drop()
        if revision and held and client.is_connected:
            try:
                async with asyncio.timeout(1.0):
                    await bucket.delete(self._key, last=revision)
            except LOST:
                return
