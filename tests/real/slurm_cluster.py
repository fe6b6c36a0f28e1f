"""Slurm with four nodes on this machine: munged, slurmctld, four slurmd with eight GPUs each.

    with cluster() as slurm:
        job = slurm.submit("gpu1", gpus=2)
        slurm.run("scontrol", "show", "node", "gpu1")

In a PID namespace of its own: when its first process goes, so do all daemons, job steps and jobs. Needs root and
`apt-get install slurm-wlm munge` (and slurmrestd, slurm-wlm-jwt-plugin for the REST daemon). Starts in about a second.
"""

import os
import random
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

FILES = Path(__file__).resolve().parent / "slurm"
NODES = ("gpu1", "gpu2", "gpu3", "gpu4")
START_S = 60.0


def missing() -> str:
    """Why there can be no cluster here; empty when there can."""
    if os.geteuid() != 0:
        return "needs root"
    tools = {
        "slurmctld": "slurm-wlm",
        "munged": "munge",
        "slurmrestd": "slurmrestd slurm-wlm-jwt-plugin",
        "unshare": "util-linux",
    }
    absent = [package for tool, package in tools.items() if shutil.which(tool) is None]
    return f"needs apt-get install {' '.join(absent)}" if absent else ""


class Cluster:
    """A running cluster."""

    def __init__(self, folder: Path, more: str = "") -> None:
        """`more`: further lines of slurm.conf, @LAB@ for the cluster's folder."""
        self.folder = folder
        self.conf = folder / "slurm.conf"
        self.env = {**os.environ, "SLURM_CONF": str(self.conf), "LC_ALL": "C"}
        ports = _free_ports(6)
        self.controller_port, self.rest_port = ports[0], ports[1]
        for name in ("run", "log", "state", "spool", "dev", "jobs"):
            (folder / name).mkdir()
        for node in NODES:
            (folder / "spool" / node).mkdir()
        for gpu in range(8):
            os.mknod(folder / f"dev/nvidia{gpu}", 0o600 | 0o020000, os.makedev(1, 3))
        for secret in ("munge.key", "state/jwt_hs256.key"):
            (folder / secret).write_bytes(os.urandom(128))
            (folder / secret).chmod(0o600)
        lines = "\n".join(
            f"NodeName={node} NodeAddr=127.0.0.1 NodeHostname=localhost Port={port} CPUs=8 RealMemory=100"
            " Gres=gpu:h200:8 State=UNKNOWN"
            for node, port in zip(NODES, ports[2:], strict=True)
        )
        for source in FILES.iterdir():
            text = source.read_text().replace("@NODES@", f"{lines}\n{more}").replace("@LAB@", str(folder))
            target = folder / source.name
            target.write_text(text.replace("@PORT@", str(ports[0])).replace("@REST@", str(ports[1])))
            target.chmod(0o755 if source.suffix == ".sh" else 0o644)
        self._first: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Returns when all nodes are idle."""
        # setpriv: should the test process die, so does the namespace.
        argv = [
            "setpriv",
            "--pdeathsig",
            "KILL",
            "unshare",
            "--pid",
            "--fork",
            "--kill-child",
            "--mount-proc",
        ]
        with (self.folder / "log/first.log").open("wb") as log:
            self._first = subprocess.Popen(
                [*argv, "bash", str(self.folder / "first.sh")],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env=self.env,
                start_new_session=True,
            )
        self.until(
            lambda: self.run("sinfo", "-h", "-o", "%T %D", check=False).strip() == "idle 4", "not idle"
        )

    def stop(self) -> None:
        """Kills everything in the namespace."""
        if self._first is not None:
            os.killpg(self._first.pid, signal.SIGKILL)
            self._first.wait(60)

    def run(self, *argv: str, check: bool = True) -> str:
        """A tool's output."""
        done = subprocess.run(argv, capture_output=True, text=True, timeout=60, env=self.env, check=False)
        assert done.returncode == 0 or not check, (argv, done.stdout, done.stderr)
        return done.stdout

    def submit(self, node: str, *more: str, seconds: float = 120, gpus: int = 1, pin: bool = True) -> str:
        """A job that sleeps; its id, once its script runs there (one that is requeued earlier may hang in its end).

        Without `pin` it may run on any node, and the first one must be `node`.
        """
        job = self.run(
            *(
                "sbatch",
                "--parsable",
                "--open-mode=append",
                "-o",
                f"{self.folder}/jobs/%j.out",
                f"--gres=gpu:{gpus}",
            ),
            *(*(("-w", node) if pin else ()), *more, str(self.folder / "job.sh"), str(seconds)),
        ).strip()
        self.until(lambda: f"on {node}" in self.output(job), f"job {job} does not run on {node}")
        return job

    def submit_only(self, *more: str) -> str:
        """A job that may never run; its id."""
        out = ("-o", f"{self.folder}/jobs/%j.out")
        return self.run("sbatch", "--parsable", *out, *more, str(self.folder / "job.sh"), "60").strip()

    def reason(self, job: str) -> str:
        """Why it waits."""
        return self.run("squeue", "-h", "-j", job, "-o", "%r").strip()

    def kill_node(self, node: str) -> None:
        """Its slurmd dies."""
        for entry in Path("/proc").iterdir():
            try:
                argv = (entry / "cmdline").read_bytes().split(b"\0")
            except OSError:
                continue
            if argv[0] == b"slurmd" and node.encode() in argv and str(self.conf).encode() in argv:
                os.kill(int(entry.name), signal.SIGKILL)
                return
        raise AssertionError(f"no slurmd of {node} runs")

    def output(self, job: str) -> str:
        """What the job has written."""
        path = self.folder / f"jobs/{job}.out"
        return path.read_text() if path.exists() else ""

    def job(self, job: str) -> tuple[str, str]:
        """State and node; empty when slurmctld has forgotten it."""
        state, _, node = self.run(
            "squeue", "-h", "-t", "all", "-j", job, "-o", "%T %N", check=False
        ).partition(" ")
        return state.strip(), node.strip()

    def node(self, node: str) -> str:
        """What scontrol says of it."""
        return self.run("scontrol", "show", "node", node)

    def clean(self) -> None:
        """No jobs, all nodes in service."""
        self.run("scancel", "-u", "root", check=False)
        self.until(lambda: not self.run("squeue", "-h").strip(), "jobs do not end")
        self.until(self._all_in_service, "not idle")

    def _all_in_service(self) -> bool:
        """Are they? Those that are not are resumed: slurmctld may set a node DOWN again that has just rebooted."""
        rows = [
            line.split() for line in self.run("sinfo", "-N", "-h", "-p", "train", "-o", "%N %T").splitlines()
        ]
        # "idle*" is enough: a node that was resumed answers slurmctld within a second.
        out = [node for node, state in rows if state not in ("idle", "idle*")]
        for node in out:
            self.run("scontrol", "update", f"NodeName={node}", "State=RESUME", check=False)
        return not out

    def stop_controller(self) -> None:
        """slurmctld saves its state and ends."""
        pid = self.pid("slurmctld")
        os.kill(pid, signal.SIGTERM)
        self.until(lambda: _gone(pid), "slurmctld does not end")

    def start_controller(self) -> None:
        """Starts it again, with its saved state."""
        (self.folder / "run/again").write_text("slurmctld\n")

    def pid(self, name: str) -> int:
        """The daemon's process id, as this machine sees it."""
        for entry in Path("/proc").iterdir():
            try:
                line = (entry / "cmdline").read_bytes().split(b"\0")
            except OSError:
                continue
            if line[0] == name.encode() and str(self.conf).encode() in line:
                return int(entry.name)
        raise AssertionError(f"{name} does not run")

    def until(self, true: Callable[[], bool], why: str, within_s: float = START_S) -> None:
        """Waits for it."""
        end = time.monotonic() + within_s
        while not true():
            if self._first is not None and self._first.poll() is not None:
                raise AssertionError(f"the cluster has ended: {self._logs()}")
            assert time.monotonic() < end, f"{why}: {self._logs()}"
            time.sleep(0.05)

    def _logs(self) -> str:
        logs = sorted((self.folder / "log").iterdir())
        return "\n".join(f"{log.name}: {log.read_text(errors='replace')[-800:]}" for log in logs)


@contextmanager
def cluster(more: str = "") -> Iterator[Cluster]:
    """A cluster; gone with all its jobs when the block ends. `more`: as of Cluster."""
    # Not pytest's folder: slurmrestd runs as nobody and must be able to read its configuration.
    folder = Path(tempfile.mkdtemp(prefix="gw-slurm-"))
    folder.chmod(0o755)
    made = Cluster(folder, more)
    try:
        made.start()
        yield made
    finally:
        made.stop()
        shutil.rmtree(folder, ignore_errors=True)


def _gone(pid: int) -> bool:
    try:
        return "State:\tZ" in Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return True


def _free_ports(count: int) -> list[int]:
    """Ports below those that the kernel gives to connections, one of which may take a free one before its daemon does."""
    found: list[int] = []
    for port in random.sample(range(12_000, 32_000), 1000):
        with socket.socket() as probe:
            try:
                probe.bind(("", port))
            except OSError:
                continue
        found.append(port)
        if len(found) == count:
            return found
    raise AssertionError("no free ports")
