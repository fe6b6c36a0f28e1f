"""A TCP way to the broker that can be cut as a network is: what was sent stays unanswered, or connections end."""

import asyncio
import contextlib
import threading

from tests.real.nats import free_port

CHUNK = 65536


class Proxy:
    """127.0.0.1:`port` → 127.0.0.1:`target`, in a thread of its own."""

    def __init__(self, target: int) -> None:
        self.port = free_port()
        self._target = target
        self._loop = asyncio.new_event_loop()
        self._open = asyncio.Event()
        self._last = b""
        self.held = threading.Event()  # after `hold_after`: that came
        self._writers: set[asyncio.StreamWriter] = set()
        self._thread = threading.Thread(target=self._serve, daemon=True)

    def start(self) -> None:
        """Returns when it listens."""
        self._thread.start()
        asyncio.run_coroutine_threadsafe(self._listen(), self._loop).result(60)

    def hold(self) -> None:
        """From now on nothing comes through, in neither direction, and nobody is told."""
        self._loop.call_soon_threadsafe(self._open.clear)

    def hold_after(self, last: bytes) -> None:
        """What is sent to the broker comes through until it says this, in one piece; then as `hold`, from the next byte on."""
        self._last = last

    def sever(self) -> None:
        """Every connection ends at once, and no new one gets through."""
        self._loop.call_soon_threadsafe(self._sever)

    def heal(self) -> None:
        """What was held goes on."""
        self._loop.call_soon_threadsafe(self._open.set)

    def stop(self) -> None:
        """Ends it."""
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(60)

    def _serve(self) -> None:
        asyncio.set_event_loop(self._loop)
        self._loop.run_forever()

    async def _listen(self) -> None:
        self._open.set()
        await asyncio.start_server(self._connected, "127.0.0.1", self.port)

    def _sever(self) -> None:
        self._open.clear()
        for writer in self._writers:
            writer.transport.abort()

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._writers.add(writer)
        try:
            await self._open.wait()
            there, back = await asyncio.open_connection("127.0.0.1", self._target)
        except OSError:  # the broker is down: refused
            self._close(writer)
            return
        self._writers.add(back)
        await asyncio.gather(self._pass(reader, back, up=True), self._pass(there, writer))

    async def _pass(
        self, source: asyncio.StreamReader, sink: asyncio.StreamWriter, *, up: bool = False
    ) -> None:
        with contextlib.suppress(OSError):
            while data := await source.read(CHUNK):
                await self._open.wait()
                if up and self._last and self._last in data:
                    self._last = b""
                    self._open.clear()
                    self.held.set()
                sink.write(data)
                await sink.drain()
        self._close(sink)

    def _close(self, writer: asyncio.StreamWriter) -> None:
        self._writers.discard(writer)
        writer.close()
