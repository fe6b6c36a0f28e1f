"""Whose lines are in a log that is diagnosed: of one machine, of several, of one that has two names; and in which order."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from brain.cli.diagnose import diagnose
from brain.cli.log_nodes import by_node
from tests.brain.diagnose_kit import ask_json

LOG_SERVER = (
    "{time} gpu-07 kernel: NVRM: Xid (PCI:0000:3b:00): 79, pid=1, name=python3, GPU has fallen off the bus.",
    "{time} gpu-08 kernel: NVRM: Xid (PCI:0000:3b:00): 48, pid=1, name=python3, DBE (double bit error) on FBPA",
    "{time} gpu-08 kernel: mlx5_core 0000:5e:00.0 ib3: Link down",
    "{time} gpu-09 kernel: mlx5_core 0000:5e:00.0 ib3: Link up",
)
JOURNAL = '{{"_HOSTNAME":"{host}","_TRANSPORT":"kernel","__REALTIME_TIMESTAMP":"1795180547123456","MESSAGE":"{text}"}}'


@pytest.mark.parametrize("form", ["syslog", "iso", "journal", "pdsh", "monotonic", "unix", "full"])
def test_a_log_of_several_machines(form: str, tmp_path: Path) -> None:
    """Each is judged by its own lines, by its own name; the lines are those of the file."""
    rows = []
    for row in LOG_SERVER:
        _, host, _, text = row.split(" ", 3)
        rows.append(
            {
                "syslog": row.format(time="Nov 24 03:11:05"),
                "iso": row.format(time="2026-11-24T03:11:05.1+00:00"),
                "journal": JOURNAL.format(host=host, text=text),
                "pdsh": f"{host}: [  12.345678] {text}",
                "monotonic": row.format(
                    time="[  123.456789]"
                ),  # journalctl -o short-monotonic, short-unix, short-full
                "unix": row.format(time="1795180547.123456"),
                "full": row.format(time="Tue 2026-11-24 03:11:05 UTC"),
            }[form]
        )
    (tmp_path / "central.log").write_text("\n".join(rows) + "\n")
    output = CliRunner().invoke(diagnose, [str(tmp_path / "central.log"), "--json"]).output
    found = {(one["cause"], one["scope"].split("/")[1]): one for one in json.loads(output)["incidents"]}
    assert {("gpu-lost", "gpu-07"), ("link-down", "gpu-08")} <= set(found)
    assert "gpu-09" not in {node for _, node in found}
    assert "gpu-08" in {node for cause, node in found if cause.startswith("gpu-")}
    assert found["link-down", "gpu-08"]["shown"][0].startswith("gpu-08:3: ")


@pytest.mark.parametrize(
    ("hosts", "nodes"),
    [
        (("(none)", "gpu-07"), {"log"}),
        # Until a machine has read its name, its journal calls it so.
        (("localhost", "gpu-07"), {"log"}),
        (("localhost.localdomain", "gpu-07.cluster.local"), {"log"}),
        (("gpu-07", "gpu-07.cluster.local"), {"log"}),  # the network told it the rest
        (("gpu-07", "gpu-07.cluster.local", "gpu-08"), {"gpu-07", "gpu-08"}),
        (("localhost", "gpu-07", "gpu-08"), {"localhost", "gpu-07", "gpu-08"}),  # whose that is nobody knows
        (("gpu-07.a", "gpu-07.b"), {"gpu-07-a", "gpu-07-b"}),
        (("gpu-07", "gpu-07.a", "gpu-07.b"), {"gpu-07", "gpu-07-a", "gpu-07-b"}),
        (("10.0.0.7", "10.0.0.8"), {"10-0-0-7", "10-0-0-8"}),
    ],
)
def test_one_machine_may_have_two_names(hosts: tuple[str, ...], nodes: set[str]) -> None:
    """It is one node then: what it says under both is its own fault, and none that two nodes share."""
    init = "NVRM: GPU 0000:3b:00.0: RmInitAdapter failed! (0x62:0x40:2393)"
    rows = [f"Nov 24 03:11:{second:02} {host} kernel: {init}" for second, host in enumerate(hosts)]
    found = list(by_node({"log": rows}, ()))
    assert {log.node for log in found} == nodes
    assert sorted(position for log in found for position in log.positions) == list(range(len(rows)))


GONE, BACK = "nfs: server fs1 not responding, still trying", "nfs: server fs1 OK"
OLD = "Nov 23 03:00:00 n kernel: usb 1-1: new high-speed USB device\n"


@pytest.mark.parametrize(
    ("log", "lasted_s"),
    [
        (f"Nov 24 13:30:00 n kernel: {BACK}\nNov 24 13:00:00 n kernel: {GONE}\n{OLD}", 1740),
        (
            f"Nov 24 13:30:00 n kernel: {GONE}\nNov 24 12:00:00 n kernel: {BACK}\nNov 24 11:59:00 n kernel: {GONE}\n{OLD}",
            0,
        ),
        (f"Jan  1 00:10:00 n kernel: {BACK}\nDec 31 23:40:00 n kernel: {GONE}\n{OLD}", 1740),
        (  # a message of several lines stays one
            f"2026-11-24T13:30:00Z n kernel: {BACK}\n2026-11-24T13:00:00Z n kernel: {GONE}\n"
            "2026-11-24T12:00:00Z n cron[7]: it says\n                               nfs: server fs1 OK\n",
            1740,
        ),
        (
            f"[  900.0] {BACK}\n[  500.0] {GONE}\n[  20.0] usb 1-1: x\n[  10.0] usb 1-1: y\n[   0.5] Linux version 6.1\n",
            340,
        ),
        # Not so: the machine was started again, or its clock was set.
        (f"[ 9000.0] usb 1-1: x\n[    0.0] Linux version 6.1\n[  500.0] {GONE}\n[  900.0] {BACK}\n", 340),
        (f"[ 9000.0] {GONE}\n[    0.0] Linux version 6.1\n", 0),
        (
            f"Nov 24 13:00:00 n kernel: x\nNov 24 12:00:00 n kernel: {GONE}\nNov 24 12:30:00 n kernel: {BACK}\n",
            1740,
        ),
    ],
)
def test_the_newest_line_may_come_first(log: str, lasted_s: float) -> None:
    """As `journalctl -r` and `tac` print: what stands below was before. It opens after a minute; lines keep their numbers."""
    (incident,) = ask_json(log)["incidents"]
    assert (incident["cause"], incident["lasted_s"]) == ("file-server-gone", lasted_s)
    first = incident["shown"][0]
    number = int(first.split(":")[1])
    assert GONE in first
    assert GONE in log.splitlines()[number - 1]
