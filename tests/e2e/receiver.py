"""A webhook receiver as a process: `python -m tests.e2e.receiver PORT FILE` appends each body as one JSON line.

Of the standard library: it starts in a tenth of a second of a processor, and there is one in every story.
"""

import json
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path


class Page(BaseHTTPRequestHandler):
    """Answers 200 to every POST of JSON to /page."""

    protocol_version = "HTTP/1.1"
    sink: Path

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if self.path != "/page":
            self.send_error(404)
            return
        with self.sink.open("a") as out:
            out.write(json.dumps(body) + "\n")
        answer = b'{"status": "ok"}'
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002  its name there
        """Nothing: what came is in the file."""


if __name__ == "__main__":
    Page.sink = Path(sys.argv[2])
    ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Page).serve_forever()
