"""GET /metrics, /healthz, /readyz: for monitoring systems and for whoever starts brains."""

from aiohttp import hdrs, web
from prometheus_client.exposition import choose_encoder

from brain.console.access.route import Route, get
from brain.console.brain_view import BrainView
from brain.console.metrics import BrainMetrics

_NOTHING_HEALED = (
    "nobody_leads",
    "brain_disconnected",
)  # of the troubles of a brain (brain/leader/leader_watch.py)


def routes(brain: BrainView) -> list[Route]:
    """Returns the routes. /healthz and /readyz tell nothing that needs a credential."""
    metrics = BrainMetrics(brain)

    async def scrape(request: web.Request) -> web.Response:
        encode, content_type = choose_encoder(request.headers.get(hdrs.ACCEPT, ""))
        return web.Response(body=encode(metrics), headers={"Content-Type": content_type})

    async def alive(_: web.Request) -> web.Response:
        """It answers, so it lives. A brain that has stopped acting lives too: a restart would end a person's look at it."""
        return web.Response(text="ok\n")

    async def ready(_: web.Request) -> web.Response:
        why = why_not_ready(brain)
        # What heals on, and shows itself, stays where people and nodes reach it.
        ill = f"\nits own disk {brain.disk.trouble}: see `gpuward status`" if brain.disk.trouble else ""
        return web.Response(text=f"{why or 'ok'}{ill}\n", status=503 if why else 200)

    return [
        get("/metrics", scrape),
        Route(method="GET", path="/healthz", least=None, handler=alive),
        Route(method="GET", path="/readyz", least=None, handler=ready),
    ]


def why_not_ready(brain: BrainView) -> str:
    """Why this brain could not lead now, or heals nothing though it may lead; empty: neither."""
    if brain.live.stopped:
        return "this brain has stopped acting: see `gpuward status`"
    if not brain.connected():
        return "NATS is not connected"
    if not brain.live.caught_up:
        return "the log is still being read"
    if not brain.disk.readable:
        return "its own files cannot be read"
    if brain.live.state.pack is None:
        return "no rules are in force"
    stops = [cause for cause, _, _ in brain.troubles() if cause in _NOTHING_HEALED]
    return f"{stops[0]}: see `gpuward status`" if stops else ""
