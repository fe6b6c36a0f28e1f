"""The HTTP API. Answers and errors are JSON; an error is `{"error": "<what and what to do>"}`."""

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator
from typing import cast

from aiohttp import hdrs, web

from agent import __version__
from agent.contract.errors import ConfigError
from brain.cell.authority import Authority
from brain.cell.registry import CellRegistry
from brain.console import (
    drill,
    evidence,
    health_routes,
    history_routes,
    join_routes,
    log_routes,
    operator_commands,
    shapes,
    token_routes,
)
from brain.console.access import connections, listening, malformed
from brain.console.access.credentials import Credentials
from brain.console.access.door import Door, add_headers
from brain.console.access.route import PERSON, Handler, Route, add, get
from brain.console.access.sessions import Sessions
from brain.console.access.tls import Certificate
from brain.console.access.two_persons import Proposals
from brain.console.access.users import Users
from brain.console.answers import json_answer
from brain.console.brain_view import BrainView
from brain.console.reading import Reading
from brain.console.verbs import check_words
from brain.core.pack.rulebook import MATCHER
from brain.core.state import IncidentState

MAX_BODY = 65_536
_OVER = (IncidentState.CLOSED, IncidentState.EXPLAINED)
_NODES_AT_ONCE = 200


class Console:
    """The HTTP server of one brain."""

    def __init__(self, brain: BrainView) -> None:
        """ConfigError: its certificate cannot be used, or a word of two_persons is none."""
        self._brain = brain
        self._config = config = brain.config.console
        check_words(config.two_persons)
        self._users = Users(brain.config, brain.note)
        self._credentials = Credentials(config, brain.config.data_dir, self._users, self._now)
        self._proposals = Proposals()
        self._sessions = Sessions(config.oidc.session_s if config.oidc else 0, self._users.groups)
        self._door = Door(config, self._credentials, self._sessions, clock=time.monotonic, note=brain.note)
        self._reading = Reading(lambda: brain.reader, self._door.payer)
        self._certificate: Certificate | None = None
        if config.tls_cert_file is not None and config.tls_key_file is not None:
            self._certificate = Certificate(config.tls_cert_file, config.tls_key_file)
        self._runner: web.AppRunner | None = None
        self._connections: connections.Connections | None = None
        self._accepting = contextlib.AsyncExitStack()

    def routes(self) -> list[Route]:
        """Returns all routes: what is not here is refused."""
        brain = self._brain
        return [
            get("/api/status", self._status),
            get("/api/nodes", self._nodes),
            *history_routes.routes(brain, self._door, self._reading),
            *operator_commands.routes(brain, self._door, self._proposals),
            *token_routes.routes(brain, self._door, self._credentials, self._sessions, self._proposals),
            *self._login(),
            *evidence.routes(brain, self._door, self._reading),
            *health_routes.routes(brain),
            *log_routes.routes(brain),
            *join_routes.routes(
                brain,
                self._door,
                CellRegistry(brain.config.registry_file, brain.config.nats.embedded.nodes),
                Authority(brain.config.cell_dir),
                self._now,
            ),
            *(drill.routes(brain, self._door) if brain.config.drill else ()),
        ]

    def _now(self) -> float:
        """What tokens are made and judged by, in seconds since 1970: this machine's clock, or the log's time where that is later.
        What has expired does so once: a clock that was set back does not make it good again (decision 48).
        """
        return max(time.time(), self._brain.live.state.now)

    def _login(self) -> list[Route]:
        config = self._config.oidc
        if config is None:
            return []
        from brain.console import login_routes  # joserfc is loaded only where people log in with it
        from brain.console.access.oidc import provider

        return login_routes.routes(
            self._brain, self._door, provider(config, self._users.groups), self._sessions
        )

    def app(self) -> web.Application:
        """Returns the application with all routes."""
        app = web.Application(
            client_max_size=MAX_BODY, middlewares=[self._errors, self._door.guard, self._known]
        )
        add(app, self.routes())
        app.on_response_prepare.append(add_headers)
        return app

    @contextlib.asynccontextmanager
    async def serving(self) -> AsyncIterator[str]:
        """Serves while the context is open; its value is the URL."""
        url = await self.start()
        reload = asyncio.ensure_future(self._certificate.watch()) if self._certificate else None
        try:
            yield url
        finally:
            if reload is not None:
                reload.cancel()
            await self.stop()

    async def start(self) -> str:
        """Starts to listen and returns the URL. ConfigError when the port is taken."""
        self._runner = web.AppRunner(
            self.app(),
            access_log=None,
            logger=malformed.logger(),
            shutdown_timeout=1.0,
            keepalive_timeout=connections.IDLE_S,
        )
        await self._runner.setup()
        http = cast("web.Server", self._runner.server)  # there is one after setup
        tls = self._certificate.context if self._certificate else None
        try:
            found = await listening.sockets(self._config.host, self._config.port)
        except OSError as error:
            await self.stop()
            raise ConfigError(
                f"console.port {self._config.port} of {self._config.host}: {error.strerror}: set another port"
            ) from error
        host, port = found[0].getsockname()[:2]
        self._connections = connections.Connections(http, self._config)
        await self._accepting.enter_async_context(listening.accepting(found, self._connections, tls))
        try:
            self._credentials.publish_local(port)
        except ConfigError:
            await self.stop()
            raise
        return f"{'https' if tls else 'http'}://{f'[{host}]' if ':' in host else host}:{port}"

    async def stop(self) -> None:
        """Ends it, and the watchers' connections."""
        self._credentials.withdraw_local()
        await self._accepting.aclose()
        if self._runner is not None:
            await self._runner.cleanup()
            self._runner = None
        self._reading.close()

    @web.middleware
    async def _known(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        if self._connections is not None and (who := request.get(PERSON)) is not None and who.how:
            self._connections.known(request)
        return await handler(request)

    @web.middleware
    async def _errors(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        if self._connections is not None:
            self._connections.heard(request)
        try:
            return await handler(request)
        except web.HTTPException as error:
            answer = json_answer({"error": error.text or error.reason}, error.status)
            for name in (hdrs.WWW_AUTHENTICATE, hdrs.RETRY_AFTER):
                if name in error.headers:
                    answer.headers[name] = error.headers[name]
            return answer

    async def _status(self, _: web.Request) -> web.Response:
        brain, live = self._brain, self._brain.live
        state = live.state
        nodes = state.nodes.values()
        unreachable = sum(not node.alive for node in nodes)
        return json_answer(
            {
                "brain": brain.name,
                "version": __version__,
                "cell": brain.config.cell,
                "config_file": str(brain.config.file or ""),
                "data_dir": str(brain.config.data_dir),
                "leads": live.leads(),
                "leader": state.leader,
                "epoch": state.epoch,
                "connected": brain.connected(),
                "caught_up": live.caught_up,
                "stopped": live.stopped,
                "troubles": [
                    {"cause": cause, "text": text, "since": shapes.iso(since)}
                    for cause, text, since in brain.troubles()
                ],
                "seq": live.seq,
                "log_time": shapes.iso(state.now),
                "started_at": shapes.iso(brain.started_at),
                "pack": state.pack.version if state.pack else "",
                "rules": len(state.pack.rules) if state.pack else 0,
                "runbooks": len(state.pack.runbooks) if state.pack else 0,
                "matcher": str(MATCHER),
                "nodes": len(nodes),
                "nodes_unreachable": unreachable,
                "nodes_silent": unreachable,  # its name in version 0.1, kept until 0.3
                "incidents_open": sum(one.state not in _OVER for one in state.incidents.values()),
                "inputs": live.inputs,
                "malformed": state.malformed,
                "busy_s": round(live.busy_s, 3),
                "holds": shapes.holds(state),
                "modes": shapes.modes(state),
                "proposals": [
                    {"who": one.who, "text": one.text} for one in self._proposals.waiting(time.monotonic())
                ],
            }
        )

    async def _nodes(self, _: web.Request) -> web.Response:
        state = self._brain.live.state
        places = state.pack.places if state.pack else {}
        beats = self._brain.newest_beats()
        found = []
        for number, name in enumerate(sorted({*state.nodes, *beats})):
            if number % _NODES_AT_ONCE == 0:
                await asyncio.sleep(0)
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
                    "clock_ahead_s": round(beat.clock_ahead_s, 3)
                    if beat and beat.clock_ahead_s is not None
                    else None,
                    "chassis": place.chassis if place else "",
                    "leaf": place.leaf if place else "",
                    "rack": place.rack if place else "",
                    "pod": place.pod if place else "",
                }
            )
        return json_answer({"nodes": found})
