"""A page of metrics on a free port, for a real Prometheus to scrape."""

import contextlib
from collections.abc import AsyncIterator, Callable

from aiohttp import web


@contextlib.asynccontextmanager
async def exporter(page: Callable[[], str]) -> AsyncIterator[int]:
    """`page` is asked at each scrape; the port."""

    async def metrics(_: web.Request) -> web.Response:
        return web.Response(text=page())

    app = web.Application()
    app.router.add_get("/metrics", metrics)
    runner = web.AppRunner(app, shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    try:
        yield runner.addresses[0][1]
    finally:
        await runner.cleanup()
