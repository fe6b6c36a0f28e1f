"""A whole brain in this process, with its embedded NATS server, and nodes that the test plays."""

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import aiohttp
import nats
import orjson
from nacl.signing import VerifyKey
from nats.aio.client import Client
from nats.aio.msg import Msg

from agent.contract import requests, subjects
from agent.contract.acknowledgements import decode_acknowledgement
from agent.contract.commands import Answer, Command, Reply, decode_command, encode_reply
from agent.contract.look import LOOK
from agent.contract.messages import Beat, Event, Severity, encode_beat, encode_event
from agent.shared.nats_connection import LOST, TlsContexts
from agent.shared.tasks import end
from agent.uplink.connection import node_connection
from brain import app, config
from tests import people
from tests.real import built_packs
from tests.real.nats import free_port, login

MOVES_AFTER_S = 10.0  # as the agent, which goes to another server where nothing is acknowledged


class Node:
    """A node played by the test: it says events, beats, and answers commands."""

    def __init__(self, name: str, client: Client, key: VerifyKey, cell: str = "default") -> None:
        self.name = name
        self.session = "s1"
        self.version = "1"
        self.ahead_s = 0.0  # of its wall clock
        self.patience_s = 60.0  # for which an event is offered again
        self.again_s = 5.0  # an event that is not acknowledged for so long is offered again
        self.commands: list[Command] = []
        self.answer = Answer.ACCEPTED
        self.unreachable = False
        self.heard_at: list[float] = []
        self.answered = 0  # beats
        self.moves: Callable[[], object] = lambda: None  # to another server
        self._client = client
        self._key = key
        self._cell = cell
        self._seq = 0
        self._stored: dict[str, asyncio.Event] = {}

    async def serve(self, client: Client) -> None:
        """One connection of it, as long as it lasts."""
        self._client = client
        await self.listen()
        await asyncio.Event().wait()

    async def listen(self, *, commands: bool = True) -> None:
        """Begins to hear what is stored, and to answer commands."""
        if commands:
            await self._client.subscribe(subjects.command(self._cell, self.name), cb=self._hear)
        await self._client.subscribe(
            subjects.acknowledgement(self._cell, self.name, subjects.EVENT), cb=self._on_stored
        )
        await self._client.flush()

    async def event(self, kind: str, component: str = "node", evidence: str = "", **data: Any) -> Event:
        """Offers an event, again and again, until it is on the log."""
        self._seq += 1
        event = Event(
            id=f"{self.name}:s:{self._seq}", node=self.name, kind=kind, component=component, severity=Severity.ERROR,
            at="2026-01-01T00:00:00Z", age_s=0.0, boot="b", count=1, data=data, evidence=evidence or f"{kind} {data}",
        )  # fmt: skip
        stored = self._stored[event.id] = asyncio.Event()
        moves_s = time.monotonic() + MOVES_AFTER_S
        async with asyncio.timeout(self.patience_s):
            while not stored.is_set():
                if time.monotonic() > moves_s:
                    moves_s = time.monotonic() + MOVES_AFTER_S
                    self.moves()
                with contextlib.suppress(*LOST):  # a lost connection comes again
                    await self._client.publish(self._offer(subjects.EVENT), orjson.dumps(encode_event(event)))
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(self.again_s):
                        await stored.wait()
        return event

    async def beat(self, *, asks: bool = False) -> None:
        """One sign of life. `asks`: the brain shall answer, which is counted in `answered`."""
        beat = Beat(
            node=self.name,
            session=self.session,
            boot="b",
            mono_s=time.monotonic(),
            version=self.version,
            spooled=0,
            dropped=0,
            wall_s=time.time() + self.ahead_s,
            asks=asks,
        )
        await self._client.publish(self._offer(subjects.BEAT), orjson.dumps(encode_beat(beat)))

    def _offer(self, what: str) -> str:
        return subjects.offer(self._cell, self.name, what)

    async def _on_stored(self, message: Msg) -> None:
        entries = decode_acknowledgement(orjson.loads(message.data))
        self.answered += not entries
        for event, _ in entries:
            if event in self._stored:
                self._stored[event].set()

    async def _hear(self, message: Msg) -> None:
        self.heard_at.append(time.perf_counter())
        if self.unreachable:
            return
        request = requests.unpack(message.data)
        assert request is not None
        reference, body = request
        raw = orjson.loads(body)
        answer, why = Answer.ACCEPTED, ""
        if raw != {"hello": True}:
            import base64

            payload = raw["payload"].encode()
            self._key.verify(payload, base64.b64decode(raw["sig"]))
            command = decode_command(payload)
            if command.session != self.session:
                answer, why = Answer.REFUSED, "another session"
            elif command.id in [one.id for one in self.commands]:
                answer = Answer.KNOWN
            else:
                assert command.not_after_s > time.monotonic()
                if command.action == LOOK:
                    result = {"command": command.id, "outcome": "ok", "why": "looked"}
                    await self.event("command.result", **result)
                else:
                    self.commands.append(command)
                    answer = self.answer
        reply = Reply(answer=answer, why=why, session=self.session, boot="b", mono_s=time.monotonic())
        await self._client.publish(
            self._offer(subjects.ANSWER), requests.pack(reference, orjson.dumps(encode_reply(reply)))
        )


class Lab:
    """A brain that can be stopped and started on the same folder."""

    def __init__(self, folder: Path, more: dict[str, Any]) -> None:
        self.folder = folder
        self.port = free_port()
        self.config = config.parse(
            {
                "data_dir": str(folder / "brain"),
                "nats": {"embedded": {"port": self.port}},
                "console": {"port": 0} | people.ANN,
                "log": {"max_bytes": 256 * 1024**2},
                "lease_ttl_s": 5,
                "unreachable_after_s": 600,  # nodes of most tests never beat
            }
            | more,
            "test",
            folder,
        )
        self.ann = people.token_file(self.config.data_dir)
        self.running: app.Running | None = None
        self._stop = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self._stack = contextlib.AsyncExitStack()
        self._session: aiohttp.ClientSession | None = None

    async def start(self, *, leads: bool = True) -> None:
        """Until it leads and has its rules; a standby (not `leads`): until it answers. Or until it is stopped before that."""
        self._stop = asyncio.Event()
        ready: asyncio.Future[app.Running] = asyncio.get_running_loop().create_future()
        self._task = asyncio.create_task(
            app.run(self.config, self._stop, ready.set_result, build_pack=built_packs.build)
        )
        await asyncio.wait((ready, self._task), return_when=asyncio.FIRST_COMPLETED)
        if self._task.done():
            self._task.result()
            assert self._stop.is_set(), "it ends only when it is asked to"
            return
        self.running = ready.result()
        self._session = await self._stack.enter_async_context(
            aiohttp.ClientSession(self.running.console_url, headers=people.bearer(self.ann))
        )
        if leads:
            await self.until(lambda status: status["leads"] and status["pack"], "it leads with rules")

    async def stop(self) -> None:
        """In order."""
        await self._stack.aclose()
        self._stack = contextlib.AsyncExitStack()
        self._stop.set()
        if self._task is not None:
            await asyncio.wait_for(self._task, 60)

    def end(self) -> None:
        """Of what outlives the brain."""

    async def credential(self, name: str) -> Path:
        """The file with the credential of a node, which is let in if it is not yet."""
        assert self.running is not None
        assert self.running.server is not None
        return self.running.server.node_seed_file(name)

    def brain_credential(self) -> Path:
        """The file with the brain's own credential."""
        assert self.running is not None
        assert self.running.server is not None
        return self.running.server.brain_seed_file

    async def node(self, name: str, *, listens: bool = True) -> Node:
        """A node with its own credentials. `listens`: it answers commands."""
        client = await self.connected(await self.credential(name))
        assert self.running is not None
        node = Node(name, client, self.running.signer.key.verify_key, self.config.cell)
        await node.listen(commands=listens)
        return node

    async def agent(self, name: str) -> Node:
        """A node on the connection that the agent has: it leaves a server that hangs or is cut off."""
        node, config = await self.node(name), self.config.nats
        ca = config.ca_file.read_text() if config.ca_file else ""
        assert self.running is not None
        connection = node_connection(
            self.running.nats_url.split(","), name, seed_file=str(await self.credential(name)), ca=lambda: ca
        )
        node.moves = connection.elsewhere
        task = asyncio.create_task(connection.serve(node.serve))
        self._stack.push_async_callback(end, task)
        return node

    async def brain_client(self) -> Client:
        """A connection with the brain's own credentials."""
        return await self.connected(self.brain_credential())

    async def connected(self, credential: Path) -> Client:
        """A connection that is kept as long as the brain."""
        assert self.running is not None
        servers = self.running.nats_url.split(",")
        ca_file = self.config.nats.ca_file
        tls = TlsContexts(servers, "nats.ca_file").of(ca_file.read_text() if ca_file else "")
        client = await nats.connect(
            servers,
            tls=tls,
            error_cb=_quiet,
            max_reconnect_attempts=-1,
            ping_interval=2,  # a server that hangs is left, as the agent leaves it
            **login(credential),
        )
        self._stack.push_async_callback(client.close)
        return client

    async def get(self, path: str) -> Any:
        """JSON of the API."""
        assert self._session is not None
        async with self._session.get(path) as answer:
            return await answer.json()

    def fetch(self, path: str) -> contextlib.AbstractAsyncContextManager[aiohttp.ClientResponse]:
        """Anything of the API."""
        assert self._session is not None
        return self._session.get(path)

    async def say(self, verb: str, **args: Any) -> tuple[int, Any]:
        """A word of ann's; status and answer."""
        assert self._session is not None
        body = {"verb": verb, "args": args}
        async with self._session.post("/api/v1/command", json=body) as answer:
            return answer.status, await answer.json()

    async def incidents(self, cause: str = "") -> list[Any]:
        """All incidents."""
        found = (await self.get("/api/v1/incidents?all=1"))["incidents"]
        return [one for one in found if not cause or one["cause"] == cause]

    async def until(
        self, look: Callable[[Any], Any], what: str, path: str = "/api/v1/status", within_s: float = 60
    ) -> Any:
        """The answer of a path when `look` says so."""
        deadline = time.monotonic() + within_s
        while True:
            found = await self.get(path)
            if look(found):
                return found
            assert time.monotonic() < deadline, f"not within {within_s} s: {what}\n{found}"
            await asyncio.sleep(0.03)


@contextlib.asynccontextmanager
async def lab(
    folder: Path, make: Callable[[Path, dict[str, Any]], Lab] = Lab, **more: Any
) -> AsyncIterator[Lab]:
    """A running brain; `more` goes into its configuration."""
    whole = make(folder, more)
    try:
        await whole.start()
        yield whole
    finally:
        await whole.stop()
        whole.end()


async def _quiet(_: Exception) -> None:
    return
