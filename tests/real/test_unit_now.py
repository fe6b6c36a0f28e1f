"""Why no brain answers: a real systemd says what has become of its unit, and the doctor says it with who must do what."""

import json
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.real import nspawn

pytestmark = [
    pytest.mark.root,
    pytest.mark.component("systemd-nspawn"),
    pytest.mark.skipif(bool(nspawn.missing()), reason=nspawn.missing()),
]
ROOT = Path(__file__).resolve().parents[2]
GPUWARD = str(Path(sys.executable).with_name("gpuward"))
WITHIN_S = 90.0
UNIT = """[Unit]
StartLimitIntervalSec=0
[Service]
ExecStart={gpuward} run --config /etc/gpuward/brain.toml
Restart=always
RestartSec=1
RestartPreventExitStatus=78
[Install]
WantedBy=multi-user.target
"""
TOML = 'data_dir = "/var/lib/lab"\n[console]\nport = 8470\n[nats.embedded]\nport = {nats}\n'
# Another program has the port of the brain's NATS server, and says so when it has it.
TAKER = "import socket,time; s=socket.create_server(('127.0.0.1', 4222)); time.sleep(10**6)"


@pytest.fixture(scope="module")
def box(tmp_path_factory: pytest.TempPathFactory) -> Iterator[nspawn.Machine]:
    """The brain as a unit, which nobody has started."""
    with nspawn.machine(tmp_path_factory.mktemp("nspawn"), {}, binds=(str(ROOT),)) as machine:
        folder = machine.root / "etc/gpuward"
        folder.mkdir(parents=True, exist_ok=True)
        (machine.root / "etc/systemd/system/gpuward.service").write_text(UNIT.format(gpuward=GPUWARD))
        (folder / "brain.toml").write_text(TOML.format(nats=4222))
        assert machine.run("systemctl", "daemon-reload").returncode == 0
        machine.run("systemctl", "start", "systemd-journald")
        yield machine


def brain_line(box: nspawn.Machine) -> tuple[str, str]:
    """Text and action of the doctor's line about the brain."""
    made = box.run(GPUWARD, "doctor", "--json")
    (line,) = (one for one in json.loads(made.stdout)["checks"] if one["check"] == "brain")
    return line["text"], line["action"]


def told(box: nspawn.Machine, words: str) -> tuple[str, str]:
    """The same, once its text says this."""
    deadline = time.monotonic() + WITHIN_S
    while words not in (found := brain_line(box))[0]:
        assert time.monotonic() < deadline, found
        time.sleep(0.5)  # between two questions, until the deadline
    return found


def test_why_no_brain_answers(box: nspawn.Machine) -> None:
    """Stopped, kept from its port again and again, and given up: each is told by its name, with the brain's own last words."""
    text, action = brain_line(box)
    assert "gpuward.service is stopped" in text
    assert action == "`systemctl start gpuward`"
    assert "start it: `systemctl start gpuward`" in box.run(GPUWARD, "status").stderr

    assert box.run("systemd-run", "--unit=taker", "/usr/bin/python3", "-c", TAKER).returncode == 0
    box.run("systemctl", "start", "gpuward")
    text, action = told(box, "port 4222 of 127.0.0.1 is taken by another program")
    assert "gpuward.service does not stay up" in text
    assert "systemd starts it again by itself" in action

    file = box.root / "etc/gpuward/brain.toml"
    file.write_text("data_dir = 7\n")
    box.run("systemctl", "restart", "gpuward")
    deadline = time.monotonic() + WITHIN_S
    while box.run("systemctl", "is-active", "gpuward").stdout.strip() != "failed":
        assert time.monotonic() < deadline
        time.sleep(0.2)  # as above
    file.write_text(TOML.format(nats=4222))  # corrected, and nobody has started it again
    text, action = brain_line(box)
    assert "gpuward.service has failed, and systemd does not start it again" in text
    assert "data_dir" in text
    assert "systemctl restart gpuward" in action
