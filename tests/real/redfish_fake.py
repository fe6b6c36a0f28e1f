"""A BMC that speaks Redfish over TLS, and misbehaves on request: what sushy-emulator cannot do.

async with RedfishFake(tls) as bmc:
    bmc.lies = True                      # says 204 and does nothing
    ...
    assert bmc.asked == ["ForceOff"]
"""

import asyncio
import base64
import ssl
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any

from aiohttp import web

from tests.real.redfish_events import EVENTS, STREAM, RedfishEvents
from tests.real.redfish_resources import SYSTEM, error

USER, PASSWORD = "admin", "secret"
ALL = ("On", "ForceOff", "GracefulShutdown", "GracefulRestart", "ForceRestart", "Nmi", "PowerCycle")
_OPEN = ("/redfish/v1", "/redfish/v1/")  # without a password (DSP0266)


class RedfishFake:
    """One BMC of one node."""

    def __init__(self, tls: ssl.SSLContext | None) -> None:
        self._tls = tls
        self._off_until: float | None = None  # of a power cycle
        self._runner: web.AppRunner | None = None
        self.url = ""
        self.power = "On"
        self.allowed: tuple[str, ...] = ALL
        self.by_action_info = False  # the allowable values stand in a resource of their own
        self.sessions_offered = True
        self.session_answer = 201
        self.password = PASSWORD
        self.absolute_urls = False  # of the session and the action: under a name that nobody knows
        self.lies = False
        self.os_hangs = False  # GracefulShutdown is accepted and never comes to pass
        self.settle_s = 0.0  # from "accepted" to done
        self.cycle_off_s = 0.15  # and until it was read once, if that takes longer; negative: never off
        self._read_off = True
        self.reset_answer = 204
        self.answers_reset = asyncio.Event()  # cleared: the answer does not come, but the reset is done
        self.answers_reset.set()
        self.answers = asyncio.Event()  # cleared: no answer at all
        self.answers.set()
        self.busy = 0  # so many readings are answered with 503
        self.busy_after = 0  # so many after a reset
        self.hold_reading = 0  # the reading of the system with this number waits for `release`; 0: none
        self.release = asyncio.Event()
        self.samples = 0
        self.drips = False  # the answer comes byte by byte
        self.last_reset: str | None = None
        self.extra: dict[str, Any] = {}  # path -> resource
        self.systems = [SYSTEM]
        self.events = RedfishEvents()  # what it tells unasked
        self.asked: list[str] = []  # reset types that came in
        self.asked_while: list[str] = []  # and the power state at that moment
        self.logins = 0  # attempts, right or wrong, by session or basic
        self.open_sessions: set[str] = set()
        self.log: list[str] = []  # method and path of every request

    async def __aenter__(self) -> "RedfishFake":
        app = web.Application(middlewares=[self._front])
        app.router.add_route("*", "/{path:.*}", self._serve)
        self._runner = web.AppRunner(app, shutdown_timeout=0.1)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", 0, ssl_context=self._tls)
        await site.start()
        port = self._runner.addresses[0][1]
        self.url = f"http{'s' if self._tls else ''}://127.0.0.1:{port}"
        return self

    async def __aexit__(self, *_: object) -> None:
        self.answers.set()
        self.answers_reset.set()
        self.release.set()
        self.events.close()
        await self.gone()

    async def gone(self) -> None:
        """Nobody listens any more."""
        if self._runner is not None:
            await self._runner.cleanup()
            self._runner = None

    @web.middleware
    async def _front(
        self, request: web.Request, handler: Callable[[web.Request], Awaitable[web.StreamResponse]]
    ) -> web.StreamResponse:
        self.log.append(f"{request.method} {request.path}")
        await self.answers.wait()
        login = request.method == "POST" and request.path == "/redfish/v1/SessionService/Sessions"
        if request.path in _OPEN or login:
            return await handler(request)
        if token := request.headers.get("X-Auth-Token"):
            good = token in self.open_sessions
        else:
            self.logins += "Authorization" in request.headers
            want = base64.b64encode(f"{USER}:{self.password}".encode()).decode()
            good = request.headers.get("Authorization") == f"Basic {want}"
        return await handler(request) if good else error(401, "no valid session or password")

    async def _serve(self, request: web.Request) -> web.StreamResponse:
        path = request.path.rstrip("/")
        if request.method == "POST" and path == "/redfish/v1/SessionService/Sessions":
            return await self._log_in(request)
        if request.method == "DELETE":
            self.open_sessions.discard(path.rsplit("/", 1)[-1])
            return web.Response(status=204)
        if request.method == "POST":
            return await self._reset((await request.json())["ResetType"])
        self.samples += path == SYSTEM
        if path == SYSTEM and self.samples == self.hold_reading:
            await self.release.wait()
        if self.busy > 0 and path == SYSTEM:
            self.busy -= 1
            return error(503, "the BMC is starting")
        if path == STREAM and self.events.offered:
            return await self.events.stream(request)
        found = self._resource(path)
        if found is None:
            return error(404, "no such resource")
        return await self._drip(request) if self.drips and path == SYSTEM else web.json_response(found)

    async def _log_in(self, request: web.Request) -> web.Response:
        if self.session_answer != 201:
            return error(self.session_answer, "no sessions today")
        self.logins += 1
        body = await request.json()
        if (body["UserName"], body["Password"]) != (USER, self.password):
            return error(401, "wrong password")
        token = f"s{self.logins}"
        self.open_sessions.add(token)
        where = self._absolute(f"/redfish/v1/SessionService/Sessions/{token}")
        return web.json_response(
            {"Id": token}, status=201, headers={"X-Auth-Token": token, "Location": where}
        )

    async def _reset(self, kind: str) -> web.Response:
        self.asked.append(kind)
        self.asked_while.append(self.power)
        if self.reset_answer < 300 and not self.lies:
            asyncio.get_running_loop().call_later(self.settle_s, self._do, kind)
        await self.answers_reset.wait()
        if self.reset_answer >= 300:
            return error(self.reset_answer, "the node is in the middle of its self-test")
        return web.Response(status=self.reset_answer)

    def _do(self, kind: str) -> None:
        self.busy = self.busy_after
        if kind == "On":
            self.power = "On"
        elif kind == "ForceOff" or (kind == "GracefulShutdown" and not self.os_hangs):
            self.power = "Off"
        elif kind == "PowerCycle":
            self._off_until = time.monotonic() + self.cycle_off_s
            self._read_off = self.cycle_off_s < 0
        if kind in ("PowerCycle", "ForceRestart", "GracefulRestart") and self.last_reset:
            self.last_reset += "+"

    def _resource(self, path: str) -> dict[str, Any] | None:
        if path == "/redfish/v1":
            root: dict[str, Any] = {"Id": "Root", "Systems": {"@odata.id": "/redfish/v1/Systems"}}
            if self.sessions_offered:
                root["Links"] = {"Sessions": {"@odata.id": "/redfish/v1/SessionService/Sessions"}}
            if self.events.offered:
                root["EventService"] = {"@odata.id": EVENTS}
            return root
        if path == EVENTS and self.events.offered:
            return self.events.service()
        if path == "/redfish/v1/Systems":
            return {"Members": [{"@odata.id": one} for one in self.systems]}
        if path == "/redfish/v1/Systems/1/ResetActionInfo":
            return {
                "Id": "ResetActionInfo",
                "Name": "Reset",
                "Parameters": [{"Name": "ResetType", "AllowableValues": list(self.allowed)}],
            }
        if path == SYSTEM:
            return self._system()
        return self.extra.get(path)

    def _system(self) -> dict[str, Any]:
        power = self.power
        if self._off_until is not None:
            power = "Off" if time.monotonic() < self._off_until or not self._read_off else "On"
            self._read_off = True
        reset: dict[str, Any] = {"target": self._absolute(f"{SYSTEM}/Actions/ComputerSystem.Reset")}
        if self.by_action_info:
            reset["@Redfish.ActionInfo"] = f"{SYSTEM}/ResetActionInfo"
        else:
            reset["ResetType@Redfish.AllowableValues"] = list(self.allowed)
        found = {
            "Id": "1",
            "Name": "node",
            "PowerState": power,
            "Status": {"State": "Enabled", "Health": "OK"},
            "Actions": {"#ComputerSystem.Reset": reset},
            **self.extra.get(SYSTEM, {}),
        }
        return found | ({"LastResetTime": self.last_reset} if self.last_reset else {})

    def _absolute(self, path: str) -> str:
        return f"https://bmc.invalid{path}" if self.absolute_urls else path

    async def _drip(self, request: web.Request) -> web.StreamResponse:
        answer = web.StreamResponse(headers={"Content-Type": "application/json"})
        await answer.prepare(request)
        with suppress(ConnectionResetError):  # nobody reads on
            while True:
                await answer.write(b" ")
                await asyncio.sleep(0.05)
        return answer
