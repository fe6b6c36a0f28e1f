"""`gpuward backtest` of long kernel logs: lines a second on one core, and memory."""

import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

from brain.cli.backtest.kernel_logs import LogsReader
from brain.cli.backtest.outcome import Input
from tests.benchmarks.figures import Figure

ROOT = Path(__file__).resolve().parents[2]
LINES = 1_000_000
XIDS = 800_000
XID = "NVRM: Xid (PCI:0000:3b:00): 79, pid=1, name=python3, GPU has fallen off the bus."
ORDINARY = (
    "usb 1-1: new high-speed USB device number {n} using xhci_hcd",
    'audit: type=1400 audit(1764300000.123:{n}): apparmor="STATUS" operation="profile_load" profile="unconfined"',
    "docker0: port {n}(veth12ab) entered forwarding state",
    "IPv6: ADDRCONF(NETDEV_CHANGE): eth{n}: becomes ready",
    "perf: interrupt took too long ({n} > 2500), lowering kernel.perf_event_max_sample_rate to 50000",
)
FORMS = {
    "dmesg": "[{s:5}.{us:06}] {text}",
    "syslog": "2026-11-{day:02}T{h:02}:{m:02}:{sec:02}+00:00 n1 kernel: {text}",
}


def lines(form: str, count: int, text: str = "") -> Iterator[str]:
    """Of one node: ordinary ones, or always the same."""
    for n in range(count):
        s = n // 10
        said = text or ORDINARY[n % len(ORDINARY)].format(n=n % 977)
        day, h, m = 1 + s // 86_400 % 28, s // 3600 % 24, s // 60 % 60
        yield form.format(s=s, us=n % 10 * 100_000, day=day, h=h, m=m, sec=s % 60, text=said) + "\n"


def write(file: Path, rows: Iterator[str]) -> Path:
    with file.open("w", encoding="utf-8") as sink:
        sink.writelines(rows)
    return file


def rate(file: Path) -> float:
    """Lines a second of one core, from the file to its facts."""
    counts = Input()
    began = time.process_time()
    LogsReader(counts).read(file, file.name, "n1")
    return counts.lines / (time.process_time() - began)


def peak_mb(file: Path) -> float:
    """Of a process that reads nothing but this."""
    code = (
        "import resource, sys; from pathlib import Path; from brain.cli.backtest.kernel_logs import LogsReader; "
        "from brain.cli.backtest.outcome import Input; LogsReader(Input()).read(Path(sys.argv[1]), 'n1.log', 'n1'); "
        "print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(file)], cwd=ROOT, check=True, capture_output=True, text=True
    )
    return float(done.stdout)


def run() -> list[Figure]:
    """The figures."""
    figures = []
    with TemporaryDirectory() as folder:
        for name, form in FORMS.items():
            file = write(Path(folder) / "n1.log", lines(form, LINES))
            rates = sorted(rate(file) for _ in range(3))
            figures.append(
                Figure(
                    what=f"backtest of {LINES:,} lines that mean nothing ({name}), one core",
                    value=f"{rates[1]:,.0f} lines/s",
                    beside=f"{rates[0]:,.0f} to {rates[2]:,.0f}",
                    target="≥ 100,000 lines/s",
                    met=rates[1] >= 100_000,
                )
            )
        few = peak_mb(write(Path(folder) / "n1.log", lines(FORMS["dmesg"], LINES // 10)))
        many = peak_mb(write(Path(folder) / "n1.log", lines(FORMS["dmesg"], LINES)))
        figures.append(
            Figure(
                what=f"backtest's memory, {LINES // 10:,} → {LINES:,} lines that mean nothing",
                value=f"{few:.0f} → {many:.0f} MB",
                beside="",
                target="grows by ≤ 10 MB",
                met=many - few <= 10,
            )
        )
        file = write(Path(folder) / "n1.log", lines(FORMS["dmesg"], XIDS, XID))
        storm = rate(file)
        figures.append(
            Figure(
                what=f"backtest of {XIDS:,} times one XID",
                value=f"{storm:,.0f} lines/s, {XIDS / storm:.1f} s",
                beside="",
                target="≥ 20,000 lines/s",
                met=storm >= 20_000,
            )
        )
    return figures
