"""`gpuward backtest` of a folder of kernel logs: what it finds, and what it says of what it could not read."""

import gzip
import itertools
import lzma
import os
import random
from pathlib import Path

import pytest

from tests.brain.backtest.kit import DOWN, HELLO, LOST, UP, ask, ask_json, causes, folder, syslog

FORMS = {
    "syslog": "Nov 24 03:11:{second:02} gpu001 kernel: {text}",
    "iso": "2026-11-24T03:11:{second:02}.123456+00:00 gpu001 kernel: {text}",
    "dmesg": "[  {second}.123456] {text}",
    "kmsg": "4,{second},{second}123456,-;{text}",
}
LEAF = {f"gpu{n:03}": "{leaf: l1, rack: r1}" for n in range(1, 7)}


def topology(places: dict[str, str]) -> list[str]:
    return [f"{node}: {place}" for node, place in places.items()]


@pytest.mark.parametrize("form", FORMS)
def test_each_encoding_of_kernel_lines_is_read(form: str, tmp_path: Path) -> None:
    """The same fault is found in all of them, with its run, its page and its place."""
    lines = [FORMS[form].format(second=n, text=text) for n, text in enumerate((HELLO, LOST, HELLO), 10)]
    found = ask_json(folder(tmp_path, {"gpu001.log": lines}))
    assert causes(found) == [("gpu-lost", "gpu/gpu001/0000:3b:00")]
    assert [(one["runbook"], one["disrupts"]) for one in found["decisions"]] == [("gpu-lost", "node")]
    assert found["pages"][0]["sent"]["open"] == 1
    assert (found["input"]["lines"], found["input"]["meaningful"], found["input"]["unread"]) == (3, 1, 0)
    assert found["ok"]


def test_an_end_is_told(tmp_path: Path) -> None:
    """A link that comes back has a time from and until, by the log's clock."""
    rows = [("03:11:00", UP), ("03:12:00", DOWN), ("03:20:00", UP), ("04:30:00", HELLO)]
    found = ask_json(folder(tmp_path, {"gpu001.log": syslog("gpu001", *rows)}))
    (incident,) = found["incidents"]
    assert (incident["cause"], incident["since"], incident["until"]) == (
        "link-down",
        "2026-11-24T03:12:00Z",
        "2026-11-24T03:20:00Z",
    )


def test_several_nodes_share_one_cause(tmp_path: Path) -> None:
    """Six of six nodes lose a link within seconds: one incident, and no run for the later ones."""
    logs = {
        f"{node}.log": syslog(node, ("03:11:00", UP), (f"03:12:0{n}", DOWN), ("03:30:00", HELLO))
        for n, node in enumerate(LEAF)
    }
    found = ask_json(folder(tmp_path, logs | {"topology.yaml": topology(LEAF)}))
    assert len(found["incidents"]) == 1
    assert found["incidents"][0]["nodes"] == 6
    assert found["incidents"][0]["cause"].startswith("shared-link-down")
    assert found["explained"] >= 1


@pytest.mark.parametrize("form", ["dmesg", "kmsg"])
def test_logs_without_dates_are_judged_one_by_one(form: str, tmp_path: Path) -> None:
    """Seconds since boot say nothing about what two machines share, and the answer says so."""
    lines = [FORMS[form].format(second=n, text=text) for n, text in enumerate((UP, DOWN, HELLO), 10)]
    found = ask_json(folder(tmp_path, {f"{node}.log": lines for node in LEAF}))
    assert [cause for cause, _ in causes(found)] == ["link-down"] * 6
    assert found["input"]["undated"] == list(LEAF)
    assert "judged by itself" in ask(tmp_path).replace("\n  ", " ")


@pytest.mark.parametrize(
    ("name", "node"),
    [
        ("gpu007.log", "gpu007"),
        ("messages-gpu007", "gpu007"),
        ("gpu007.log.1", "gpu007"),
        ("gpu007.log-20261124.gz", "gpu007"),
        ("gpu007.log.xz", "gpu007"),
        ("dmesg.gpu007.txt", "gpu007"),
        ("gpu007/dmesg", "gpu007"),
        ("rack2/gpu007.log", "gpu007"),
        ("messages", "gpu009"),  # the machine that the lines name
        ("n-2.log", "n-2"),
    ],
)
def test_whose_a_log_is(name: str, node: str, tmp_path: Path) -> None:
    """By its name, by its folder's, or by its lines."""
    folder(tmp_path, {name: syslog("gpu009", ("03:12:00", LOST))})
    file = tmp_path / name
    if file.suffix in (".gz", ".xz"):
        pack = gzip.compress if file.suffix == ".gz" else lzma.compress
        file.write_bytes(pack(file.read_bytes()))
    assert causes(ask_json(tmp_path)) == [("gpu-lost", f"gpu/{node}/0000:3b:00")]


def test_rotated_logs_of_one_node_are_one(tmp_path: Path) -> None:
    """A fault that ends in the newer file ends."""
    old = syslog("n1", ("03:11:00", UP), ("03:12:00", DOWN))
    new = syslog("n1", ("03:20:00", UP), ("04:30:00", HELLO))
    (incident,) = ask_json(folder(tmp_path, {"n1.log.1": old, "n1.log": new}))["incidents"]
    assert incident["until"] == "2026-11-24T03:20:00Z"


def test_facts_beside_the_logs_count(tmp_path: Path) -> None:
    """What no kernel log has: a node falls silent; another's service fails."""
    facts = [
        '{"at": "2026-11-24T03:12:00Z", "node": "gpu001", "alive": false}',
        '{"at": "2026-11-24T03:40:00Z", "node": "gpu002", "kind": "gpu.lost", "component": "gpu/0000:3b:00",'
        ' "data": {"reason": "lost"}}',
    ]
    logs = {"gpu002.log": syslog("gpu002", ("03:10:00", HELLO)), "facts.jsonl": facts}
    found = ask_json(folder(tmp_path, logs))
    assert ("gpu-lost", "gpu/gpu002/0000:3b:00") in causes(found)
    assert any(place == "node/gpu001" for _, place in causes(found))
    assert found["input"]["facts"] == 2


def test_facts_as_yaml_are_the_same(tmp_path: Path) -> None:
    """For people who write them by hand."""
    fact = [
        "- at: 2026-11-24T03:40:00Z",
        "  node: gpu002",
        "  kind: gpu.lost",
        "  component: gpu/0000:3b:00",
        "  data: {reason: lost}",
    ]
    found = ask_json(folder(tmp_path, {"facts.yaml": fact}))
    assert causes(found) == [("gpu-lost", "gpu/gpu002/0000:3b:00")]


@pytest.mark.parametrize(
    ("fact", "says"),
    [
        (
            '{"at": "2026-11-24T03:12:00Z", "node": "n1", "kind": "gpu.lsot"}',
            "line 1: there is no kind of event 'gpu.lsot'",
        ),
        ('{"node": "n1", "kind": "gpu.lost"}', "line 1: 'at' is missing"),
        ('{"at": "yesterday", "node": "n1", "kind": "gpu.lost"}', "line 1: Invalid isoformat"),
        ('{"at": 1, "node": "a b", "kind": "gpu.lost"}', "line 1: node"),
        ("not json", "line 1: is no JSON"),
    ],
)
def test_a_wrong_fact_is_named(fact: str, says: str, tmp_path: Path) -> None:
    """File, line and what is wrong with it."""
    folder(tmp_path, {"facts.jsonl": [fact], "n1.log": syslog("n1", ("03:12:00", LOST))})
    from click.testing import CliRunner

    from brain.cli.backtest_command import backtest

    error = CliRunner().invoke(backtest, [str(tmp_path)]).exception
    assert says in str(error)
    assert "facts.jsonl" in str(error)


def test_the_order_of_the_files_changes_nothing(tmp_path: Path) -> None:
    """Whatever the names sort like: the same incidents, decisions and pages."""
    draw = random.Random(7)
    texts = [
        LOST,
        DOWN,
        UP,
        HELLO,
        "EXT4-fs error (device sda1): ext4_find_entry:1455: inode #2: comm x: reading directory lblock 0",
    ]
    logs = {}
    for n in range(1, 6):
        times = sorted(draw.sample(range(60), 12))
        logs[f"n{n}"] = syslog(f"n{n}", *((f"03:{at:02}:00", draw.choice(texts)) for at in times))
    seen = []
    for number, order in enumerate(itertools.islice(itertools.permutations(logs), 0, 120, 30)):
        names = {f"{rank}/{node}.log": logs[node] for rank, node in enumerate(order)}
        found = ask_json(folder(tmp_path / str(number), names))
        found.pop("input")
        seen.append(found)
    assert all(one == seen[0] for one in seen)
    assert seen[0]["incidents"]


def test_two_runs_print_the_same_bytes(tmp_path: Path) -> None:
    """No clock, no name of this machine, no chance."""
    logs = {
        f"{node}.log": syslog(node, ("03:11:00", UP), ("03:12:00", DOWN), ("03:13:00", LOST)) for node in LEAF
    }
    folder(tmp_path, logs)
    assert ask(tmp_path) == ask(tmp_path)
    assert ask(tmp_path, "--json") == ask(tmp_path, "--json")


# Its owner may only write it, and the kernel lets not even root read it.
WRITE_ONLY = Path("/sys/bus/cpu/drivers_probe")


def test_a_file_without_permission_is_named(tmp_path: Path) -> None:
    """And the others are judged all the same."""
    folder(tmp_path, {"n1.log": syslog("n1", ("03:12:00", LOST))})
    (tmp_path / "n2.log").symlink_to(WRITE_ONLY)
    found = ask_json(tmp_path, status=1)
    assert causes(found) == [("gpu-lost", "gpu/n1/0000:3b:00")]
    assert "n2.log" in found["input"]["unreadable"]


def test_what_cannot_be_read_is_named_and_ends_nothing(tmp_path: Path) -> None:
    """Links in a circle, a pipe, a damaged archive, a broken link; what stands before the damage counts."""
    good = syslog("n1", ("03:12:00", LOST))
    many = [f"2026-11-24T03:13:00+00:00 n3 kernel: audit {random.Random(n).random()}" for n in range(20_000)]
    folder(tmp_path, {"n1.log": good})
    (tmp_path / "loop").symlink_to(tmp_path)
    (tmp_path / "a.log").symlink_to(tmp_path / "b.log")
    (tmp_path / "b.log").symlink_to(tmp_path / "a.log")
    (tmp_path / "gone.log").symlink_to(tmp_path / "nowhere")
    os.mkfifo(tmp_path / "pipe.log")
    (tmp_path / "n3.log.gz").write_bytes(
        gzip.compress("\n".join([*syslog("n3", ("03:12:00", LOST)), *many]).encode())[:-12]
    )
    found = ask_json(tmp_path, status=1)
    assert ("gpu-lost", "gpu/n1/0000:3b:00") in causes(found)
    assert ("gpu-lost", "gpu/n3/0000:3b:00") in causes(found)
    assert set(found["input"]["unreadable"]) == {"a.log", "b.log", "gone.log", "pipe.log", "n3.log.gz"}


@pytest.mark.parametrize(
    ("status", "content"),
    [
        (1, b"\0" * 5000 + b"\n"),
        (0, b"x" * 3_000_000 + b"\n"),
        (0, b"\xff\xfe\x80 caf\xe9 \xf0\x9f\x98\x80\n"),
        (0, b"\r\n" * 500),
        (1, random.Random(3).randbytes(200_000)),
        (1, b"\x1b]0;owned\x07\x1b[2J\n"),
    ],
    ids=["nul", "huge", "mixed", "empty lines", "random", "escapes"],
)
def test_hostile_bytes_hide_no_fault(status: int, content: bytes, tmp_path: Path) -> None:
    """Before and behind a line that means something, with either end of line and a byte order mark; and an all-clear is given
    only where all could be read (status 1).
    """
    line = syslog("n1", ("03:12:00", LOST))[0].encode() + b"\r\n"
    (tmp_path / "n1.log").write_bytes(b"\xef\xbb\xbf" + line + content + b"\n" + line.replace(b"3b", b"5e"))
    found = ask_json(tmp_path, status=status)
    assert "\x1b" not in ask(tmp_path, status=status)
    assert {place for _, place in causes(found)} >= {"gpu/n1/0000:3b:00", "gpu/n1/0000:5e:00"}
    assert bool(found["input"]["blind"]) == bool(status)


def test_utf_16_is_read(tmp_path: Path) -> None:
    """As a Windows terminal keeps what it shows."""
    (tmp_path / "n1.log").write_bytes(syslog("n1", ("03:12:00", LOST))[0].encode("utf-16"))
    assert causes(ask_json(tmp_path)) == [("gpu-lost", "gpu/n1/0000:3b:00")]


def test_an_empty_folder_says_what_to_name(tmp_path: Path) -> None:
    """Nothing to read is an error of whoever asks."""
    from click.testing import CliRunner

    from brain.cli.backtest_command import backtest

    error = CliRunner().invoke(backtest, [str(tmp_path)]).exception
    assert "there is nothing to read in it: name a folder with a file <node>.log" in str(error)
