"""`gpuward fleet` where one of three cells answers anything: the other two are shown."""

import http.server
import itertools
import json
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from brain.cli.fleet import fleet
from tests.bent import bent

STATUS: dict[str, Any] = {
    "cell": "c", "brain": "b1", "leads": True, "leader": "b1", "stopped": "", "troubles": [{"text": "t", "cause": "x"}],
    "nodes": 3, "nodes_unreachable": 0, "holds": [{"scope": "all"}], "connected": True, "caught_up": True,
}  # fmt: skip
INCIDENT: dict[str, Any] = {
    "id": "inc-1", "severity": "P1", "state": "open", "opened_at": "2026-01-01T00:00:00Z", "cause": "gpu", "scope": "node/n1",
    "nodes": 1, "runs": [{"id": "r", "state": "approval"}], "pages": {"acked_by": "ann"}, "times": 2,
}  # fmt: skip
INCIDENTS = {"incidents": [INCIDENT]}


class Cells(http.server.ThreadingHTTPServer):
    """The three brains on one port, each below a path of its own; `lies`: what `/liar/api/v1/...` answers."""

    lies: dict[str, bytes]

    def answer(self, path: str) -> bytes:
        """What is at a path."""
        _, cell, *_, what = path.split("/")
        if cell == "liar":
            return self.lies[what]
        return json.dumps(STATUS | {"cell": cell} if what == "status" else INCIDENTS).encode()


class _Handler(http.server.BaseHTTPRequestHandler):
    server: Cells

    def do_GET(self) -> None:
        body = self.server.answer(self.path)
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None: ...


@pytest.fixture(scope="module")
def cells() -> Iterator[Cells]:
    """They serve."""
    with Cells(("127.0.0.1", 0), _Handler) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield server
        server.shutdown()
        thread.join()


@pytest.mark.parametrize(("what", "right"), [("status", STATUS | {"cell": "liar"}), ("incidents", INCIDENTS)])
def test_a_cell_that_answers_anything_hides_no_other(
    cells: Cells, tmp_path: Path, what: str, right: dict[str, Any]
) -> None:
    """Something odd in many places of its answers, for people and for scripts."""
    file = tmp_path / "fleet.toml"
    at = f"http://127.0.0.1:{cells.server_port}"
    file.write_text("".join(f'[cells.{name}]\nurls = ["{at}/{name}"]\n' for name in ("east", "liar", "west")))
    whole = {"status": STATUS | {"cell": "liar"}, "incidents": INCIDENTS}
    for number, body in enumerate(itertools.islice(bent(right), 0, None, 5)):
        cells.lies = {key: json.dumps(body if key == what else one).encode() for key, one in whole.items()}
        done = CliRunner().invoke(fleet, ["--file", str(file), *(["--json"] if number % 2 else [])])
        assert done.exception is None or isinstance(done.exception, SystemExit), (body, done.exception)
        assert "east" in done.output, body
        assert "west" in done.output, body


@pytest.mark.parametrize("times", ["²", [], {}, "2"])
def test_how_often_an_incident_came_back_is_a_number(cells: Cells, tmp_path: Path, times: object) -> None:
    """Or the cell's answer is none."""
    file = tmp_path / "fleet.toml"
    at = f"http://127.0.0.1:{cells.server_port}"
    file.write_text("".join(f'[cells.{name}]\nurls = ["{at}/{name}"]\n' for name in ("liar", "west")))
    told = json.dumps({"incidents": [INCIDENT | {"times": times}]}).encode()
    cells.lies = {"status": json.dumps(STATUS | {"cell": "liar"}).encode(), "incidents": told}
    done = CliRunner().invoke(fleet, ["--file", str(file)])
    assert isinstance(done.exception, SystemExit)
    assert "(incidents.incidents.0.times: " in " ".join(done.output.split())
