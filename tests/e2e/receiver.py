"""A webhook receiver as a process: `python -m tests.e2e.receiver PORT FILE` appends each body as one JSON line."""

import asyncio
import json
import sys
from pathlib import Path

from aiohttp import web


async def serve(port: int, sink: Path) -> None:
    """Answers 200 to every POST until it is ended."""

    async def take(request: web.Request) -> web.Response:
        body = await request.json()
        with sink.open("a") as out:
            out.write(json.dumps(body) + "\n")
        return web.json_response({"status": "ok"})

    app = web.Application()
    app.router.add_post("/page", take)
    runner = web.AppRunner(app)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", port).start()
    await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(serve(int(sys.argv[1]), Path(sys.argv[2])))
