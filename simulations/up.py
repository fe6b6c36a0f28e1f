"""Everything on one machine: NATS, the brain, the real agent of this machine, and simulated nodes.

Started in this order, stopped in reverse. NATS is a child of ours and not of the brain, so that a brain that dies
takes nobody with it.
"""

import asyncio
import contextlib
import signal
import sys
import time
from collections.abc import Callable
from typing import Any

import aiohttp

from brain.adapters.nats_server import NatsServer
from simulations import site as files
from simulations.children import Child
from simulations.site import Site

READY_WITHIN_S = 30.0
NODES_WITHIN_S = 5.0  # how long the table waits for the nodes' first beats
LOOK_S = 0.05
Say = Callable[[str], None]


async def up(site: Site, say: Say, *, nats_port: int = 0) -> int:
    """Runs all parts until SIGINT or SIGTERM; the exit status: 0 stopped, 1 a part died, 130 forced."""
    stop, force = _signals()
    began = time.monotonic()
    with files.locked(site.data):
        files.free_port(site.console_port, "--port")
        port = files.free_port(nats_port, "--nats-port")
        server = NatsServer(site.data / "nats", cell=files.CELL, port=port)
        server.node_seed_file(site.node)
        server.start()
        children = _children(site)
        try:
            files.write_configs(site, server)
            for child in children:
                await child.start()
            watching = asyncio.ensure_future(_first_death(children, server))
            ready = asyncio.ensure_future(_ready(site))
            await _any(watching, ready, stop)
            if ready.done() and not watching.done():
                say(table(site, server, children, time.monotonic() - began))
            await _any(watching, stop)
            status = _report(watching, say) if watching.done() else 0
        finally:
            say("stopping (Ctrl-C again: at once) ...")
            forced = await _stop(children, force)
            server.stop()
    say(f"stopped; `gpuward up --data {site.data}` goes on from here")
    return 130 if forced else status


def _children(site: Site) -> list[Child]:
    def python(name: str, module: str, *arguments: str) -> Child:
        config = str(site.config(name))
        return Child(name, [sys.executable, "-m", module, *arguments, "--config", config], site.log(name))

    return [
        python("brain", "brain", "run"),
        python("agent", "agent", "run"),
        *([python("fleet", "simulations.fleet")] if site.simulated else []),
    ]


async def _ready(site: Site) -> None:
    """Returns when the brain leads with rules in force and has heard every node, or when it has led for a while."""
    want = {site.node, *site.simulated}
    led_at = 0.0
    async with aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=2)) as session:
        while True:
            with contextlib.suppress(aiohttp.ClientError, TimeoutError, ValueError):
                async with session.get(f"{site.url}/api/status") as answer:
                    status = await answer.json()
                if status["leads"] and status["caught_up"] and status["pack"]:
                    led_at = led_at or time.monotonic()
                    async with session.get(f"{site.url}/api/nodes") as answer:
                        heard = {
                            node["node"] for node in await answer.json() if node["beat_age_s"] is not None
                        }
                    if want <= heard or time.monotonic() - led_at > NODES_WITHIN_S:
                        return
            await asyncio.sleep(LOOK_S)


async def _first_death(children: list[Child], server: NatsServer) -> str:
    """Waits until a part ends by itself: its name and last words."""
    waits = {asyncio.ensure_future(child.wait()): child for child in children}
    try:
        while server.running():
            done, _ = await asyncio.wait(waits, timeout=0.5, return_when=asyncio.FIRST_COMPLETED)
            for one in done:
                child = waits[one]
                return "\n".join(
                    [f"{child.ended()}; {child.log} says:", *(f"    {line}" for line in child.said())]
                )
        return "the NATS server ended by itself"
    finally:
        for one in waits:
            one.cancel()


def table(site: Site, server: NatsServer, children: list[Child], took_s: float) -> str:
    """What runs where, and what to try next."""
    pids = {child.name: str(child.pid) for child in children}
    rows = [
        ("NATS", f"{server.url}, files in {site.data / 'nats'}", "", str(site.data / "nats" / "nats.log")),
        ("brain", site.url, pids["brain"], str(site.log("brain"))),
        (
            "agent",
            f"this machine as {site.node}: observed, never changed",
            pids["agent"],
            str(site.log("agent")),
        ),
    ]
    if site.simulated:
        names = f"{site.simulated[0]} .. {site.simulated[-1]} ({len(site.simulated)} simulated nodes): healed"
        rows.append(("fleet", names, pids["fleet"], str(site.log("fleet"))))
    rows.append(("pages", "what people would be told", "", str(site.pages)))
    wide = [max(len(row[column]) for row in rows) for column in range(3)]
    lines = [f"gpuward is up ({took_s:.1f} s); Ctrl-C stops it.", ""]
    lines += [
        "  "
        + "  ".join((*(cell.ljust(size) for cell, size in zip(row, wide, strict=False)), row[3])).rstrip()
        for row in rows
    ]
    agent = next(child for child in children if child.name == "agent")
    complaints = [line for line in agent.said(200) if line.startswith(("WARNING", "ERROR"))]
    if complaints:
        lines += ["", f"{site.node} cannot be watched wholly:", *(f"  {line}" for line in complaints[:8])]
    url = "" if site.console_port == 8470 else f"export GPUWARD_URL={site.url}"
    lines += ["", "Try in another terminal:", *([f"  {url}"] if url else [])]
    lines += [
        "  gpuward watch                what happens, as it happens",
        "  gpuward nodes                who is there",
    ]
    if site.simulated:
        lines += [
            "  gpuward drill gpu-off-bus    a simulated GPU falls off the bus; `gpuward drill --list` for more"
        ]
    lines += ["  gpuward incidents            what is open; then `gpuward explain ID`", ""]
    return "\n".join(lines)


def _report(watching: "asyncio.Future[str]", say: Say) -> int:
    say(f"A part of gpuward ended by itself, so all is stopped: {watching.result()}")
    return 1


async def _stop(children: list[Child], force: asyncio.Event) -> bool:
    """Nodes first, so that their last words reach the log; then the brain. True: people had no patience."""

    async def in_order() -> None:
        await asyncio.gather(*(child.stop() for child in children if child.name != "brain"))
        await asyncio.gather(*(child.stop() for child in children if child.name == "brain"))

    stopping = asyncio.ensure_future(in_order())
    await _any(stopping, force)
    if not stopping.done():
        for child in children:
            child.kill()
    await stopping
    return force.is_set()


def _signals() -> tuple[asyncio.Event, asyncio.Event]:
    """(stop, force): set by the first and the second SIGINT or SIGTERM."""
    stop, force = asyncio.Event(), asyncio.Event()

    def told() -> None:
        (force if stop.is_set() else stop).set()

    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, told)
    return stop, force


async def _any(*what: "asyncio.Future[Any] | asyncio.Event") -> None:
    """Waits until one of them is done or set."""
    waits = {asyncio.ensure_future(one.wait()) if isinstance(one, asyncio.Event) else one for one in what}
    try:
        await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for one in waits - set(what):
            one.cancel()
