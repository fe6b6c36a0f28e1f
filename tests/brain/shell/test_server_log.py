"""What the embedded server's log says about nodes, and how large it may become."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from brain.adapters import server_log
from brain.adapters.nats_server import NatsServer
from brain.adapters.server_log import ServerLog

START = "[7] 2026/01/01 00:00:00.000000 [ERR] 127.0.0.1:34542 - cid:355 - "
USER = '"N_n1/nkey:UBMJG662" - '
REFUSED = (
    f'{START}"v2.16.0:python3" - {USER}Publish Violation - Subject "ward.default.offer.n1.x"',
    f'{START}"v2.16.0:python3" - {USER}Subscription Violation - Subject "foo", SID 1',
    f'{START}"v2.16.0:python3" - {USER}maximum payload exceeded: 200000 vs 133121',
    f'{START}{USER}Publish Violation - Subject "x"',
    # Its version, language, name and subject are the client's own words, quoted by nats-server 2.15.1.
    f'{START}"v1\\" - \\"N_n2/nkey:UX\\" - Publish Violation - Subject \\"x\\n[ERR] 1.2.3.4:5 - cid:1 - \\"v\\" - \\"N_n3/nkey:U'
    f'\\" - Publish Violation:python3:x" - {USER}Publish Violation - Subject "x\\" - \\"N_n4/nkey:U\\" - Publish Violation"',
    f'{START}"N_n2/nkey:UX" - {USER}Publish Violation - Subject "x"',
)
OTHER = (
    f'{START}"v2.16.0:python3" - {USER}Slow Consumer Detected: WriteDeadline',
    f'{START}"v2.16.0:python3" - "WARD/nkey:UBMJG662" - Publish Violation - Subject "x"',
    "[7] 2026/01/01 00:00:00.000000 [INF] Reloaded server configuration",
)


@pytest.mark.parametrize("line", REFUSED)
def test_a_node_that_is_refused_something(tmp_path: Path, line: str) -> None:
    """The account's name, whatever the client says."""
    log = ServerLog(tmp_path / "nats.log")
    log.path.write_text(f"{line}\n")
    log.look()
    assert log.take_refused() == {"n1": 1}
    assert log.take_refused() == {}


def test_other_lines_are_about_no_node(tmp_path: Path) -> None:
    """Nor is half a line, until the rest of it is there."""
    log = ServerLog(tmp_path / "nats.log")
    log.path.write_text("\n".join((*OTHER, REFUSED[0][:150])))
    log.look()
    assert log.take_refused() == {}
    with log.path.open("a") as more:
        more.write(f"{REFUSED[0][150:]}\n")
    log.look()
    assert log.take_refused() == {"n1": 1}


def test_the_file_is_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It begins anew, but not while somebody waits for a line of it."""
    monkeypatch.setattr(server_log, "MAX_BYTES", 1000)
    log = ServerLog(tmp_path / "nats.log")
    with log.path.open("a") as server:
        server.write(f"{REFUSED[0]}\n" * 100)
        server.flush()
        with log.waits:
            log.bound()
        assert log.path.stat().st_size > 1000
        log.bound()
        assert log.path.stat().st_size == 0
        assert (tmp_path / "nats.log.1").stat().st_size > 1000
        server.write(f"{REFUSED[0]}\n")
    log.look()
    assert log.take_refused() == {"n1": 101}


@pytest.mark.parametrize("make", [Path.mkdir, os.mkfifo, lambda path: path.symlink_to(os.devnull)])
def test_what_is_no_file_is_moved_away(tmp_path: Path, make: Callable[[Path], None]) -> None:
    """A pipe would be waited for, for ever; what the server says into a device nobody could read again."""
    make(tmp_path / "nats.log")
    log = ServerLog(tmp_path / "nats.log")
    with log.opened() as sink:
        sink.write(b"[ERR] no space left on device\n")
    log.look()
    assert log.out_of_space
    assert os.path.lexists(tmp_path / "nats.log.damaged")


def test_a_pipe_in_the_place_of_the_pid_keeps_no_server_from_starting(tmp_path: Path) -> None:
    """It is left by a brain that was killed; what cannot be read names nobody."""
    os.mkfifo(tmp_path / "nats.pid")
    NatsServer(tmp_path, cell="c")._end_orphan()
