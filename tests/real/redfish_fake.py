"""A BMC that speaks Redfish over TLS, and misbehaves on request: what sushy-emulator cannot do.

async with RedfishFake(tls) as bmc:
    bmc.lies = True                      # says 204 and does nothing
    ...
    assert bmc.asked == ["ForceOff"]
"""

import asyncio
import base64
import json
import ssl
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any

from aiohttp import web

USER, PASSWORD = "admin", "secret"
ALL = ("On", "ForceOff", "GracefulShutdown", "GracefulRestart", "ForceRestart", "Nmi", "PowerCycle")
_SYSTEM = "/redfish/v1/Systems/1"
EVENTS, STREAM = "/redfish/v1/EventService", "/redfish/v1/EventService/SSE"
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
        self.systems = [_SYSTEM]
        self.streams_offered = False  # an EventService with a stream of events
        self.stream_does = "well"  # or "hangs", "closes", "floods", "refuses", "leads away", "shows a page"
        self.stream_url = STREAM
        self.streams_begun = 0
        self._streams: set[web.StreamResponse] = set()
        self._end_streams = asyncio.Event()
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
        self._end_streams.set()
        await self.gone()

    async def gone(self) -> None:
        """Nobody listens any more."""
        if self._runner is not None:
            await self._runner.cleanup()
            self._runner = None

    @property
    def listeners(self) -> int:
        """How many hear its events."""
        return len(self._streams)

    async def say(self, severity: str, *, kind: str = "Alert", ends: str = "\n") -> None:
        """Sends an event to those who hear its stream (DSP0266, "Server-sent events"; DSP0268, Event)."""
        event = {
            "@odata.type": "#Event.v1_7_0.Event",
            "Id": "1",
            "Name": "Event Array",
            "Events": [
                {
                    "EventType": kind,
                    "EventId": "1",
                    "MemberId": "0",
                    "EventTimestamp": "2026-11-30T10:14:00+00:00",
                    "Severity": severity,
                    "MessageSeverity": severity,
                    "Message": "something is so",
                    "MessageId": "Platform.1.0.Something",
                    "OriginOfCondition": {"@odata.id": f"{_SYSTEM}/Memory/9"},
                }
            ],
        }
        if kind == "MetricReport":
            event = {"@odata.type": "#MetricReport.v1_4_2.MetricReport", "Id": "1", "MetricValues": []}
        lines = ["id: 1", *(f"data: {line}" for line in json.dumps(event, indent=1).splitlines()), "", ""]
        for one in list(self._streams):
            await one.write(ends.join(lines).encode())

    def hang_up(self) -> None:
        """Ends all streams."""
        self._end_streams.set()
        self._end_streams = asyncio.Event()

    async def _stream(self, request: web.Request) -> web.StreamResponse:
        self.streams_begun += 1
        if self.stream_does == "refuses":
            return _error(403, "no more streams")
        if self.stream_does == "leads away":
            return web.Response(status=302, headers={"Location": f"{self.url}/elsewhere"})
        if self.stream_does == "shows a page":
            return web.Response(text="<html>", content_type="text/html")
        if self.stream_does == "hangs":
            await self._end_streams.wait()
        answer = web.StreamResponse(
            headers={"Content-Type": "text/event-stream", "Cache-Control": "no-store"}
        )
        await answer.prepare(request)
        await answer.write(b": stream keep-alive\n\n")
        ends = self._end_streams
        self._streams.add(answer)
        try:
            while self.stream_does == "well" and not ends.is_set() and request.transport is not None:
                with suppress(TimeoutError):
                    await asyncio.wait_for(ends.wait(), 0.05)
            while self.stream_does == "floods" and not ends.is_set():
                await self.say("Critical")
                await asyncio.sleep(0)
        except ConnectionError:
            pass  # nobody reads on
        finally:
            self._streams.discard(answer)
        return answer

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
        return await handler(request) if good else _error(401, "no valid session or password")

    async def _serve(self, request: web.Request) -> web.StreamResponse:
        path = request.path.rstrip("/")
        if request.method == "POST" and path == "/redfish/v1/SessionService/Sessions":
            return await self._log_in(request)
        if request.method == "DELETE":
            self.open_sessions.discard(path.rsplit("/", 1)[-1])
            return web.Response(status=204)
        if request.method == "POST":
            return await self._reset((await request.json())["ResetType"])
        self.samples += path == _SYSTEM
        if path == _SYSTEM and self.samples == self.hold_reading:
            await self.release.wait()
        if self.busy > 0 and path == _SYSTEM:
            self.busy -= 1
            return _error(503, "the BMC is starting")
        if path == STREAM and self.streams_offered:
            return await self._stream(request)
        found = self._resource(path)
        if found is None:
            return _error(404, "no such resource")
        return await self._drip(request) if self.drips and path == _SYSTEM else web.json_response(found)

    async def _log_in(self, request: web.Request) -> web.Response:
        if self.session_answer != 201:
            return _error(self.session_answer, "no sessions today")
        self.logins += 1
        body = await request.json()
        if (body["UserName"], body["Password"]) != (USER, self.password):
            return _error(401, "wrong password")
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
            return _error(self.reset_answer, "the node is in the middle of its self-test")
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
            if self.streams_offered:
                root["EventService"] = {"@odata.id": EVENTS}
            return root
        if path == EVENTS and self.streams_offered:
            return {
                "Id": "EventService",
                "ServiceEnabled": True,
                "ServerSentEventUri": self.stream_url,
                "Subscriptions": {"@odata.id": f"{EVENTS}/Subscriptions"},
            }
        if path == "/redfish/v1/Systems":
            return {"Members": [{"@odata.id": one} for one in self.systems]}
        if path == "/redfish/v1/Systems/1/ResetActionInfo":
            return {
                "Id": "ResetActionInfo",
                "Name": "Reset",
                "Parameters": [{"Name": "ResetType", "AllowableValues": list(self.allowed)}],
            }
        if path == _SYSTEM:
            return self._system()
        return self.extra.get(path)

    def _system(self) -> dict[str, Any]:
        power = self.power
        if self._off_until is not None:
            power = "Off" if time.monotonic() < self._off_until or not self._read_off else "On"
            self._read_off = True
        reset: dict[str, Any] = {"target": self._absolute(f"{_SYSTEM}/Actions/ComputerSystem.Reset")}
        if self.by_action_info:
            reset["@Redfish.ActionInfo"] = f"{_SYSTEM}/ResetActionInfo"
        else:
            reset["ResetType@Redfish.AllowableValues"] = list(self.allowed)
        found = {
            "Id": "1",
            "Name": "node",
            "PowerState": power,
            "Status": {"State": "Enabled", "Health": "OK"},
            "Actions": {"#ComputerSystem.Reset": reset},
            **self.extra.get(_SYSTEM, {}),
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


def _error(status: int, text: str) -> web.Response:
    return web.json_response({"error": {"code": "Base.1.0.GeneralError", "message": text}}, status=status)


def resources() -> dict[str, Any]:
    """The resources of a node with an old chassis, a new one, and one that answers 404."""
    base, logs = "/redfish/v1/Chassis", "/redfish/v1/Systems/1/LogServices"

    def entry(day: int) -> dict[str, Any]:
        return {
            "Created": f"2026-05-{day:02}T00:00:00Z",
            "Severity": "Critical",
            "Message": f"fault {day} " + "x" * 400,
        }

    ok = {"State": "Enabled", "Health": "OK"}
    return {
        "/redfish/v1/Systems/1": {
            "SerialNumber": "S123",
            "LogServices": {"@odata.id": logs},
            "Links": {"Chassis": [{"@odata.id": f"{base}/{name}"} for name in ("gone", "old", "new")]},
        },
        f"{base}/old": {
            "Thermal": {"@odata.id": f"{base}/old/Thermal"},
            "Power": {"@odata.id": f"{base}/old/Power"},
        },
        f"{base}/old/Thermal": {
            "Temperatures": [
                {"Name": "Inlet", "ReadingCelsius": 22, "Status": ok},
                *({"Name": f"DIMM {n}", "ReadingCelsius": 40 + n, "Status": ok} for n in range(40)),
            ],
            "Fans": [{"Name": "Empty slot", "Status": {"State": "Absent"}}],
        },
        f"{base}/old/Power": {
            "PowerSupplies": [
                {"Name": "PSU 1", "LastPowerOutputWatts": 700, "Status": ok},
                {"Name": "PSU 2", "Status": {"State": "Enabled", "Health": "Critical"}},
            ]
        },
        f"{base}/new": {
            "ThermalSubsystem": {"@odata.id": f"{base}/new/ThermalSubsystem"},
            "EnvironmentMetrics": {"@odata.id": f"{base}/new/EnvironmentMetrics"},
        },
        f"{base}/new/ThermalSubsystem": {"ThermalMetrics": {"@odata.id": f"{base}/new/ThermalMetrics"}},
        f"{base}/new/ThermalMetrics": {
            "TemperatureReadingsCelsius": [{"DeviceName": "GPU 0", "Reading": 61.5}]
        },
        f"{base}/new/EnvironmentMetrics": {"PowerWatts": {"Reading": 5400}},
        logs: {"Members": [{"@odata.id": f"{logs}/SEL"}]},
        f"{logs}/SEL": {"Entries": {"@odata.id": f"{logs}/SEL/Entries"}},
        f"{logs}/SEL/Entries": {"Members@odata.count": 30, "Members": [entry(day) for day in range(1, 31)]},
    }


def chassis_of(*, newer: bool = False, ill: bool = False) -> dict[str, Any]:
    """The resources of a node with six supplies, four fans, an inlet and twelve memory modules, by the old schemas or those of
    2020.4; the newer ones have a leak detector, too. `ill`: one of each has failed.
    """
    base, system = "/redfish/v1/Chassis/1U", "/redfish/v1/Systems/1"
    ok = {"State": "Enabled", "Health": "OK"}
    bad = {"State": "Enabled", "Health": "Critical"} if ill else ok
    supplies = [{"Name": f"PSU {n}", "Status": bad if n == 2 else ok} for n in range(1, 7)]
    fans = [
        {"Name": f"Fan {n}", "Reading": 0 if ill and n == 3 else 9000, "Status": bad if n == 3 else ok}
        for n in range(1, 5)
    ]
    inlet = {"Name": "Inlet Temp", "PhysicalContext": "Intake", "Status": bad}
    celsius = 47 if ill else 24
    found: dict[str, Any] = {
        system: {
            "Status": {"State": "Enabled", "HealthRollup": bad["Health"]},
            "Links": {
                "Chassis": [{"@odata.id": base}],
                "ManagedBy": [{"@odata.id": "/redfish/v1/Managers/1"}],
            },
            "Memory": {"@odata.id": f"{system}/Memory"},
            "MemorySummary": {"Status": {"HealthRollup": bad["Health"]}},
        },
        f"{system}/Memory": {"Members": [{"@odata.id": f"{system}/Memory/{n}"} for n in range(12)]},
        "/redfish/v1/Managers/1": {
            "DateTime": "2026-11-30T10:15:00+00:00",
            "LogServices": {"@odata.id": "/redfish/v1/Managers/1/LogServices"},
        },
        "/redfish/v1/Managers/1/LogServices": {
            "Members": [{"@odata.id": "/redfish/v1/Managers/1/LogServices/Sel"}]
        },
        "/redfish/v1/Managers/1/LogServices/Sel": {
            "Entries": {"@odata.id": "/redfish/v1/Managers/1/LogServices/Sel/Entries"}
        },
        "/redfish/v1/Managers/1/LogServices/Sel/Entries": {
            "Members": [
                {
                    "Id": "1",
                    "Severity": "Critical",
                    "Created": "2026-01-02T00:00:00+00:00",
                    "Message": "PSU 1: old",
                },
                *(
                    [
                        {
                            "Id": "2",
                            "Severity": "Critical",
                            "Created": "2026-11-30T10:14:00+00:00",
                            "SensorType": "Processor",
                            "Message": "CPU1: IERR",
                        }
                    ]
                    if ill
                    else []
                ),
            ]
        },
    }
    for n in range(12):
        found[f"{system}/Memory/{n}"] = {
            "Name": f"DIMM {n}",
            "Status": bad if n == 9 else ok,
            "Metrics": {"@odata.id": f"{system}/Memory/{n}/Metrics"},
        }
        lost = ill and n == 9
        found[f"{system}/Memory/{n}/Metrics"] = {
            "LifeTime": {"CorrectableECCErrorCount": 12, "UncorrectableECCErrorCount": int(lost)},
            "HealthData": {"AlarmTrips": {"UncorrectableECCError": lost}},
        }
    if newer:
        return found | _newer(base, supplies, fans, inlet, celsius, bad)
    redundancy = [{"Name": "redundancy 0", "Mode": "N+m", "Status": bad}]
    limits = {"UpperThresholdCritical": 45, "ReadingCelsius": celsius}
    found[base] = {"Thermal": {"@odata.id": f"{base}/Thermal"}, "Power": {"@odata.id": f"{base}/Power"}}
    found[f"{base}/Thermal"] = {"Temperatures": [inlet | limits], "Fans": fans}
    found[f"{base}/Power"] = {"PowerSupplies": supplies, "Redundancy": redundancy}
    return found


def _newer(
    base: str,
    supplies: list[dict[str, Any]],
    fans: list[dict[str, Any]],
    inlet: dict[str, Any],
    celsius: int,
    bad: dict[str, str],
) -> dict[str, Any]:
    """The same by ThermalSubsystem, PowerSubsystem, Sensors and LeakDetection."""
    found: dict[str, Any] = {}

    def collection(path: str, rows: list[dict[str, Any]]) -> dict[str, str]:
        found[path] = {"Members": [{"@odata.id": f"{path}/{n}"} for n in range(len(rows))]}
        for n, row in enumerate(rows):
            found[f"{path}/{n}"] = row
        return {"@odata.id": path}

    thermal, power = f"{base}/ThermalSubsystem", f"{base}/PowerSubsystem"
    limit = {"UpperCritical": {"Reading": 45}}
    sensor = inlet | {"ReadingType": "Temperature", "Reading": celsius, "Thresholds": limit}
    speeds = [
        {"Name": one["Name"], "Status": one["Status"], "SpeedPercent": {"SpeedRPM": one["Reading"]}}
        for one in fans
    ]
    found[base] = {
        "ThermalSubsystem": {"@odata.id": thermal},
        "PowerSubsystem": {"@odata.id": power},
        "Sensors": collection(f"{base}/Sensors", [sensor]),
    }
    found[thermal] = {
        "Fans": collection(f"{thermal}/Fans", speeds),
        "LeakDetection": {"@odata.id": f"{thermal}/LeakDetection"},
    }
    wet = {"Name": "Cold plate", "DetectorState": bad["Health"], "Status": bad}
    found[f"{thermal}/LeakDetection"] = {
        "LeakDetectors": collection(f"{thermal}/LeakDetection/LeakDetectors", [wet])
    }
    found[power] = {
        "PowerSupplies": collection(f"{power}/PowerSupplies", supplies),
        "PowerSupplyRedundancy": [{"GroupName": "redundancy 0", "RedundancyType": "NPlusM", "Status": bad}],
    }
    return found
