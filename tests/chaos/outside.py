"""What is outside of the cell: people who are paged, and something that notices when it is no longer called."""

import json
import threading
import time
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Received:
    """One page as it came in; `at` on this process' monotonic clock."""

    at: float
    page: str  # its id
    what: str
    cause: str
    dedup_key: str
    group: str = ""  # the channel group it was sent to
    listed: str = ""  # the incidents of an alert group, a line each


class Outside:
    """A receiver of pages at /page, and of signs of life at /alive/<brain>."""

    def __init__(self) -> None:
        self.pages: list[Received] = []
        self.calls: list[tuple[float, str]] = []
        self.broken = False  # answers 503 to every page
        self.refused = 0
        outside = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
                status = outside.hear(self.path, dict(self.headers), body)
                self.send_response(status)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", "2")
                self.end_headers()
                self.wfile.write(b"{}")

            def log_message(self, format: str, *args: object) -> None:  # noqa: A002  its name there
                """Nothing: what came is in the lists."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def stop(self) -> None:
        """Ends it."""
        self._server.shutdown()
        self._server.server_close()

    def hear(self, path: str, headers: dict[str, str], body: bytes) -> int:
        """The status of the answer."""
        now = time.monotonic()
        if path.startswith("/alive/"):
            self.calls.append((now, path.rpartition("/")[2]))
            return 200
        if self.broken:
            self.refused += 1
            return 503
        raw: dict[str, Any] = json.loads(body)
        names = {name.lower(): value for name, value in headers.items()}
        self.pages.append(
            Received(
                at=now,
                page=names.get("ward-page", ""),
                what=raw["what"],
                cause=raw["cause"],
                dedup_key=raw["dedup_key"],
                group=raw.get("group", ""),
                listed="\n".join(raw["incidents"]),
            )
        )
        return 200
