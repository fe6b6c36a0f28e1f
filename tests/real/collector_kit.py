"""Collectors of traces: a sink that keeps what it is sent, and Rotel, a real OpenTelemetry collector, that passes it on."""

import contextlib
import gzip
import importlib.util
import socket
import subprocess
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from tests.brain.traces.kit import Seen, of_protobuf, seen
from tests.real.nats import free_port

STARTS_WITHIN_S = 60.0


class Sink:
    """OTLP over HTTP, in JSON and in protobuf, at /v1/traces."""

    def __init__(self, port: int = 0) -> None:
        self.spans: list[Seen] = []
        sink = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                if self.headers.get("Content-Encoding") == "gzip":
                    body = gzip.decompress(body)
                if self.path != "/v1/traces":
                    self.send_error(404)
                    return
                json = self.headers["Content-Type"] == "application/json"
                sink.spans += seen(body) if json else of_protobuf(ExportTraceServiceRequest.FromString(body))
                answer = b"{}" if json else b""
                self.send_response(200)
                self.send_header("Content-Type", self.headers["Content-Type"])
                self.send_header("Content-Length", str(len(answer)))
                self.end_headers()
                self.wfile.write(answer)

            def log_message(self, *_: object) -> None:
                return

        self._server = ThreadingHTTPServer(("127.0.0.1", port), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)
        self._thread.start()

    def of(self, trace: str) -> list[Seen]:
        """The spans of a trace, each once; one that came twice must be the same."""
        found: dict[str, Seen] = {}
        for span in list(self.spans):
            if span.trace == trace:
                same = found.setdefault(span.id, span)
                assert (same.start, same.end, same.attributes) == (span.start, span.end, span.attributes)
        return list(found.values())

    def close(self) -> None:
        """Ends it."""
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


@contextlib.contextmanager
def sink(port: int = 0) -> Iterator[Sink]:
    """A sink that listens."""
    it = Sink(port)
    try:
        yield it
    finally:
        it.close()


def rotel_program() -> Path | None:
    """The collector's program; None: there is no package of it for this Python."""
    found = importlib.util.find_spec("rotel")
    places = found.submodule_search_locations if found else None
    return Path(places[0]) / "rotel-agent" if places else None


@contextlib.contextmanager
def rotel(folder: Path, onward: str) -> Iterator[str]:
    """A real collector, which passes spans on to `onward` in protobuf; the URL at which it takes traces."""
    program = rotel_program()
    assert program is not None
    port = free_port()
    argv = [
        str(program), "start", "--otlp-http-endpoint", f"127.0.0.1:{port}", "--otlp-grpc-endpoint", f"127.0.0.1:{free_port()}",
        "--pid-file", str(folder / "rotel.pid"), "--log-file", str(folder / "rotel.log"),
        "--exporter", "otlp", "--otlp-exporter-protocol", "http", "--otlp-exporter-endpoint", onward,
        "--batch-timeout", "100ms",
    ]  # fmt: skip
    with (folder / "rotel.out").open("wb") as log:
        process = subprocess.Popen(argv, stdout=log, stderr=log)
    try:
        deadline = time.monotonic() + STARTS_WITHIN_S
        while not _listens(port):
            assert process.poll() is None, (folder / "rotel.out").read_text()
            assert time.monotonic() < deadline, "it does not listen"
            time.sleep(0.05)
        yield f"http://127.0.0.1:{port}/v1/traces"
    finally:
        process.terminate()
        try:
            process.wait(20)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait(20)


def _listens(port: int) -> bool:
    with contextlib.closing(socket.socket()) as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0
