"""The file server of the brain's files hangs: not even `stat` returns. The leader goes on, and answers; then all is as it was."""

import os
import shutil
import signal
import subprocess
import time
import urllib.request
import uuid
from collections.abc import Iterator
from pathlib import Path
from urllib.error import HTTPError

import pytest

from tests import people
from tests.e2e.stack import BIN, Stack
from tests.real.disk_kit import FileServer, file_server
from tests.real.kernel_log import HEARD, write_kernel_line

pytestmark = [
    pytest.mark.root,
    pytest.mark.component("nats-server"),
    pytest.mark.component("bindfs"),
    pytest.mark.timeout(300),
]
TTL_S = 2.0
AUTO = '[[modes]]\nmode = "auto"\n[snapshot]\nevery_s = 1\n'
ALLOWED = f'{HEARD}\nallow = ["evidence.collect"]'
ANSWER_S = 1.0
TRIES = 3  # of what must be quick: a loaded machine may hold up one
BOB = '[console.users.bob]\nrole = "viewer"\n'


@pytest.fixture(name="runtime", params=[True, False], ids=["with a runtime folder", "without"])
def _runtime(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever starts the brain gives it a folder in memory, as its unit does, or does not."""
    monkeypatch.delenv("RUNTIME_DIRECTORY", raising=False)
    if request.param:
        (tmp_path / "run").mkdir()
        monkeypatch.setenv("RUNTIME_DIRECTORY", str(tmp_path / "run"))


@pytest.fixture(name="served")
def _served(tmp_path: Path) -> Iterator[tuple[Stack, FileServer]]:
    """A brain that leads, all of whose own files are a file server's: keys, registry, the tokens of people, brain.toml."""
    whole = Stack(tmp_path)
    with file_server(tmp_path / "brain") as server:
        try:
            whole.nats.start()
            whole.start_receiver()
            config = whole.write_brain_config(AUTO + BOB)
            people.token_file(tmp_path / "people", "bob")
            text = config.read_text().replace("people/tokens.json", "brain/tokens.json")
            (tmp_path / "brain/brain.toml").write_text(text)
            config.unlink()
            config.symlink_to("brain/brain.toml")
            shutil.copy(tmp_path / "people/tokens.json", tmp_path / "brain/tokens.json")
            whole.start_brain()
            whole.write_agent_config(ALLOWED)
            whole.start_agent()
            yield whole, server
        finally:
            whole.end()


def answer_s(whole: Stack, path: str, token: Path | None = None, within_s: float = ANSWER_S) -> float:
    """How long the answer took, of the best of a few tries; the test fails when none came in time, or it is no 200."""
    took_s = []
    for _ in range(TRIES):
        asked = urllib.request.Request(whole.url + path, headers=people.bearer(token) if token else {})  # noqa: S310  our own child
        began_s = time.monotonic()
        try:
            with urllib.request.urlopen(asked, timeout=10) as answer:  # noqa: S310 - our own loopback URL
                answer.read()
        except TimeoutError:
            pass
        took_s.append(time.monotonic() - began_s)
    assert min(took_s) < within_s, f"{path} took {took_s} s"
    return min(took_s)


def status_of(whole: Stack, path: str, token: Path) -> int:
    """What the brain says to whoever has this token."""
    asked = urllib.request.Request(whole.url + path, headers=people.bearer(token))  # noqa: S310  our own child on loopback
    try:
        with urllib.request.urlopen(asked, timeout=10) as answer:  # noqa: S310 - our own loopback URL
            return int(answer.status)
    except HTTPError as error:
        return error.code


def said(whole: Stack, *args: str) -> "subprocess.CompletedProcess[str]":
    """What ann's command has printed; the test fails when it does not fail."""
    done = subprocess.run(
        [str(BIN / "gpuward"), *args],
        env=os.environ | {"GPUWARD_URL": whole.url, "GPUWARD_TOKEN_FILE": str(whole.ann)},
        capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    assert done.returncode != 0, done.stdout
    return done


def gpu_lost(whole: Stack) -> str:
    """A GPU falls off its bus, and the node is told to collect the evidence; the address of the GPU."""
    number = uuid.uuid4().int
    where = f"{number % 0xFFFF:04x}:{(number >> 16) % 0xFF:02x}:{(number >> 24) % 0x20:02x}"
    before = packed(whole)
    write_kernel_line(f"NVRM: Xid (PCI:{where}): 79, GPU has fallen off the bus.")
    whole.wait_for(lambda: packed(whole) > before, "the command goes out, signed")
    return where


def packed(whole: Stack) -> int:
    """How many bundles of evidence the node has made."""
    return len(list((whole.folder / "agent/evidence").glob("*")))


def pages(whole: Stack, cause: str) -> list[str]:
    """What people were told of it."""
    return [page["what"] for page in whole.pages() if page["cause"] == cause]


@pytest.mark.usefixtures("runtime")
def test_the_leader_goes_on_while_its_file_server_hangs(served: tuple[Stack, FileServer]) -> None:
    """It decides, commands go out, it answers within a second and keeps its lease; one page says what is wrong, and another that
    it is over. Then what was changed meanwhile counts at once.
    """
    whole, server = served
    bob = whole.folder / "people-bob.token"
    epoch = whole.get("/api/v1/status")["epoch"]
    assert status_of(whole, "/api/v1/me", bob) == 200
    with server.hanging():
        began_s = time.monotonic()
        for path in ("/healthz", "/readyz", "/api/v1/status"):
            answer_s(whole, path)
        answer_s(whole, "/api/v1/me", whole.ann)
        assert status_of(whole, "/api/v1/me", bob) == 200, "who was known is known"
        lost = gpu_lost(whole)
        whole.gpuward("mode", "connect-rdma", "approve")
        whole.wait_for(lambda: pages(whole, "brain_disk") == ["open"], "people hear of it")
        status = whole.get("/api/v1/status")
        assert (status["leads"], status["epoch"]) == (True, epoch)
        assert [one["cause"] for one in status["troubles"]] == ["brain_disk"]
        assert time.monotonic() - began_s > 2 * TTL_S, "longer than a lease lasts"
        for path in ("/healthz", "/readyz", "/api/v1/status", "/metrics"):
            answer_s(whole, path, whole.ann)
        assert status_of(whole, "/api/v1/incidents", bob) == 503, "nobody waits for the history"
        # Bob leaves while nobody can read it.
        behind = whole.folder / "brain.behind/brain.toml"
        behind.write_text(behind.read_text().replace(BOB, ""))
        assert status_of(whole, "/api/v1/me", bob) == 200
    whole.wait_for(lambda: status_of(whole, "/api/v1/me", bob) == 401, "bob has left")
    whole.wait_for(lambda: pages(whole, "brain_disk") == ["open", "resolve"], "people hear that it is over")
    whole.wait_for(
        lambda: [one for one in whole.incidents("gpu-lost") if lost in one["scope"]], "the history is whole"
    )
    status = whole.get("/api/v1/status")
    assert (status["leads"], status["epoch"], status["troubles"]) == (True, epoch, [])
    assert pages(whole, "nobody_leads") == []


def test_it_connects_again_while_its_file_server_hangs(served: tuple[Stack, FileServer]) -> None:
    """NATS is started again: the brain knows its own key, and leads again. What would change a file is refused in words."""
    whole, server = served
    bob = whole.folder / "people-bob.token"
    epoch = whole.get("/api/v1/status")["epoch"]
    with server.hanging():
        whole.nats.kill()
        whole.wait_for(lambda: not whole.get("/api/v1/status")["leads"], "it has lost its lease")
        whole.nats.start()
        whole.wait_for(lambda: whole.get("/api/v1/status")["leads"], "it leads again")
        gpu_lost(whole)
        whole.gpuward("mode", "connect-rdma", "approve")
        refused = said(whole, "token", "create")
        assert "its disk does not answer" in refused.stderr, refused.stderr
        assert status_of(whole, "/api/v1/me", bob) == 200
        revoked = said(whole, "token", "revoke", "--user", "bob")
        assert "its disk does not answer" in revoked.stderr, revoked.stderr
        assert status_of(whole, "/api/v1/me", bob) == 401, "it counts at this brain at once"
        for path in ("/healthz", "/readyz", "/api/v1/status"):
            answer_s(whole, path)
    whole.wait_for(lambda: whole.get("/api/v1/status")["troubles"] == [], "it is well")
    whole.wait_for(lambda: "bob" not in whole.gpuward("token", "list"), "what hung is done")
    assert whole.get("/api/v1/status")["epoch"] > epoch


def test_a_brain_is_stopped_while_its_file_server_hangs(served: tuple[Stack, FileServer]) -> None:
    """It gives the lease back at once, though it cannot end before the disk lets it."""
    whole, server = served
    standby_key = whole.folder / "signing.key"
    shutil.copy(whole.folder / "brain/signing.key", standby_key)
    standby = whole.start_standby(standby_key)
    with server.hanging():
        os.kill(whole.pid("brain"), signal.SIGTERM)
        whole.wait_for(lambda: whole.get("/api/v1/status", standby).get("leads"), "the standby leads")
    assert whole.stop("brain") == 0


def test_a_brain_is_started_while_its_file_server_hangs(served: tuple[Stack, FileServer]) -> None:
    """It waits, people hear why, and it goes on by itself."""
    whole, server = served
    whole.stop("agent")
    whole.stop("brain")
    config = whole.folder / "brain.toml"
    text = config.read_text()
    config.unlink()
    config.write_text(text)
    with server.hanging():
        whole.start_brain(says="hangs")
        whole.wait_for(lambda: pages(whole, "brain_disk") == ["open"], "people hear of it")
    whole.wait_for(lambda: whole.get("/api/v1/status").get("leads"), "it leads")
    whole.wait_for(lambda: pages(whole, "brain_disk") == ["open", "resolve"], "people hear that it is over")
