"""A UFM of our own, written from NVIDIA's "UFM Enterprise REST API Guide": events, ports, port actions, jobs.

Three nodes with a port each on `leaf-1`, which has a link to `spine-1`. `faults` make it slow, ill or a liar.
"""

import asyncio
import base64
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from aiohttp import web

TOKEN = "t0ken"
USER, PASSWORD = "admin", "123456"


class FakeUfm:
    """Its state is open to the test."""

    def __init__(self) -> None:
        self.url = ""
        self.events: list[dict[str, Any]] = []
        self.ports: dict[str, dict[str, Any]] = {}
        self.asked: list[str] = []  # method and path, in order
        self.actions: list[tuple[str, str]] = []  # (action, port) that it took
        self.slow_s = 0.0  # before each answer
        self.status = 0  # of each answer; 0: the right one
        self.lies = False  # takes actions and does nothing
        self.job = "Completed"
        for number in (1, 2, 3):
            self._cable(f"000a{number}", f"gpu-{number} mlx5_0", 1, "00bb", "leaf-1", number)
        self._cable("00bb", "leaf-1", 33, "00cc", "spine-1", 1, spine=True)

    def event(
        self, id_: int, type_: str, name: str, port: str = "000a1_1", severity: str = "Critical"
    ) -> None:
        """UFM remembers one more event."""
        self.events.append(
            {
                "id": id_, "name": name, "type": "IBPort", "event_type": type_, "severity": severity,
                "timestamp": f"2026-01-01 00:00:{id_ % 60:02d}", "counter": "N/A", "category": "Hardware",
                "object_name": port, "object_path": f"default / {port}", "write_to_syslog": False,
                "description": f"{name} on {port}",
            }
        )  # fmt: skip

    def _cable(
        self,
        guid: str,
        about: str,
        number: int,
        peer: str,
        switch: str,
        peer_number: int,
        *,
        spine: bool = False,
    ) -> None:
        one, other = f"{guid}_{number}", f"{peer}_{peer_number}"
        kind = "Switch IB Port" if spine else "Computer IB Port"
        own = f"{about}:{number}" if spine else about
        self.ports[one] = self._port(one, kind, about.split()[0], own, number, other)
        self.ports[other] = self._port(
            other, "Switch IB Port", switch, f"{switch}:{peer_number}", peer_number, one
        )

    def _port(self, name: str, kind: str, system: str, about: str, number: int, peer: str) -> dict[str, Any]:
        return {
            "name": name, "description": kind, "system_name": system, "node_description": about, "number": number,
            "dname": str(number), "guid": name.partition("_")[0], "peer": peer, "physical_state": "Link Up",
            "logical_state": "Active", "capabilities": ["healthy_operations", "reset", "disable", "enable"],
        }  # fmt: skip

    async def handle(self, request: web.Request) -> web.Response:
        """Every request."""
        self.asked.append(f"{request.method} {request.path}")
        await asyncio.sleep(self.slow_s)
        if self.status:
            return web.Response(status=self.status, text="as the test wants it")
        basic = base64.b64encode(f"{USER}:{PASSWORD}".encode()).decode()
        wanted = {"/ufmRestV3": f"Basic {TOKEN}", "/ufmRest": f"Basic {basic}"}
        base = "/" + request.path.split("/")[1]
        if request.headers.get("Authorization") != wanted.get(base):
            return web.Response(status=401, text="Unauthorized")
        path = request.path.removeprefix(base)
        if path == "/app/events":
            return web.json_response(self.events)
        if path == "/resources/ports":
            system = request.query.get("system_name")
            return web.json_response([p for p in self.ports.values() if system in (None, p["system_name"])])
        if path.startswith("/resources/ports/"):
            found = self.ports.get(path.rpartition("/")[2])
            return web.json_response([found]) if found else web.Response(status=404, text="no such port")
        if path == "/actions" and request.method == "POST":
            return self._act(await request.json())
        if path == "/jobs/17":
            return web.json_response({"ID": "17", "Status": self.job, "Summary": "a summary"})
        return web.Response(status=404)

    def _act(self, body: dict[str, Any]) -> web.Response:
        assert body["object_type"] == "Port"
        for port in body["object_ids"]:
            self.actions.append((body["action"], port))
            up = body["action"] == "enable"
            if not self.lies:
                for name in (port, self.ports[port]["peer"]):
                    self.ports[name]["physical_state"] = "Link Up" if up else "Polling"
                if not up:
                    self.ports[port]["physical_state"] = "Disabled"
        return web.Response(status=202, headers={"Location": "/ufmRest/jobs/17"})


@asynccontextmanager
async def ufm(tls: ssl.SSLContext | None = None) -> AsyncIterator[FakeUfm]:
    """One that listens on loopback."""
    fake = FakeUfm()
    app = web.Application()
    app.router.add_route("*", "/{rest:.*}", fake.handle)
    runner = web.AppRunner(app, shutdown_timeout=0.1)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0, ssl_context=tls)
    await site.start()
    fake.url = f"{'https' if tls else 'http'}://127.0.0.1:{runner.addresses[0][1]}"
    try:
        yield fake
    finally:
        await runner.cleanup()
