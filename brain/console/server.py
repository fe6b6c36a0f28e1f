"""The HTTP API. Answers and errors are JSON; an error is `{"error": "<what and what to do>"}`."""

import asyncio
import contextlib
import hmac
import logging
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import orjson
from aiohttp import web

from agent.contract.errors import ConfigError, Unreachable
from agent.contract.messages import clip
from brain.config import ConsoleConfig
from brain.console import drill, evidence, shapes
from brain.console.brain_view import BrainView
from brain.console.explain import explain
from brain.console.verbs import InvalidCommand, check_names, parse
from brain.core.effects import Note
from brain.core.inputs import OperatorCommand

_log = logging.getLogger(__name__)

MAX_BODY = 65_536
HANDLED_S = 5.0  # how long the answer to an operator command waits until the engine has handled it
PING_S = 15.0
Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


class Console:
    """The HTTP server of one brain."""

    def __init__(self, brain: BrainView, config: ConsoleConfig, token: str) -> None:
        """`token`: the bearer token that clients need; empty: none (loopback only)."""
        self._brain = brain
        self._config = config
        self._token = token
        self._runner: web.AppRunner | None = None

    def app(self) -> web.Application:
        """Returns the application with all routes."""
        app = web.Application(client_max_size=MAX_BODY, middlewares=[self._errors, self._allowed])
        app.add_routes(
            [
                web.get("/api/status", self._status),
                web.get("/api/incidents", self._incidents),
                web.get("/api/incidents/{id}", self._incident),
                web.get("/api/explain/{id}", self._explain),
                web.get("/api/runs/{id}", self._run),
                web.get("/api/nodes", self._nodes),
                web.get("/api/watch", self._watch),
                web.post("/api/command", self._command),
                *evidence.routes(self._brain),
                *(drill.routes(self._brain) if self._brain.config.drill else ()),
            ]
        )
        return app

    @contextlib.asynccontextmanager
    async def serving(self) -> AsyncIterator[str]:
        """Serves while the context is open; its value is the URL."""
        url = await self.start()
        try:
            yield url
        finally:
            await self.stop()

    async def start(self) -> str:
        """Starts to listen and returns the URL. ConfigError when the port is taken."""
        self._runner = web.AppRunner(self.app(), access_log=None, shutdown_timeout=1.0)
        await self._runner.setup()
        site = web.TCPSite(self._runner, self._config.host, self._config.port)
        try:
            await site.start()
        except OSError as error:
            await self.stop()
            raise ConfigError(
                f"console.port {self._config.port} of {self._config.host}: {error.strerror}: set another port"
            ) from error
        host, port = self._runner.addresses[0][:2]
        return f"http://{f'[{host}]' if ':' in host else host}:{port}"

    async def stop(self) -> None:
        """Ends it, and the watchers' connections."""
        if self._runner is not None:
            await self._runner.cleanup()
            self._runner = None

    @web.middleware
    async def _errors(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        try:
            return await handler(request)
        except web.HTTPException as error:
            return _json({"error": error.text or error.reason}, error.status)

    @web.middleware
    async def _allowed(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        if self._token:
            given = request.headers.get("Authorization", "").removeprefix("Bearer ")
            if not hmac.compare_digest(given.encode(), self._token.encode()):
                raise web.HTTPUnauthorized(
                    text="a bearer token is needed: --token-file or GPUWARD_TOKEN_FILE"
                )
        if request.method == "POST" and request.content_type != "application/json":
            # A web page elsewhere can make a browser send forms to us, but not this type.
            raise web.HTTPUnsupportedMediaType(text="the body must be application/json")
        return await handler(request)

    async def _status(self, _: web.Request) -> web.Response:
        brain, live = self._brain, self._brain.live
        state = live.state
        nodes = state.nodes.values()
        unreachable = sum(not node.alive for node in nodes)
        return _json(
            {
                "brain": brain.name,
                "cell": brain.config.cell,
                "leads": live.leads(),
                "leader": state.leader,
                "epoch": state.epoch,
                "connected": brain.connected(),
                "caught_up": live.caught_up,
                "stopped": live.stopped,
                "seq": live.seq,
                "log_time": shapes.iso(state.now),
                "started_at": shapes.iso(brain.started_at),
                "pack": state.pack.version if state.pack else "",
                "rules": len(state.pack.rules) if state.pack else 0,
                "runbooks": len(state.pack.runbooks) if state.pack else 0,
                "nodes": len(nodes),
                "nodes_unreachable": unreachable,
                "nodes_silent": unreachable,  # its name in version 0.1, kept until 0.3
                "incidents_open": len(brain.readmodel.incidents(open_only=True, limit=100_000)),
                "inputs": live.inputs,
                "malformed": state.malformed,
                "busy_s": round(live.busy_s, 3),
                "holds": shapes.holds(state),
                "modes": shapes.modes(state),
            }
        )

    async def _incidents(self, request: web.Request) -> web.Response:
        everything = request.query.get("all", "0") not in ("0", "", "false")
        found = self._brain.readmodel.incidents(open_only=not everything)
        return _json({"incidents": [shapes.incident(raw) for raw in found]})

    async def _incident(self, request: web.Request) -> web.Response:
        raw = self._brain.readmodel.incident(request.match_info["id"])
        if raw is None:
            raise web.HTTPNotFound(text=f"no incident {clip(request.match_info['id'], 80)!r}")
        return _json(shapes.incident(raw))

    async def _explain(self, request: web.Request) -> web.Response:
        found = explain(self._brain.readmodel, self._brain.live.state, request.match_info["id"])
        if found is None:
            raise web.HTTPNotFound(text=f"no incident, run or page {clip(request.match_info['id'], 80)!r}")
        return _json(found)

    async def _run(self, request: web.Request) -> web.Response:
        raw = self._brain.readmodel.run(request.match_info["id"])
        if raw is None:
            raise web.HTTPNotFound(text=f"no run {clip(request.match_info['id'], 80)!r}")
        return _json(shapes.run(raw))

    async def _nodes(self, _: web.Request) -> web.Response:
        state = self._brain.live.state
        places = state.pack.places if state.pack else {}
        beats = self._brain.newest_beats()
        found = []
        for name in sorted({*state.nodes, *beats}):
            node, beat, place = state.nodes.get(name), beats.get(name), places.get(name)
            found.append(
                {
                    "name": name,
                    "alive": node.alive if node else beat is not None,
                    "boot": node.boot if node else "",
                    "beat_age_s": round(beat.age_s, 3) if beat else None,
                    "version": beat.version if beat else "",
                    "spooled": beat.spooled if beat else None,
                    "dropped": beat.dropped if beat else None,
                    "chassis": place.chassis if place else "",
                    "leaf": place.leaf if place else "",
                    "rack": place.rack if place else "",
                    "pod": place.pod if place else "",
                }
            )
        return _json({"nodes": found})

    async def _watch(self, request: web.Request) -> web.StreamResponse:
        """Streams server-sent events: a `note` for each note from now on, after the last `?last=N` ones."""
        response = web.StreamResponse(
            headers={"Content-Type": "text/event-stream", "Cache-Control": "no-store"}
        )
        last = min(1000, _number(request.query.get("last", "0"), "last"))
        with self._brain.feed.watch() as queue:
            await response.prepare(request)
            for raw in self._brain.readmodel.newest_notes(last) if last else ():
                await response.write(_event(shapes.note(raw)))
            while True:
                try:
                    async with asyncio.timeout(PING_S):
                        note = await queue.get()
                except TimeoutError:
                    await response.write(b": still here\n\n")
                    continue
                except ConnectionError:
                    break
                if note is None:
                    await response.write(b"event: lost\ndata: {}\n\n")
                    break
                await response.write(_event(shapes.note(_raw(note))))
        return response

    async def _command(self, request: web.Request) -> web.Response:
        """Puts an operator command on the log, and answers with the notes that it caused."""
        try:
            # Not request.json(), which accepts lone surrogates: a log in UTF-8 cannot hold them.
            body = orjson.loads(await request.read())
            verb, args, who = parse(body)
            state = self._brain.live.state
            if self._brain.live.caught_up and state.pack is not None:
                check_names(verb, args, state.pack, {*state.nodes, *self._brain.newest_beats()})
        except (orjson.JSONDecodeError, InvalidCommand) as error:
            raise web.HTTPBadRequest(text=str(error)) from error
        command = OperatorCommand(id=f"s:{uuid.uuid4().hex}", who=who, verb=verb, args=args)
        try:
            seq = await self._brain.submit(command)
        except Unreachable as error:
            raise web.HTTPServiceUnavailable(text=str(error)) from error
        handled = await self._brain.live.reached(seq, HANDLED_S)
        notes = self._brain.readmodel.notes_caused_by(command.id) if handled else []
        refused = next((note["text"] for note in notes if note["kind"] == "operator.refused"), "")
        _log.info("command of %s: %s %s", who, verb, args)
        return _json(
            {
                "id": command.id,
                "seq": seq,
                "handled": handled,
                "refused": refused,
                "notes": [shapes.note(note) for note in notes],
            },
            409 if refused else 200,
        )


def _json(value: Any, status: int = 200) -> web.Response:
    return web.Response(body=orjson.dumps(value), status=status, content_type="application/json")


def _event(note: dict[str, Any]) -> bytes:
    return b"event: note\nid: %s\ndata: %s\n\n" % (str(note["id"]).encode(), orjson.dumps(note))


def _raw(note: Note) -> dict[str, Any]:
    return {name: getattr(note, name) for name in Note.__slots__} | {"data": dict(note.data)}


def _number(text: str, what: str) -> int:
    if not text.isdecimal() or len(text) > 9:
        raise web.HTTPBadRequest(text=f"{what} must be a whole number")
    return int(text)
