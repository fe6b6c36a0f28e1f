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

PATIENCE_S = 15.0  # after so long without a leading brain people are told where to look
NODES_WITHIN_S = 5.0  # how long the table waits for the nodes' first beats
LOOK_S = 0.05
DEATH_LOOK_S = 0.2
Say = Callable[[str], None]


async def up(site: Site, say: Say, *, nats_port: int = 0, pace: float = 1.0) -> int:
    """Runs all parts until SIGINT or SIGTERM; the exit status: 0 stopped, 1 a part died, 130 forced."""
    stop, force = _signals()
    began = time.monotonic()
    status = 0
    with files.locked(site.data):
        files.free_port(site.console_port, "--port")
        server = NatsServer(
            site.data / "nats", cell=files.CELL, port=files.free_port(nats_port, "--nats-port")
        )
        server.start()
        children = _children(site)
        tasks: list[asyncio.Task[Any]] = []
        try:
            files.write_configs(site, server, pace=pace)
            starting = asyncio.create_task(_start(site, children, say))
            watching = asyncio.create_task(_first_death(children, server))
            tasks += [starting, watching]
            await _any(watching, starting, stop)
            if starting.done() and not watching.done():
                starting.result()
                say(table(site, server, children, time.monotonic() - began))
                await _any(watching, stop)
            if watching.done():
                say(f"A part of gpuward ended by itself, so all is stopped: {watching.result()}")
                status = 1
        finally:
            for task in tasks:
                task.cancel()
            say("stopping (Ctrl-C again: at once) ...")
            forced = await _stop(children, force)
            server.stop()
    say(f"stopped; `gpuward up --data {site.data}` goes on from here")
    return 130 if forced else status


def _children(site: Site) -> list[Child]:
    """The brain first."""

    def python(name: str, module: str, *arguments: str) -> Child:
        config = str(site.config(name))
        return Child(name, [sys.executable, "-m", module, *arguments, "--config", config], site.log(name))

    return [
        python("brain", "simulations.brain"),
        python("agent", "agent", "run"),
        *([python("fleet", "simulations.fleet")] if site.simulated else []),
    ]


async def _start(site: Site, children: list[Child], say: Say) -> None:
    """Starts the brain; when it leads with rules in force, the nodes; returns when it has heard them all."""
    brain, *nodes = children
    await brain.start()
    async with aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=2)) as session:
        told_at = time.monotonic() + PATIENCE_S
        while not _leads(await _ask(session, f"{site.url}/api/status")):
            await asyncio.sleep(LOOK_S)
            if time.monotonic() > told_at:
                told_at += 4 * PATIENCE_S
                say(f"still waiting for the brain to lead with rules in force; see {brain.log}")
        for child in nodes:
            await child.start()
        missing = {site.node, *site.simulated}
        deadline = time.monotonic() + NODES_WITHIN_S
        while missing and time.monotonic() < deadline:
            await asyncio.sleep(LOOK_S)
            answer = await _ask(session, f"{site.url}/api/nodes") or {"nodes": []}
            missing -= {node["name"] for node in answer["nodes"] if node["beat_age_s"] is not None}
        if missing:
            say(f"not heard of yet: {', '.join(sorted(missing))}")


def _leads(status: Any) -> bool:
    return bool(status and status["leads"] and status["caught_up"] and status["pack"])


async def _ask(session: aiohttp.ClientSession, url: str) -> Any:
    """The JSON answer; None when there is none yet."""
    with contextlib.suppress(aiohttp.ClientError, TimeoutError, ValueError):
        async with session.get(url) as answer:
            return await answer.json() if answer.status == 200 else None
    return None


async def _first_death(children: list[Child], server: NatsServer) -> str:
    """Waits until a part ends by itself: its name and last words."""
    while server.running():
        for child in children:
            if child.returncode is not None:
                words = [f"    {line}" for line in child.said()]
                return "\n".join([f"{child.ended()}; {child.log} says:", *words])
        await asyncio.sleep(DEATH_LOOK_S)
    return "the NATS server ended"


async def _stop(children: list[Child], force: asyncio.Event) -> bool:
    """Nodes first, so that their last words reach the log; then the brain. True: people had no patience."""

    async def in_order() -> None:
        brain, *nodes = children
        await asyncio.gather(*(child.stop() for child in nodes))
        await brain.stop()

    stopping = asyncio.create_task(in_order())
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


async def _any(*what: "asyncio.Task[Any] | asyncio.Event") -> None:
    """Waits until one of them is done or set."""
    events = [asyncio.create_task(one.wait()) for one in what if isinstance(one, asyncio.Event)]
    try:
        tasks = [one for one in what if isinstance(one, asyncio.Task)]
        await asyncio.wait([*tasks, *events], return_when=asyncio.FIRST_COMPLETED)
    finally:
        for one in events:
            one.cancel()


def table(site: Site, server: NatsServer, children: list[Child], took_s: float) -> str:
    """What runs where, and what to try next."""
    pids = {child.name: str(child.pid) for child in children}
    log = {child.name: str(child.log) for child in children}
    rows = [
        ("NATS", server.url, "", str(site.data / "nats" / "nats.log")),
        ("brain", site.url, pids["brain"], log["brain"]),
        ("agent", f"this machine, as {site.node}: observed, never changed", pids["agent"], log["agent"]),
    ]
    if site.simulated:
        names = f"{site.simulated[0]} .. {site.simulated[-1]}: simulated, and healed"
        rows.append(("fleet", names, pids["fleet"], log["fleet"]))
    rows.append(("pages", "what people would be told", "", str(site.pages)))
    rows.append(("data", "all that is kept", "", str(site.data)))
    wide = [max(len(row[column]) for row in rows) for column in range(3)]
    lines = [f"gpuward is up after {took_s:.1f} s. Ctrl-C stops it.", ""]
    lines += [f"  {a.ljust(wide[0])}  {b.ljust(wide[1])}  {c.rjust(wide[2])}  {d}" for a, b, c, d in rows]
    complaints = [line for line in children[1].said(200) if line.startswith(("WARNING", "ERROR"))]
    if complaints:
        lines += ["", f"Of {site.node} the agent says:", *(f"  {line}" for line in complaints[:8])]
    lines += ["", "Try in another terminal:", ""]
    if site.console_port != 8470:
        lines += [f"  export GPUWARD_URL={site.url}"]
    lines += ["  gpuward watch                       what happens, as it happens"]
    if site.simulated:
        lines += [
            "  gpuward drill gpu-off-bus --wait    a simulated GPU falls off the bus",
            "  gpuward drill --list                what else can break",
        ]
    lines += [
        "  gpuward incidents                   what is open; then `gpuward explain ID`",
        "  gpuward nodes                       who is there",
        "",
    ]
    return "\n".join(lines)
