"""Memory and CPU of all processes of a running agent: 8 GPUs (the fake library), 9 InfiniBand devices, default intervals.

The GPUs are those of a healthy H100 board at work: what they use, their power and their temperature change all the time.
In the same run: an agent without either, and Debian's prometheus-node-exporter, where it is installed, as it is usually scraped.

    python -m tests.benchmarks footprint            # 60 s
    GPUWARD_FOOTPRINT_S=600 python -m tests.benchmarks footprint
"""

import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Callable, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from pathlib import Path

from tests.benchmarks.figures import Figure
from tests.fixtures import nvml_fake
from tests.real.nats import NatsServer, free_port

NODE = "lab-1"
DEVICES, GPUS = 9, 8
PSS_MB, CPU_PERCENT, IDLE_CPU_PERCENT = 36.0, 0.3, 0.15
WARM_UP_S = 75.0  # imports, the first inventory, the broker, and a minute in which nothing happens
SCRAPE_S = 15.0  # Prometheus' usual interval
LOOK_S = 5.0  # between looks at the memory
_TICKS = os.sysconf("SC_CLK_TCK")
# The files of a port of a ConnectX-7, and their contents.
_STATE = {
    "state": "4: ACTIVE",
    "phys_state": "5: LinkUp",
    "rate": "400 Gb/sec (4X NDR)",
    "lid": "0x1f",
    "sm_lid": "0x1",
    "sm_sl": "0",
    "link_layer": "InfiniBand",
    "cap_mask": "0xa751e848",
}
_COUNTERS = (
    *(
        "symbol_error",
        "link_error_recovery",
        "link_downed",
        "port_rcv_errors",
        "port_rcv_remote_physical_errors",
    ),
    *("port_rcv_switch_relay_errors", "port_xmit_discards", "port_xmit_constraint_errors", "VL15_dropped"),
    *("port_rcv_constraint_errors", "local_link_integrity_errors", "excessive_buffer_overrun_errors"),
    *("port_xmit_wait", "port_xmit_data", "port_rcv_data", "port_xmit_packets", "port_rcv_packets"),
    *("unicast_xmit_packets", "unicast_rcv_packets", "multicast_xmit_packets", "multicast_rcv_packets"),
)
_HW_COUNTERS = (
    *(
        "out_of_sequence",
        "packet_seq_err",
        "implied_nak_seq_err",
        "local_ack_timeout_err",
        "rnr_nak_retry_err",
    ),
    *("out_of_buffer", "duplicate_request", "roce_adp_retrans", "roce_adp_retrans_to", "roce_slow_restart"),
    *("roce_slow_restart_cnps", "roce_slow_restart_trans", "rx_icrc_encapsulated", "np_cnp_sent"),
    *("np_ecn_marked_roce_packets", "rp_cnp_handled", "rp_cnp_ignored", "req_cqe_error", "resp_cqe_error"),
    *("req_remote_access_errors", "req_remote_invalid_request", "resp_local_length_error", "lifespan"),
)


def tree(folder: Path) -> Path:
    """Writes sys/class/infiniband with DEVICES devices; returns its path."""
    root = folder / "sys/class/infiniband"
    for number in range(DEVICES):
        port = root / f"mlx5_{number}/ports/1"
        for group in ("counters", "hw_counters"):
            (port / group).mkdir(parents=True)
        for name, text in {"hca_type": "MT4129", "board_id": "MT_0000000838", "fw_ver": "28.39.1002"}.items():
            (port.parents[1] / name).write_text(f"{text}\n")
        for name, text in _STATE.items():
            (port / name).write_text(f"{text}\n")
        for group, names in (("counters", _COUNTERS), ("hw_counters", _HW_COUNTERS)):
            for name in names:
                (port / group / name).write_text("0\n")
    return root


def family(pid: int) -> list[int]:
    """`pid` and its living descendants."""
    found = [pid]
    for task in Path(f"/proc/{pid}/task").iterdir():
        with suppress(OSError):
            for child in (task / "children").read_text().split():
                found += family(int(child))
    return found


def pss_mb(pids: list[int]) -> float:
    """Proportional set size of all the processes, MB."""
    total_kb = 0
    for pid in pids:
        with suppress(OSError):
            lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
            total_kb += next(int(line.split()[1]) for line in lines if line.startswith("Pss:"))
    return total_kb * 1024 / 1e6


def cpu_s(pids: list[int]) -> float:
    """CPU time of the processes and of their ended children, seconds."""
    ticks = 0
    for pid in pids:
        with suppress(OSError):
            fields = Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2].split()
            ticks += sum(int(field) for field in fields[11:15])
    return ticks / _TICKS


@dataclass(slots=True, kw_only=True)
class Family:
    """A process with its descendants, and what they used while they were watched."""

    pid: int
    began_s: float = 0.0
    used_s: float = 0.0
    # Of one core.
    cpu_percent: float = 0.0
    # The highest of all looks.
    pss_mb: float = 0.0
    processes: int = 0


def work(fake: nvml_fake.FakeNvml) -> None:
    """A second of training: nothing stays as it was."""
    for index in range(GPUS):
        fake.set(
            index,
            util=random.randint(90, 100),
            reasons=random.choice((0, 4)),
            power_mw=random.randint(450_000, 690_000),
            temp=random.randint(55, 65),
            margin=random.randint(20, 30),
        )


def watch(
    families: Sequence[Family],
    seconds: float,
    scrape: str = "",
    each_second: Callable[[], None] = lambda: None,
) -> None:
    """Watches all of them at once, so that they share the machine's moods; `scrape`: a URL to read every SCRAPE_S."""
    began = time.monotonic()
    for one in families:
        one.began_s, one.used_s = began, cpu_s(family(one.pid))
    next_scrape = next_look = began
    end = began + seconds
    while (now := time.monotonic()) < end:
        each_second()
        if scrape and now >= next_scrape:
            with urllib.request.urlopen(scrape, timeout=10) as page:  # noqa: S310  our own child on loopback
                page.read()
            next_scrape += SCRAPE_S
        if now >= next_look:
            next_look += LOOK_S
            for one in families:
                pids = family(one.pid)
                one.pss_mb, one.processes = max(one.pss_mb, pss_mb(pids)), len(pids)
        time.sleep(max(0.0, min(1.0, end - time.monotonic())))
    for one in families:
        one.cpu_percent = 100.0 * (cpu_s(family(one.pid)) - one.used_s) / (time.monotonic() - one.began_s)


def run() -> list[Figure]:
    """Needs gcc (the fake library); root only for the kernel log. One agent after the other, as on a node."""
    seconds = float(os.environ.get("GPUWARD_FOOTPRINT_S", "60"))
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        fake = nvml_fake.FakeNvml(folder / "gpus", nvml_fake.build(folder / "lib"), GPUS)
        for index in range(GPUS):
            fake.well(index)
            fake.hold(index, (os.getpid(), 70000))
        work(fake)
        full, beside = _watched(folder / "full", seconds, tree(folder), fake)
        idle, beside_idle = _watched(folder / "idle", seconds, folder / "none", None)
    assert full.processes >= 2, "the NVML child does not run"
    what = f"{GPUS} GPUs, {DEVICES} InfiniBand devices, {seconds:.0f} s"
    return [
        Figure(
            what=f"agent, PSS of its {full.processes} processes: {what}",
            value=f"{full.pss_mb:.1f} MB",
            beside=f"node-exporter {beside.pss_mb:.1f} MB"
            if beside
            else "node-exporter is not installed: left out",
            target=f"≤ {PSS_MB:.0f} MB",
            met=full.pss_mb <= PSS_MB,
        ),
        Figure(
            what="the same, CPU",
            value=f"{full.cpu_percent:.2f} % of a core",
            beside=_exporters(beside),
            target=f"≤ {CPU_PERCENT} %",
            met=full.cpu_percent <= CPU_PERCENT,
        ),
        Figure(
            what="agent without GPUs and InfiniBand, CPU",
            value=f"{idle.cpu_percent:.2f} % of a core, {idle.pss_mb:.1f} MB",
            beside=_exporters(beside_idle),
            target=f"≤ {IDLE_CPU_PERCENT} %",
            met=idle.cpu_percent <= IDLE_CPU_PERCENT,
        ),
    ]


def _exporters(beside: Family | None) -> str:
    if beside is None:
        return ""
    return f"node-exporter, scraped every {SCRAPE_S:.0f} s: {beside.cpu_percent:.2f} %"


def _watched(
    folder: Path, seconds: float, ib_root: Path, fake: nvml_fake.FakeNvml | None
) -> tuple[Family, Family | None]:
    """An agent, and the node exporter beside it, where it is installed."""
    with ExitStack() as stack:
        broker = NatsServer(folder / "nats", nodes=[NODE])
        broker.start()
        stack.callback(broker.kill)
        _taker(stack, broker.url)
        agent = Family(pid=_agent(stack, folder, broker.node_url(NODE), ib_root, fake.env if fake else {}))
        pid, url = _exporter(stack)
        beside = Family(pid=pid) if pid else None
        time.sleep(WARM_UP_S)
        each_second = (lambda: work(fake)) if fake else (lambda: None)
        watch([agent, beside] if beside else [agent], seconds, url, each_second)
    return agent, beside


def _taker(stack: ExitStack, broker: str) -> None:
    """The part of a brain that takes what nodes offer, in a process of its own."""
    argv = [sys.executable, "-m", "tests.real.intake_kit", broker]
    process = subprocess.Popen(argv, stdout=subprocess.PIPE)
    _child(stack, process)
    assert process.stdout is not None
    assert process.stdout.readline() == b"ready\n"


def _agent(stack: ExitStack, folder: Path, broker: str, ib_root: Path, env: dict[str, str]) -> int:
    """Starts an agent until the stack ends; its pid."""
    config = folder / "agent.toml"
    config.write_text(
        f'node = "{NODE}"\nnats_url = "{broker}"\ndata_dir = "{folder}/data"\nib_root = "{ib_root}"\n'
    )
    argv = [sys.executable, "-m", "agent", "run", "--config", str(config)]
    log = stack.enter_context((folder / "agent.log").open("wb"))
    return _child(stack, subprocess.Popen(argv, env={**os.environ, **env}, stdout=log, stderr=log))


def _child(stack: ExitStack, process: subprocess.Popen[bytes]) -> int:
    def stop() -> None:
        assert process.poll() is None, f"{process.args!r} has ended by itself"
        process.terminate()
        process.wait(timeout=30)

    stack.callback(stop)
    return process.pid


def _exporter(stack: ExitStack) -> tuple[int, str]:
    """Starts Debian's node exporter with its default collectors; (pid, URL), or (0, "") where it is not installed."""
    program = shutil.which("prometheus-node-exporter")
    if program is None:
        return 0, ""
    port = free_port()
    argv = [program, f"--web.listen-address=127.0.0.1:{port}", "--log.level=error"]
    pid = _child(stack, subprocess.Popen(argv, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL))
    url = f"http://127.0.0.1:{port}/metrics"
    deadline = time.monotonic() + 10
    while True:
        try:
            with urllib.request.urlopen(url, timeout=5) as page:
                page.read()
            return pid, url
        except OSError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.1)
