"""The HTTP API. Answers and errors are JSON; an error is `{"error": "<what and what to do>"}`."""

import asyncio
import hmac
import logging
import uuid
from collections.abc import Awaitable, Callable
from typing import Any

import orjson
from aiohttp import web

from agent.contract.errors import ConfigError, Unreachable
from agent.contract.messages import clip
from brain.config import ConsoleConfig
from brain.console import drill, evidence, shapes
from brain.console.desk import Desk
from brain.console.explain import explain
from brain.console.verbs import Wrong, checked
from brain.core.effects import Note
from brain.core.inputs import Said

_log = logging.getLogger(__name__)

MAX_BODY = 65_536
HANDLED_S = 5.0  # how long an answer to `say` waits for what comes of it
PING_S = 15.0
Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


class Console:
    """The server of one brain."""

    def __init__(self, desk: Desk, config: ConsoleConfig, token: str) -> None:
        """`token`: what a client must show; empty: nothing (loopback only)."""
        self._desk = desk
        self._config = config
        self._token = token
        self._runner: web.AppRunner | None = None

    def app(self) -> web.Application:
        """The application, with every route."""
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
                web.post("/api/say", self._say),
                *evidence.routes(self._desk),
                *(drill.routes(self._desk) if self._desk.config.drill else ()),
            ]
        )
        return app

    async def start(self) -> str:
        """Listens; the URL. ConfigError when the port is taken."""
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
        desk, live = self._desk, self._desk.live
        state = live.state
        nodes = state.nodes.values()
        return _json(
            {
                "brain": desk.name,
                "cell": desk.config.cell,
                "leads": live.leads(),
                "leader": state.leader,
                "epoch": state.epoch,
                "connected": desk.connected(),
                "caught_up": live.caught_up,
                "stopped": live.stopped,
                "seq": live.seq,
                "log_time": shapes.iso(state.now),
                "started_at": shapes.iso(desk.started_at),
                "pack": state.pack.version if state.pack else "",
                "rules": len(state.pack.rules) if state.pack else 0,
                "runbooks": len(state.pack.runbooks) if state.pack else 0,
                "nodes": len(nodes),
                "nodes_silent": sum(not node.alive for node in nodes),
                "incidents_open": len(desk.readmodel.incidents(open_only=True, limit=100_000)),
                "inputs": live.inputs,
                "malformed": state.malformed,
                "busy_s": round(live.busy_s, 3),
                "holds": shapes.holds(state),
                "modes": shapes.modes(state),
            }
        )

    async def _incidents(self, request: web.Request) -> web.Response:
        everything = request.query.get("all", "0") not in ("0", "", "false")
        found = self._desk.readmodel.incidents(open_only=not everything)
        return _json({"incidents": [shapes.incident(raw) for raw in found]})

    async def _incident(self, request: web.Request) -> web.Response:
        raw = self._desk.readmodel.incident(request.match_info["id"])
        if raw is None:
            raise web.HTTPNotFound(text=f"no incident {clip(request.match_info['id'], 80)!r}")
        return _json(shapes.incident(raw))

    async def _explain(self, request: web.Request) -> web.Response:
        found = explain(self._desk.readmodel, self._desk.live.state, request.match_info["id"])
        if found is None:
            raise web.HTTPNotFound(text=f"no incident, run or page {clip(request.match_info['id'], 80)!r}")
        return _json(found)

    async def _run(self, request: web.Request) -> web.Response:
        raw = self._desk.readmodel.run(request.match_info["id"])
        if raw is None:
            raise web.HTTPNotFound(text=f"no run {clip(request.match_info['id'], 80)!r}")
        return _json(shapes.run(raw))

    async def _nodes(self, _: web.Request) -> web.Response:
        state = self._desk.live.state
        places = state.pack.places if state.pack else {}
        beats = self._desk.heard()
        found = []
        for name in sorted({*state.nodes, *beats}):
            node, heard, place = state.nodes.get(name), beats.get(name), places.get(name)
            found.append(
                {
                    "name": name,
                    "alive": node.alive if node else heard is not None,
                    "boot": node.boot if node else "",
                    "beat_age_s": round(heard.age_s, 3) if heard else None,
                    "version": heard.version if heard else "",
                    "spooled": heard.spooled if heard else None,
                    "dropped": heard.dropped if heard else None,
                    "leaf": place.leaf if place else "",
                    "rack": place.rack if place else "",
                    "pod": place.pod if place else "",
                }
            )
        return _json({"nodes": found})

    async def _watch(self, request: web.Request) -> web.StreamResponse:
        """Server-sent events: `note` for each note from now on (and the last `?last=N`)."""
        response = web.StreamResponse(
            headers={"Content-Type": "text/event-stream", "Cache-Control": "no-store"}
        )
        last = min(1000, _number(request.query.get("last", "0"), "last"))
        with self._desk.feed.watch() as queue:
            await response.prepare(request)
            for raw in self._desk.readmodel.newest_notes(last) if last else ():
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

    async def _say(self, request: web.Request) -> web.Response:
        """A person's word: on the log, then what came of it."""
        try:
            # Not request.json(): that lets lone surrogates in, which no UTF-8 log can hold.
            body = orjson.loads(await request.read())
            verb, args, who = checked(body)
        except (orjson.JSONDecodeError, Wrong) as error:
            raise web.HTTPBadRequest(text=str(error)) from error
        word = Said(id=f"s:{uuid.uuid4().hex}", who=who, verb=verb, args=args)
        try:
            seq = await self._desk.say(word)
        except Unreachable as error:
            raise web.HTTPServiceUnavailable(text=str(error)) from error
        handled = await self._desk.live.reached(seq, HANDLED_S)
        notes = self._desk.readmodel.notes_caused_by(word.id) if handled else []
        refused = next((note["text"] for note in notes if note["kind"] == "said.refused"), "")
        _log.info("%s says %s %s", who, verb, args)
        return _json(
            {
                "id": word.id,
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
