"""The HTTP server of a brain: its API (brain/console/api), and what stands beside it."""

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator
from http import HTTPStatus
from typing import cast

from aiohttp import hdrs, web

from agent.contract.errors import ConfigError
from agent.shared.tasks import Tasks
from brain.cell.authority import Authority
from brain.cell.registry import CellRegistry
from brain.console import (
    alert_routes,
    diagnosis,
    drill,
    earlier_paths,
    evidence,
    evidence_files,
    health_routes,
    history_routes,
    join_routes,
    log_routes,
    notes_file,
    openapi_routes,
    operator_commands,
    session_routes,
    status_routes,
    token_routes,
    watching,
    web_routes,
    why,
)
from brain.console.access import connections, listening, malformed
from brain.console.access.credentials import Credentials
from brain.console.access.door import Door, add_headers
from brain.console.access.links import Links
from brain.console.access.route import PERSON, Handler, Route, add
from brain.console.access.sessions import Sessions
from brain.console.access.tls import Certificate
from brain.console.access.two_persons import Proposals
from brain.console.access.users import Users
from brain.console.api.problems import answer_of, of_the_server
from brain.console.api.verbs import check_words
from brain.console.brain_view import BrainView
from brain.console.chat.routes import ChatRoutes
from brain.console.counters import routes as counter_routes
from brain.console.crowded import Crowded
from brain.console.evidence import Bundles
from brain.console.evidence_files import Unpacker
from brain.console.fleet import routes as fleet_routes
from brain.console.needs import routes as needs_routes
from brain.console.outcomes import routes as outcome_routes
from brain.console.pack import routes as pack_routes
from brain.console.reading import Reading
from brain.console.reports import routes as report_routes
from brain.console.speech import in_language
from brain.outgoing import outgoing

MAX_BODY = 65_536
# Of a browser that has come in by a token; with an identity provider: console.oidc.session_s
SESSION_S = 8 * 3600.0
# Of a request's first line: all that the API's document allows in one query, each character as twelve (%F0%9F%98%8D).
MAX_LINE = 65_536


class Console:
    """The HTTP server of one brain."""

    def __init__(self, brain: BrainView) -> None:
        """ConfigError: its certificate cannot be used, or a word of two_persons is none."""
        self._brain = brain
        self._config = config = brain.config.console
        check_words(config.two_persons)
        self._users = Users(brain.config, brain.note)
        self._credentials = Credentials(
            config, brain.config.data_dir, self._users, self._now, lambda: brain.live.state.void_tokens
        )
        self._proposals = Proposals()
        self._sessions = Sessions(config.oidc.session_s if config.oidc else SESSION_S, self._users.groups)
        self._links = Links()
        self._background = Tasks()
        self._door = Door(config, self._credentials, self._sessions, clock=time.monotonic, note=brain.note)
        self._chat = ChatRoutes(brain, self._door, self._proposals, self._users, self._background)
        self._reading = Reading(lambda: brain.reader, self._door.payer, lambda: brain.disk.hangs)
        self._bundles = Bundles(brain, self._door, self._reading)
        self._unpacker = Unpacker(brain.config.data_dir)
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
            *status_routes.routes(brain, self._reading, self._proposals),
            *history_routes.routes(brain, self._reading),
            *why.routes(brain, self._reading),
            *notes_file.routes(brain, self._door, self._reading),
            *fleet_routes.routes(brain, self._reading),
            *counter_routes.routes(brain),
            *needs_routes.routes(brain, self._reading),
            *pack_routes.routes(brain, self._reading),
            *report_routes.routes(brain, self._reading, self._door),
            *outcome_routes.routes(brain, self._reading),
            *watching.routes(brain, self._door, self._reading),
            *operator_commands.routes(brain, self._door, self._proposals),
            *token_routes.routes(brain, self._door, self._credentials, self._sessions, self._proposals),
            *self._login(),
            *session_routes.routes(brain, self._door, self._sessions, self._links),
            *diagnosis.routes(brain, self._door),
            *evidence.routes(self._bundles),
            *evidence_files.routes(self._bundles, self._unpacker),
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
            *self._chat.routes(brain.config.chat),
            *alert_routes.routes(brain, self._door),
            *openapi_routes.routes(),
            *earlier_paths.routes(),
            *web_routes.routes(),
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
            self._brain,
            self._door,
            provider(config, self._users.groups, outgoing(self._brain.config.outgoing)),
            self._sessions,
        )

    def app(self) -> web.Application:
        """Returns the application with all routes."""
        app = web.Application(
            client_max_size=MAX_BODY, middlewares=[self._errors, self._door.guard, self._known]
        )
        add(app, self.routes())
        app.on_response_prepare.extend((of_the_server, add_headers))
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
        self._credentials.look()
        self._runner = web.AppRunner(
            self.app(),
            access_log=None,
            logger=malformed.logger(),
            shutdown_timeout=1.0,
            keepalive_timeout=connections.IDLE_S,
            max_line_size=MAX_LINE,
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
        self._connections = connections.Connections(http, self._config, Crowded().tell)
        await self._accepting.enter_async_context(self._background)
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
        self._unpacker.close()

    @web.middleware
    async def _known(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        if self._connections is not None and (who := request.get(PERSON)) is not None and who.how:
            self._connections.known(request)
        return await handler(request)

    @web.middleware
    async def _errors(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        if self._connections is not None:
            self._connections.heard(request)
        with in_language(request.headers.get(hdrs.ACCEPT_LANGUAGE, "")):
            try:
                return await handler(request)
            except web.HTTPException as error:
                if request.path == join_routes.PATH:
                    return join_routes.refused(error)
                page = web_routes.missing(request) if error.status == HTTPStatus.NOT_FOUND else None
                return page or answer_of(error)
