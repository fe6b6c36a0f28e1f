"""ansible-rulebook in an environment of its own: the kernel log → its source → a rule → a module that posts the page.

The source reads the kernel log itself, so nothing stands between. The interpreter is given and modules are piped, which is faster
than the defaults; actions run side by side, as a rule would otherwise wait for the pages of those before it, four at most: the
default of 25 is more than two cores carry.
"""

import json
import os
import shutil
import subprocess
import tempfile
import threading
import time
from contextlib import ExitStack
from pathlib import Path

from tests.compare import kit
from tests.compare.kit import Result
from tests.real.kernel_log import FACILITY
from tests.real.nats import free_port

ROOT = Path(__file__).resolve().parents[2]
ENVIRONMENT = ROOT / ".compare"
NAME = "ansible-rulebook"
LINES = 15
WITHIN_S = 30.0
EVENTS = 10_000
EVENTS_WITHIN_S = 90.0
MARK = "decided "


def missing() -> str:
    """What must be installed first; empty: nothing."""
    if not (ENVIRONMENT / "bin/ansible-rulebook").exists():
        return "deploy/dev/compare.sh (ansible-rulebook from PyPI)"
    return "" if shutil.which("java") else "apt-get install default-jre-headless"


def rulebook(pager: str, go: Path) -> str:
    """One rule: a GPU that fails is decided about (a line of output), then paged."""
    page = {"url": pager, "method": "POST", "body_format": "json", "body": {"gpu": "{{ event.gpu }}"}}
    rule = {
        "name": "gpu fails",
        "condition": "event.xid == 64",
        "actions": [
            {"debug": {"msg": MARK + "{{ event.gpu }}"}},
            {"run_module": {"name": "ansible.builtin.uri", "module_args": page}},
        ],
    }
    source = {"kernel_log": {"facility": FACILITY, "go": str(go)}}
    return json.dumps([{"name": "gpus", "hosts": "all", "sources": [source], "rules": [rule]}])  # YAML, too


class _Said:
    """What it prints, with the times of its decisions."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self.decided: dict[str, float] = {}
        assert process.stdout is not None
        self._output = process.stdout
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self) -> None:
        for line in self._output:
            if line.startswith(MARK):
                self.decided.setdefault(line.split()[1], time.time())


def run() -> Result:
    """Needs root (the kernel log)."""
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        receiver = stack.enter_context(kit.pager(free_port()))
        go = folder / "go"
        go.mkdir()
        process = _start(stack, folder, receiver.url, go)
        said = _Said(process)
        assert kit.until((go / "reads").exists, 60, 0.1), _log(folder)
        time.sleep(kit.SETTLE_S)
        memory = kit.Memory({NAME: process.pid})
        failed, paged = kit.lines(receiver, LINES, (0.1, 0.5), WITHIN_S)
        with memory.watched():
            events_per_s = _rate(go, said)
            burst_paged, burst_s = _burst(go, receiver)
        assert process.poll() is None, _log(folder)
    return Result(
        name=NAME,
        version=_version(),
        lines=len(failed),
        decided_s=kit.spans(failed, said.decided),
        paged_s=kit.spans(failed, paged),
        events_per_s=events_per_s,
        burst_paged=burst_paged,
        burst_s=burst_s,
        idle_mb=memory.idle,
        load_mb=memory.most,
    )


def _start(stack: ExitStack, folder: Path, pager: str, go: Path) -> subprocess.Popen[str]:
    (folder / "rulebook.yml").write_text(rulebook(pager, go))
    here = {
        "ansible_connection": "local",
        "ansible_python_interpreter": str(ENVIRONMENT / "bin/python"),
        "ansible_pipelining": True,
    }
    (folder / "hosts.yml").write_text(json.dumps({"all": {"hosts": {"localhost": here}}}))
    argv = [
        str(ENVIRONMENT / "bin/ansible-rulebook"), "--rulebook", str(folder / "rulebook.yml"), "--inventory",
        str(folder / "hosts.yml"), "--source-dir", str(Path(__file__).parent / "sources"), "--execution-strategy", "parallel",
        "--max-concurrent-actions", "4", "--shutdown-delay", "1",
    ]  # fmt: skip
    return stack.enter_context(kit.child(argv, folder / "errors.log", _environ()))


def _environ() -> dict[str, str]:
    return os.environ | {"PATH": f"{ENVIRONMENT}/bin:{os.environ['PATH']}"}


def _log(folder: Path) -> str:
    return f"ansible-rulebook does not run:\n{(folder / 'errors.log').read_text()[-2000:]}"


def _began(go: Path) -> float:
    """When the source began to give what it was asked for."""
    file = go / "began"
    assert kit.until(lambda: file.exists() and file.read_text() != "", 30), (
        "the source does not look for its work"
    )
    at = float(file.read_text())
    file.unlink()
    return at


def _rate(go: Path, said: _Said) -> float:
    """Events a second until the last, which is a fault, has been decided about; 0: not in time."""
    said.decided.pop(kit.burst_gpus()[0], None)
    kit.ask(go, events=EVENTS, faults=1)
    began = _began(go)
    if not kit.until(lambda: kit.burst_gpus()[0] in said.decided, EVENTS_WITHIN_S):
        return 0.0
    return EVENTS / (said.decided[kit.burst_gpus()[0]] - began)


def _burst(go: Path, receiver: kit.Pager) -> tuple[int, float]:
    # The last fault of the run before is paged first.
    kit.until(lambda: kit.burst_gpus()[0] in receiver.arrived(kit.burst_gpus()[:1]), WITHIN_S)
    receiver.forget()
    kit.ask(go, events=kit.FAULTS, faults=kit.FAULTS)
    return kit.burst(receiver, _began(go))


def _version() -> str:
    said = subprocess.run(
        [ENVIRONMENT / "bin/ansible-rulebook", "--version"],
        capture_output=True,
        text=True,
        check=True,
        timeout=120,
        env=_environ(),
    )
    return version_of(said.stdout)


def version_of(said: str) -> str:
    """Of what `--version` prints: its own, that of Drools for Python, Java's and Ansible's."""
    words = {line.partition("=")[0].strip(): line.partition("=")[2].strip() for line in said.splitlines()[1:]}
    own = said.split("[", 1)[1].partition("]")[0]
    return (
        f"ansible-rulebook {own}, drools_jpy {words['Drools_jpy version']}, ansible-core {words['Ansible core version']},"
        f" Java {words['Java version']}"
    )
