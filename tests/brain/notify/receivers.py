"""A receiver of pages over HTTP: what was posted, and answers that a test can change."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

from aiohttp import web

Answer = tuple[int, Any]  # status, JSON (or text) body
Judge = Callable[[web.Request, Any], Answer]  # says what the real API would, by its documented schema


class Receiver:
    """Answers as `judge` says, or with the next of `instead`; hangs for `delay_s` first."""

    def __init__(self, judge: Judge) -> None:
        self.judge = judge
        self.instead: list[tuple[int, Any, dict[str, str]]] = []
        self.delay_s = 0.0
        self.url = ""
        self.taken: list[Any] = []  # bodies that the API would have taken
        self.refused: list[Any] = []  # (why, body)
        self.asked = 0

    async def take(self, request: web.Request) -> web.Response:
        """One post."""
        raw = await request.read()
        self.asked += 1
        await asyncio.sleep(self.delay_s)
        if self.instead:
            status, says, headers = self.instead.pop(0)
            return web.Response(status=status, text=json.dumps(says), headers=headers)
        body = json.loads(raw) if raw else None
        status, says = self.judge(request, body)
        if 200 <= status < 300 and not (isinstance(says, dict) and says.get("ok") is False):
            self.taken.append(body)
        else:
            self.refused.append((says, body))
        return web.Response(status=status, text=says if isinstance(says, str) else json.dumps(says))


@asynccontextmanager
async def receiving(judge: Judge) -> AsyncIterator[Receiver]:
    """The receiver on a free loopback port, for every path."""
    it = Receiver(judge)
    app = web.Application(client_max_size=2**22)
    for method in ("GET", "POST", "PATCH"):
        app.router.add_route(method, "/{path:.*}", it.take)
    runner = web.AppRunner(app, shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    it.url = f"http://127.0.0.1:{runner.addresses[0][1]}"
    try:
        yield it
    finally:
        await runner.cleanup()
