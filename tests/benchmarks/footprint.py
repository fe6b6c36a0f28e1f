"""Memory and CPU of all processes of a running agent: 8 GPUs (the fake library), 9 InfiniBand devices, default intervals.
Where Debian's prometheus-node-exporter is installed, it is measured on the same files.

    python -m tests.benchmarks footprint            # 60 s
    GPUWARD_FOOTPRINT_S=300 python -m tests.benchmarks footprint
"""

import os
import shutil
import subprocess
import sys
import tempfile
import time
import urllib.request
from contextlib import suppress
from pathlib import Path

from tests.benchmarks.figures import Figure
from tests.fixtures import nvml_fake
from tests.real.nats import NatsServer, free_port

DEVICES, GPUS = 9, 8
PSS_MB, CPU_PERCENT = 40.0, 0.5
WARM_UP_S = 20.0  # imports, the first inventory, the broker
_SCRAPE_S = 1.0  # the interval of the agent
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


def measure(pid: int, seconds: float, scrape: str = "") -> tuple[float, float]:
    """(highest PSS in MB, CPU in % of one core) of `pid` and its descendants over `seconds`; `scrape`: a URL to read."""
    began, used, highest = time.monotonic(), cpu_s(family(pid)), 0.0
    next_look = began
    while (now := time.monotonic()) < began + seconds:
        if scrape:
            with urllib.request.urlopen(scrape, timeout=10) as page:  # noqa: S310  our own child on loopback
                page.read()
        if now >= next_look:
            highest = max(highest, pss_mb(family(pid)))
            next_look = now + 5.0
        time.sleep(max(0.0, min(_SCRAPE_S, began + seconds - time.monotonic())))
    return highest, 100.0 * (cpu_s(family(pid)) - used) / (time.monotonic() - began)


def run() -> list[Figure]:
    """Needs gcc (the fake library); root only for the kernel log."""
    seconds = float(os.environ.get("GPUWARD_FOOTPRINT_S", "60"))
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        root = tree(folder)
        memory, cpu, processes = _agent(folder, root, seconds)
        beside = _exporter(folder, min(seconds, 60.0))
    what = f"{GPUS} GPUs, {DEVICES} InfiniBand devices, {seconds:.0f} s"
    return [
        Figure(
            what=f"agent, PSS of its {processes} processes: {what}",
            value=f"{memory:.1f} MB",
            beside=f"node-exporter {beside[0]:.1f} MB"
            if beside
            else "node-exporter is not installed: left out",
            target=f"≤ {PSS_MB:.0f} MB",
            met=memory <= PSS_MB,
        ),
        Figure(
            what="the same, CPU",
            value=f"{cpu:.2f} % of a core",
            beside=f"node-exporter, scraped each second: {beside[1]:.2f} %" if beside else "",
            target=f"≤ {CPU_PERCENT} %",
            met=cpu <= CPU_PERCENT,
        ),
    ]


def _agent(folder: Path, root: Path, seconds: float) -> tuple[float, float, int]:
    broker = NatsServer(folder / "nats")
    broker.start()
    fake = nvml_fake.FakeNvml(folder / "gpus", nvml_fake.build(folder / "lib"), GPUS)
    for index in range(GPUS):
        fake.hold(index, (os.getpid(), 70000))
    config = folder / "agent.toml"
    config.write_text(
        f'node = "lab-1"\nnats_url = "{broker.url}"\ndata_dir = "{folder}/agent"\nib_root = "{root}"\n'
    )
    argv = [sys.executable, "-m", "agent", "run", "--config", str(config)]
    with (folder / "agent.log").open("wb") as log:
        process = subprocess.Popen(argv, env={**os.environ, **fake.env}, stdout=log, stderr=log)
    try:
        time.sleep(WARM_UP_S)
        assert process.poll() is None, (folder / "agent.log").read_text()[-2000:]
        processes = len(family(process.pid))
        assert processes >= 2, "the NVML child does not run"
        memory, cpu = measure(process.pid, seconds)
    finally:
        process.terminate()
        process.wait(timeout=30)
        broker.kill()
    return memory, cpu, processes


def _exporter(folder: Path, seconds: float) -> tuple[float, float] | None:
    program = shutil.which("prometheus-node-exporter")
    if program is None:
        return None
    port = free_port()
    argv = [
        *(program, f"--web.listen-address=127.0.0.1:{port}", f"--path.sysfs={folder}/sys"),
        *(
            "--collector.disable-defaults",
            "--collector.infiniband",
            "--collector.meminfo",
            "--collector.filesystem",
        ),
        *("--collector.pressure", "--collector.timex", "--collector.netdev", "--log.level=error"),
    ]
    process = subprocess.Popen(argv, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        url = f"http://127.0.0.1:{port}/metrics"
        deadline = time.monotonic() + 10
        while True:
            try:
                with urllib.request.urlopen(url, timeout=5) as page:
                    page.read()
                break
            except OSError:
                if time.monotonic() > deadline or process.poll() is not None:
                    return None
                time.sleep(0.1)
        return measure(process.pid, seconds, url)
    finally:
        process.terminate()
        process.wait(timeout=10)
