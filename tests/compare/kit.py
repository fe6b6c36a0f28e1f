"""What the compared systems share: the receiver of pages, the source of lines, a watch on their memory, the results."""

import json
import random
import subprocess
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from tests.benchmarks.footprint import family, pss_mb
from tests.benchmarks.latency import fault
from tests.real.kernel_log import write_kernel_line

FAULTS = 100  # nodes of which a GPU fails at once
FAULTS_WITHIN_S = 75.0  # how long their pages are waited for
LINES_WITHIN_S = 75.0  # after which no more lines are written
LOOK_S = 0.5  # between looks at the memory
SETTLE_S = 5.0  # after the start, before the idle memory is read


class Pager:
    """The receiver of every system's pages. It keeps what was posted, and when."""

    def __init__(self, port: int) -> None:
        self.pages: list[tuple[float, str]] = []
        pages = self.pages

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                pages.append((time.time(), body.decode()))
                self.send_response(200)
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, *_: object) -> None:
                return

        self._server = ThreadingHTTPServer(("127.0.0.1", port), Handler)
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)
        self._thread.start()
        self.url = f"http://127.0.0.1:{port}/page"
        self._seen: dict[str, float] = {}
        self._read = 0

    def arrived(self, gpus: Iterable[str]) -> dict[str, float]:
        """GPU → when the first page that names it came (s since 1970); those that no page has named are left out."""
        new = self.pages[self._read :]
        self._read += len(new)
        wanted = list(gpus)
        for at, body in new:
            for gpu in wanted:
                if gpu in body:
                    self._seen.setdefault(gpu, at)
        return {gpu: self._seen[gpu] for gpu in wanted if gpu in self._seen}

    def forget(self) -> None:
        """Which GPUs were paged until now."""
        self._seen.clear()
        self._read = len(self.pages)

    def close(self) -> None:
        """Ends it."""
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


@contextmanager
def pager(port: int) -> Iterator[Pager]:
    """A receiver that listens."""
    it = Pager(port)
    try:
        yield it
    finally:
        it.close()


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """What was measured of one system. Empty texts and lists: it has no such thing, or it was left out."""

    name: str
    version: str = ""
    # From the write of a kernel line; of as many lines as were written, those that arrived.
    lines: int = 0
    decided_s: list[float] = field(default_factory=list)
    paged_s: list[float] = field(default_factory=list)
    # Events a second that each pass its rules; 0: it does not look at single lines.
    events_per_s: float = 0.0
    # Of FAULTS at once: those paged in time, and how long the last of them took.
    burst_paged: int = 0
    burst_s: float = 0.0
    # Process → PSS, MB.
    idle_mb: Mapping[str, float] = field(default_factory=dict)
    load_mb: Mapping[str, float] = field(default_factory=dict)
    # Why it was left out, with what to install.
    missing: str = ""


class Memory:
    """The memory of a system's processes, with their children, in a thread while it is watched."""

    def __init__(self, pids: Mapping[str, int]) -> None:
        self._pids = pids
        self.idle = self.now()
        self.most = dict(self.idle)

    def now(self) -> dict[str, float]:
        """Process → PSS, MB."""
        return {name: pss_mb(family(pid)) for name, pid in self._pids.items()}

    @contextmanager
    def watched(self) -> Iterator[None]:
        """`most` is the highest sum of all looks within."""
        over = threading.Event()

        def look() -> None:
            while not over.wait(LOOK_S):
                seen = self.now()
                if sum(seen.values()) > sum(self.most.values()):
                    self.most = seen

        thread = threading.Thread(target=look, daemon=True)
        thread.start()
        try:
            yield
        finally:
            over.set()
            thread.join()


def gpu(number: int) -> str:
    """The PCI address of the `number`th GPU that fails in a run; below 0x8000, so that no burst has it."""
    return f"{0x4000 + number // 256:04x}:{number % 256:02x}:00"


def fail(address: str) -> float:
    """Writes the kernel line of a GPU that must be replaced (XID 64); when (s since 1970)."""
    began = time.time()
    write_kernel_line(fault(address))
    return began


def burst_gpus() -> list[str]:
    """The GPUs that fail at once, each of a node of its own (as tests/compare/sources/kernel_log.py makes them)."""
    return [f"{number:04x}:3b:01" for number in range(FAULTS)]


def lines(
    receiver: Pager,
    count: int,
    pause_s: tuple[float, float],
    within_s: float,
    *,
    wait: bool = True,
    after: Callable[[int], None] = lambda _: None,
) -> tuple[dict[str, float], dict[str, float]]:
    """Lets `count` GPUs fail, after random pauses; (GPU → when it failed, GPU → when it was paged). Waits for each page, unless
    not to `wait`; then for all at the end. A slow system gets fewer lines (LINES_WITHIN_S). `after` is called with each one's
    number.
    """
    draw = random.Random(5)
    failed: dict[str, float] = {}
    deadline = time.monotonic() + LINES_WITHIN_S
    for number in range(count):
        if time.monotonic() > deadline:
            break
        time.sleep(draw.uniform(*pause_s))
        address = gpu(number)
        failed[address] = fail(address)
        if wait:
            until(lambda: address in receiver.arrived(failed), within_s)  # noqa: B023  called at once
        after(number)
    until(lambda: len(receiver.arrived(failed)) == len(failed), within_s)
    return failed, receiver.arrived(failed)


def burst(receiver: Pager, began: float) -> tuple[int, float]:
    """Waits for the pages of a burst; (GPUs that were paged in time, seconds until the last of them)."""
    wanted = burst_gpus()
    until(lambda: len(receiver.arrived(wanted)) == FAULTS, FAULTS_WITHIN_S - (time.time() - began))
    came = receiver.arrived(wanted)
    return len(came), max(came.values(), default=began) - began


def until(what: Callable[[], bool], within_s: float, each_s: float = 0.005) -> bool:
    """Whether it came about in time."""
    deadline = time.monotonic() + within_s
    while not what():
        if time.monotonic() > deadline:
            return False
        time.sleep(each_s)
    return True


def spans(began: Mapping[str, float], ended: Mapping[str, float]) -> list[float]:
    """Seconds of each that has both."""
    return [ended[name] - at for name, at in began.items() if name in ended]


@contextmanager
def child(
    argv: list[str], log: Path, env: Mapping[str, str] | None = None
) -> Iterator[subprocess.Popen[str]]:
    """A process that is ended at the end; `log` gets what it prints as errors, its output is a pipe."""
    with log.open("ab") as sink:
        process = subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=sink, env=env, text=True)
    try:
        yield process
    finally:
        process.terminate()
        try:
            process.wait(30)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait(30)


def ask(folder: Path, **wanted: int) -> None:
    """Puts a file of this JSON into the folder, whole or not at all."""
    (folder / "burst.new").write_text(json.dumps(wanted))
    (folder / "burst.new").rename(folder / "burst.go")
