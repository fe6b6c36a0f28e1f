"""Who listens where a token would go in clear."""

import os
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from brain.cli import listener
from brain.console.access import local_token

GPUWARD = str(Path(sys.executable).parent / "gpuward")
SQUATTER = 65_533
_ANSWER = b"HTTP/1.1 200 OK\\r\\nContent-Type: application/json\\r\\nContent-Length: 2\\r\\n\\r\\n{}"
SQUATS = f"""
import os, socket, sys
os.setgroups([]); os.setgid({SQUATTER}); os.setuid({SQUATTER})
one = socket.create_server((sys.argv[1], 0), family=socket.AF_INET6 if ":" in sys.argv[1] else socket.AF_INET)
print(one.getsockname()[1], flush=True)
while True:
    came, _ = one.accept()
    print(came.recv(4000), flush=True)
    came.sendall(b"{_ANSWER.decode()}"); came.close()
"""


@pytest.fixture(params=["127.0.0.1", "::1", "0.0.0.0"])
def squatter(request: pytest.FixtureRequest) -> Iterator[tuple[str, int, list[str]]]:
    """(host, port, what was sent there) of another user's program on a port that no brain has."""
    argv = [sys.executable, "-c", SQUATS, request.param]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        port = int(process.stdout.readline())
        heard: list[str] = []
        reader = threading.Thread(target=heard.extend, args=(process.stdout,))
        reader.start()
        try:
            yield request.param.replace("0.0.0.0", "127.0.0.1"), port, heard
        finally:
            process.kill()
            reader.join(30)


@pytest.mark.root
def test_a_squatter_is_shown_no_token(squatter: tuple[str, int, list[str]], tmp_path: Path) -> None:
    """Nothing reaches it; the error names it. Whoever says that this is the brain's user gets through."""
    host, port, heard = squatter
    (tmp_path / "ann.token").write_text("gw_0123456789ab_secret")
    url = f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"
    argv = [GPUWARD, "--url", url, "--token-file", str(tmp_path / "ann.token"), "nodes", "--json"]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 1
    assert "65533 listens at port" in done.stderr
    assert not heard
    assert listener.users(host, port) == {SQUATTER}
    trusting = os.environ | {listener.VARIABLE: str(SQUATTER)}
    done = subprocess.run(argv, capture_output=True, text=True, timeout=60, check=False, env=trusting)
    assert "listens at port" not in done.stderr
    assert any("secret" in line for line in heard), done.stderr


@pytest.mark.parametrize("trap", ["link", "second name", "pipe"])
def test_what_lies_where_the_brain_s_token_was_is_not_sent(
    trap: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A service that was taken over lays a link where root's commands look for the token: what it leads to is no token."""
    secret, place = tmp_path / "secret", tmp_path / "data" / local_token.name(8470)
    secret.write_text("root's alone")
    place.parent.mkdir()
    monkeypatch.setattr(local_token, "SYSTEM", (place.parent,))
    monkeypatch.setattr(local_token, "of_user", lambda: None)
    place.write_text("t0ken")
    assert local_token.found(8470) == "t0ken"
    place.unlink()
    if trap == "pipe":
        os.mkfifo(place)
    elif trap == "link":
        place.symlink_to(secret)
    else:
        place.hardlink_to(secret)
    assert local_token.found(8470) == ""


def test_own_listeners_and_nobody() -> None:
    """A brain of one's own is good; where nobody listens, connecting says so itself."""
    with socket.create_server(("127.0.0.1", 0)) as own:
        port = own.getsockname()[1]
        assert listener.users("localhost", port) == {os.getuid()}
        listener.check("127.0.0.1", port)
    assert listener.users("127.0.0.1", port) == set()
