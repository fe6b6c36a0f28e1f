"""`gpuward up`: NATS, the brain, the real agent of this machine, and simulated nodes.

Started in this order, stopped in reverse. NATS is a child of this process and not of the brain, so that it outlives a
brain that dies.
"""

import asyncio
import contextlib
import signal
import sys
import time
from collections.abc import Callable
from typing import Any

import aiohttp

from agent.shared.columns import columns_of
from agent.shared.words import t
from brain.adapters.nats_server import NatsServer
from brain.cli.terminal import padded
from simulations import local_site
from simulations.children import ChildProcess
from simulations.local_site import LocalSite

LEADER_WITHIN_S = 15.0  # after so long without a leading brain a message says where to look
NODES_WITHIN_S = 5.0  # how long the table waits for the first heartbeats of the nodes
START_POLL_S = 0.05
EXIT_POLL_S = 0.2
Echo = Callable[[str], None]  # prints one message


async def up(site: LocalSite, echo: Echo, *, nats_port: int = 0, pace: float = 1.0) -> int:
    """Runs all parts until SIGINT or SIGTERM; the exit status: 0 stopped, 1 a part died, 130 forced."""
    stop, force = _signals()
    began = time.monotonic()
    status = 0
    with local_site.locked(site.data) as lock:
        local_site.free_port(site.console_port, "--port")
        server = NatsServer(
            site.data / "nats", cell=local_site.CELL, port=local_site.free_port(nats_port, "--nats-port")
        )
        server.start()
        children = _children(site, lock)
        tasks: list[asyncio.Task[Any]] = []
        try:
            local_site.write_configs(site, server, pace=pace)
            starting = asyncio.create_task(_start(site, children, echo))
            watching = asyncio.create_task(_first_exit(children, server))
            tasks += [starting, watching]
            await _first_of(watching, starting, stop)
            if starting.done() and not watching.done():
                starting.result()
                echo(table(site, server, children, time.monotonic() - began))
                await _first_of(watching, stop)
            if watching.done():
                echo(
                    t("A part of gpuward ended by itself, so all is stopped: {part}", part=watching.result())
                )
                status = 1
        finally:
            for task in tasks:
                task.cancel()
            echo(t("stopping (Ctrl-C again: at once) ..."))
            forced = await _stop(children, force)
            server.stop()
            _ignore_signals()
    echo(t("stopped; `gpuward up --data {data}` goes on from here", data=site.data))
    return 130 if forced else status


def _children(site: LocalSite, lock: int) -> list[ChildProcess]:
    """The brain, the agent of this machine, and the simulated nodes, in the order of their start. Each holds the lock."""

    def python(name: str, module: str, *arguments: str) -> ChildProcess:
        config = str(site.config(name))
        return ChildProcess(
            name, [sys.executable, "-m", module, *arguments, "--config", config], site.log(name), (lock,)
        )

    return [
        python("brain", "simulations.brain"),
        python("agent", "agent", "run"),
        *([python("fleet", "simulations.fleet")] if site.simulated else []),
    ]


async def _start(site: LocalSite, children: list[ChildProcess], echo: Echo) -> None:
    """Starts the brain; when it leads with rules in force, the nodes; returns when all of them have sent a heartbeat."""
    brain, *nodes = children
    await brain.start()
    async with aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=2)) as session:
        message_at = time.monotonic() + LEADER_WITHIN_S
        while not _leads(await _get(session, f"{site.url}/api/v1/status")):
            await asyncio.sleep(START_POLL_S)
            if time.monotonic() > message_at:
                message_at += 4 * LEADER_WITHIN_S
                echo(t("still waiting for the brain to lead with rules in force; see {log}", log=brain.log))
        for child in nodes:
            await child.start()
        missing = {site.node, *site.simulated}
        deadline = time.monotonic() + NODES_WITHIN_S
        while missing and time.monotonic() < deadline:
            await asyncio.sleep(START_POLL_S)
            answer = await _get(session, f"{site.url}/api/v1/nodes") or {"nodes": []}
            missing -= {node["name"] for node in answer["nodes"] if node["beat_age_s"] is not None}
        if missing:
            echo(t("no heartbeat yet from: {nodes}", nodes=", ".join(sorted(missing))))


def _leads(status: Any) -> bool:
    return bool(status and status["leads"] and status["caught_up"] and status["pack"])


async def _get(session: aiohttp.ClientSession, url: str) -> Any:
    """The JSON answer; None when there is none yet."""
    with contextlib.suppress(aiohttp.ClientError, TimeoutError, ValueError):
        async with session.get(url) as answer:
            return await answer.json() if answer.status == 200 else None
    return None


async def _first_exit(children: list[ChildProcess], server: NatsServer) -> str:
    """Waits until a part ends by itself; its name and the last lines of its log."""
    while server.running():
        for child in children:
            if child.returncode is not None:
                lines = [f"    {line}" for line in child.last_lines()]
                return "\n".join([f"{child.describe_end()}; {child.log} says:", *lines])
        await asyncio.sleep(EXIT_POLL_S)
    return "the NATS server ended"


async def _stop(children: list[ChildProcess], force: asyncio.Event) -> bool:
    """Stops the nodes, so that their last events reach the log, then the brain. True: a second signal forced it."""

    async def in_order() -> None:
        brain, *nodes = children
        await asyncio.gather(*(child.stop() for child in nodes))
        await brain.stop()

    stopping = asyncio.create_task(in_order())
    await _first_of(stopping, force)
    if not stopping.done():
        for child in children:
            child.kill()
    await stopping
    return force.is_set()


def _signals() -> tuple[asyncio.Event, asyncio.Event]:
    """(stop, force): set by the first and the second SIGINT or SIGTERM."""
    stop, force = asyncio.Event(), asyncio.Event()

    def on_signal() -> None:
        (force if stop.is_set() else stop).set()

    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, on_signal)
    return stop, force


def _ignore_signals() -> None:
    """Nothing is left to stop: a Ctrl-C that comes while the interpreter ends changes the exit status no more."""
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.remove_signal_handler(number)
        signal.signal(number, signal.SIG_IGN)


async def _first_of(*awaited: "asyncio.Task[Any] | asyncio.Event") -> None:
    """Waits until one of them is done or set."""
    events = [asyncio.create_task(one.wait()) for one in awaited if isinstance(one, asyncio.Event)]
    try:
        tasks = [one for one in awaited if isinstance(one, asyncio.Task)]
        await asyncio.wait([*tasks, *events], return_when=asyncio.FIRST_COMPLETED)
    finally:
        for one in events:
            one.cancel()


def table(site: LocalSite, server: NatsServer, children: list[ChildProcess], took_s: float) -> str:
    """The table that people see: what runs where, and what to try next."""
    pids = {child.name: str(child.pid) for child in children}
    log = {child.name: str(child.log) for child in children}
    rows = [
        ("NATS", server.url, "", str(site.data / "nats" / "nats.log")),
        ("brain", site.url, pids["brain"], log["brain"]),
        (
            "agent",
            t("this machine, as {node}: observed, never changed", node=site.node),
            pids["agent"],
            log["agent"],
        ),
    ]
    if site.simulated:
        names = t(
            "{first} .. {last}: simulated, and healed", first=site.simulated[0], last=site.simulated[-1]
        )
        rows.append(("fleet", names, pids["fleet"], log["fleet"]))
    rows.append(("pages", t("the pages that people would get"), "", str(site.pages)))
    rows.append(("data", t("everything that is kept"), "", str(site.data)))
    widths = [max(columns_of(row[column]) for row in rows) for column in range(3)]
    lines = [t("gpuward is up after {took_s} s. Ctrl-C stops it.", took_s=f"{took_s:.1f}"), ""]
    lines += [
        f"  {padded(a, widths[0])}  {padded(b, widths[1])}  {padded(c, widths[2], right=True)}  {d}"
        for a, b, c, d in rows
    ]
    warnings = [line for line in children[1].last_lines(200) if line.startswith(("WARNING", "ERROR"))]
    if warnings:
        lines += [
            "",
            t("Warnings of the agent about {node}:", node=site.node),
            *(f"  {line}" for line in warnings[:8]),
        ]
    lines += ["", t("Try in another terminal:"), ""]
    if site.console_port != 8470:
        lines += [f"  export GPUWARD_URL={site.url}"]
    tries = {"gpuward watch": t("what happens, as it happens")}
    if site.simulated:
        tries |= {
            "gpuward drill gpu-off-bus --wait": t("a simulated GPU falls off the bus"),
            "gpuward drill --list": t("what else can break"),
        }
    tries |= {
        "gpuward incidents": t("what is open; then `gpuward explain ID`"),
        "gpuward nodes": t("which nodes are there"),
    }
    lines += [f"  {typed:<35} {what}" for typed, what in tries.items()]
    return "\n".join([*lines, ""])
