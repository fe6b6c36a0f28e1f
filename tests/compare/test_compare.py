"""The comparison measures what it says: its parsers, its receiver and its table, without the systems."""

import json
import shutil
import subprocess
import time
import urllib.request
from pathlib import Path

import pytest

from tests.compare import kit, prometheus, report, rulebook, textfile
from tests.compare.__main__ import PAGE
from tests.compare.kit import Result
from tests.compare.sources.kernel_log import event_of, made
from tests.real.nats import free_port


@pytest.mark.parametrize(
    ("record", "xid"),
    [
        (b"620,1,2,-;NVRM: Xid (PCI:4000:05:00): 79, pid=1, GPU has fallen off the bus.\n", 79),
        (b"620,1,2,-;NVRM: Xid (PCI:4000:05:00): 31, pid=1, MMU Fault\n SUBSYSTEM=pci\n", 31),
        (b"4,1,2,-;NVRM: Xid (PCI:4000:05:00): 79, pid=1, GPU has fallen off the bus.\n", None),
        (b"620,1,2,c;usb 1-1: new device\n", None),
    ],
)
def test_the_readers_take_xids_of_their_own_facility_only(record: bytes, xid: int | None) -> None:
    """620 is the level warning of facility 77; the kernel's own lines and other words are left out."""
    event = event_of(record, 77)
    assert (event and (event["gpu"], event["xid"])) == (xid and ("4000:05:00", xid))


def test_every_system_has_the_same_faults_at_once() -> None:
    """The source of ansible-rulebook, which imports nothing of ours, makes the GPUs that the receiver waits for."""
    events = made(kit.FAULTS, kit.FAULTS)
    assert [event["gpu"] for event in events] == kit.burst_gpus()
    assert len({event["node"] for event in events}) == kit.FAULTS
    assert [event["xid"] for event in made(1_000, 1)].count(64) == 1


def test_a_page_counts_when_it_came_first(monkeypatch: pytest.MonkeyPatch) -> None:
    """A GPU fails, is paged, and paged again; another one is never paged. The repetition changes nothing."""
    written: list[str] = []
    monkeypatch.setattr(kit, "write_kernel_line", written.append)
    with kit.pager(free_port()) as receiver:

        def page(number: int) -> None:
            if number == 0:
                for _ in range(2):
                    body = json.dumps({"title": f"gpu/n1/{kit.gpu(0)}"}).encode()
                    urllib.request.urlopen(receiver.url, data=body, timeout=10).close()  # noqa: S310  ours

        failed, paged = kit.lines(receiver, 2, (0.0, 0.0), 0.2, wait=False, after=page)
    assert [kit.gpu(number) in line for number, line in enumerate(written)] == [True, True]
    assert paged == {kit.gpu(0): receiver.pages[0][0]}
    assert len(kit.spans(failed, paged)) == 1


def test_alertmanager_says_when_prometheus_decided() -> None:
    """`startsAt` has nine digits, fewer, or none; of two pages of an alert the first counts."""
    alerts = [
        {"labels": {"gpu": gpu}, "startsAt": at}
        for gpu, at in (
            ("a", "2026-11-25T10:00:00.123456789Z"),
            ("b", "2026-11-25T10:00:01.5Z"),
            ("c", "2026-11-25T10:00:02Z"),
        )
    ]
    again = {"alerts": [{"labels": {"gpu": "a"}, "startsAt": "2026-11-25T11:00:00Z"}]}
    fired = prometheus.fired([json.dumps({"alerts": alerts}), json.dumps(again)])
    assert [at - fired["c"] for at in fired.values()] == pytest.approx([-1.876544, -0.5, 0.0])


@pytest.mark.component("prometheus")
@pytest.mark.skipif(not shutil.which("promtool"), reason="needs apt: prometheus")
@pytest.mark.parametrize("setup", [prometheus.SHIPPED, prometheus.TUNED], ids=["shipped", "tuned"])
def test_prometheus_and_alertmanager_take_their_configuration(
    setup: prometheus.Setup, tmp_path: Path
) -> None:
    """By promtool and amtool; and the rule fires on the first sample of what the reader of the kernel log writes."""
    prometheus.configure(tmp_path, setup, "http://127.0.0.1:1/page", {"alertmanager": 2, "exporter": 3})
    textfile.write(tmp_path / "kernel.prom", ["4000:05:00"])
    metrics = (tmp_path / "kernel.prom").read_bytes()
    case = {
        "rule_files": ["rules.yml"],
        "tests": [
            {
                "interval": "1s",
                "input_series": [
                    {"series": metrics.decode().splitlines()[2].rpartition(" ")[0], "values": "64"}
                ],
                "alert_rule_test": [
                    {
                        "eval_time": "0s",
                        "alertname": "GpuFails",
                        "exp_alerts": [{"exp_labels": {"severity": "page", "gpu": "4000:05:00"}}],
                    }
                ],
            }
        ],
    }
    (tmp_path / "case.yml").write_text(json.dumps(case))
    for argv, given in (
        (["promtool", "check", "config", "prometheus.yml"], None),
        (["promtool", "check", "metrics"], metrics),
        (["promtool", "test", "rules", "case.yml"], None),
        (["amtool", "check-config", "alertmanager.yml"], None),
    ):
        done = subprocess.run(argv, cwd=tmp_path, input=given, capture_output=True, timeout=60)
        assert done.returncode == 0, f"{argv}: {done.stdout.decode()}{done.stderr.decode()}"


def test_the_rulebook_decides_before_it_pages(tmp_path: Path) -> None:
    """One rule with two actions; the versions of what runs it are read from its own words."""
    (book,) = json.loads(rulebook.rulebook("http://127.0.0.1:1/page", tmp_path))
    assert [list(action) for action in book["rules"][0]["actions"]] == [["debug"], ["run_module"]]
    said = "ansible-rulebook [1.3.2]\n  Drools_jpy version = 0.4.1\n  Java version = 17.0.15\n  Ansible core version = 2.19.14\n"
    assert rulebook.version_of(said) == (
        "ansible-rulebook 1.3.2, drools_jpy 0.4.1, ansible-core 2.19.14, Java 17.0.15"
    )


def test_memory_is_that_of_the_highest_look(tmp_path: Path) -> None:
    """A process that takes 50 MB after its start: idle below, the highest look above."""
    grows = "import sys, time; sys.stdin.readline(); x = b'x' * 50_000_000; print('has', flush=True); time.sleep(60)"
    process = subprocess.Popen(["python3", "-c", grows], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    try:
        memory = kit.Memory({"it": process.pid})
        assert process.stdin
        assert process.stdout
        with memory.watched():
            process.stdin.write(b"\n")
            process.stdin.flush()
            process.stdout.readline()
            assert kit.until(lambda: memory.most["it"] > memory.idle["it"] + 45, 30)
    finally:
        process.kill()
        process.communicate()


def test_the_table_says_what_did_not_come_and_what_is_missing() -> None:
    """Systems of which all came, of which some came, and one that is not there; the page keeps the rest of its text."""
    fast = Result(
        name="fast", version="1.0", lines=2, decided_s=[0.001, 0.002], paged_s=[0.01, 1.5], events_per_s=4900.4,
        burst_paged=kit.FAULTS, burst_s=0.25, idle_mb={"a": 10.0, "b": 20.0}, load_mb={"a": 11.0, "b": 29.0},
    )  # fmt: skip
    lossy = Result(
        name="lossy", version="2.0", lines=3, decided_s=[1.0], burst_paged=7, burst_s=3.0,
        idle_mb={"a": 5.0}, load_mb={"a": 6.0},
    )  # fmt: skip
    away = Result(name="away", missing="apt-get install away")
    text = report.block([fast, lossy, away], "2026-11-25", ((0.5, 1.0, 1.0), (2.0, 1.0, 1.0)))
    assert "load average before the run 0.5 1.0 1.0, after it 2.0 1.0 1.0:" in text
    assert (
        "| fast | 2.0 ms / 2.0 ms (of 2) | 1.5 s / 1.5 s (of 2) | 4,900 | 250.0 ms | 30 → 40 MB (a 10 → 11, b 20 → 29) |"
        in text
    )
    assert (
        "| lossy | 1.0 s / 1.0 s (**1 of 3 came**) | none of 3 came | – | **7 after 75 s** | 5 → 6 MB |"
        in text
    )
    assert "- away is left out: apt-get install away" in text
    assert "| away" not in text
    page = f"before\n{report.BEGIN}\nold\n{report.END}\nafter"
    assert report.put(page, text) == f"before\n{report.BEGIN}\n\n{text}\n\n{report.END}\nafter"
    with pytest.raises(ValueError, match="lacks"):
        report.put("no marks", text)


def test_the_page_has_the_table() -> None:
    """Between its marks, with the systems of a run."""
    table = PAGE.read_text().partition(report.BEGIN)[2].partition(report.END)[0]
    for name in ("gpuward", "Prometheus + Alertmanager, as shipped", "ansible-rulebook"):
        assert f"| {name} |" in table


def test_waiting_ends(tmp_path: Path) -> None:
    """What never comes about is waited for no longer than asked."""
    began = time.monotonic()
    assert not kit.until(lambda: False, 0.05)
    assert time.monotonic() - began < 30
