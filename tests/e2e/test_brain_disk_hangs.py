"""The brain's own disk hangs: writes to it do not return. It leads on, heals, says so; and nothing is lost."""

import shutil
import subprocess
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.error import HTTPError

import pytest

from tests import people
from tests.e2e.stack import Stack
from tests.real.disk_kit import frozen, looped_disk, replace_disk, shut_down

pytestmark = [pytest.mark.root, pytest.mark.component("nats-server"), pytest.mark.timeout(300)]
OFTEN = "[snapshot]\nevery_s = 1\n"
TTL_S = 2.0


@pytest.fixture(name="runtime", params=[True, False], ids=["with a runtime folder", "without"])
def _runtime(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever starts the brain gives it a folder in memory, as its unit does, or does not."""
    monkeypatch.delenv("RUNTIME_DIRECTORY", raising=False)
    if request.param:
        (tmp_path / "run").mkdir()
        monkeypatch.setenv("RUNTIME_DIRECTORY", str(tmp_path / "run"))


@pytest.fixture(name="whole")
def _whole(tmp_path: Path, runtime: None) -> Iterator[Stack]:
    """A brain that leads, with an ext4 of its own; the log is on another disk."""
    whole = Stack(tmp_path)
    with looped_disk(tmp_path / "brain"):
        try:
            whole.nats.start()
            whole.start_receiver()
            whole.write_brain_config(OFTEN)
            whole.start_brain()
            whole.write_agent_config()
            whole.start_agent()
            yield whole
        finally:
            whole.end()


def pages(whole: Stack, cause: str) -> list[str]:
    """What people were told of it."""
    return [page["what"] for page in whole.pages() if page["cause"] == cause]


def text(whole: Stack, path: str) -> str:
    """What it answers to monitoring systems."""
    asked = urllib.request.Request(whole.url + path, headers=people.bearer(whole.ann))  # noqa: S310  our own child on loopback
    with urllib.request.urlopen(asked, timeout=20) as answer:  # noqa: S310 - our own loopback URL
        return str(answer.read().decode())


def told(whole: Stack) -> list[Any]:
    """Texts of notes that an operator's word has caused."""
    return [
        note["text"]
        for note in whole.get("/api/v1/notes?limit=1000").get("notes", ())
        if note["kind"] == "operator.mode"
    ]


def test_a_disk_that_hangs(whole: Stack) -> None:
    """The leader stays the leader through it, handles what comes, and answers; one page says what stops, and one that it is over;
    then the history has what came meanwhile.
    """
    epoch = whole.get("/api/v1/status")["epoch"]
    with frozen(whole.folder / "brain"):
        began = time.monotonic()
        whole.gpuward("mode", "accept-node", "approve")
        whole.wait_for(lambda: pages(whole, "brain_disk") == ["open"], "people hear of it")
        whole.gpuward("mode", "connect-rdma", "approve")
        status = whole.get("/api/v1/status")
        assert (status["leads"], status["epoch"]) == (True, epoch)
        assert [one["cause"] for one in status["troubles"]] == ["brain_disk"]
        assert {one["runbook"] for one in status["modes"] if one["who"]} == {"accept-node", "connect-rdma"}
        (page,) = [str(page) for page in whole.pages() if page["cause"] == "brain_disk"]
        assert "hangs" in page
        assert "healed and paged all the same" in page
        assert text(whole, "/readyz").startswith("ok\nits own disk hangs")
        metrics = text(whole, "/metrics")
        assert 'gpuward_data_disk{state="hanging"} 1.0' in metrics
        assert "gpuward_history_behind_inputs 0.0" not in metrics
        assert time.monotonic() - began > 2 * TTL_S, "longer than a lease lasts"
    whole.wait_for(lambda: pages(whole, "brain_disk") == ["open", "resolve"], "people hear that it is over")
    whole.wait_for(lambda: len(told(whole)) == 2, "the history is whole")
    whole.wait_for(lambda: "gpuward_history_behind_inputs 0.0" in text(whole, "/metrics"), "nothing waits")
    assert whole.get("/api/v1/status")["epoch"] == epoch
    assert pages(whole, "nobody_leads") == []


def test_a_brain_whose_disk_hangs_is_stopped(whole: Stack) -> None:
    """It gives the lease back at once, though it cannot end before the disk lets it."""
    standby = whole.start_standby()
    with frozen(whole.folder / "brain"):
        whole.wait_for(lambda: pages(whole, "brain_disk") == ["open"], "people hear of it")
        subprocess.run(["kill", "-TERM", str(whole.pid("brain"))], check=True)
        whole.wait_for(
            lambda: whole.get("/api/v1/status", standby).get("leads"), "the standby leads", within_s=20
        )
    assert whole.stop("brain") == 0


def test_a_disk_that_fails(whole: Stack) -> None:
    """Alone, a brain that cannot read its files leads on. It leaves the lead to another one as soon as there is one. Once its
    disk is there again the history is whole without a restart.
    """
    whole.gpuward("mode", "accept-node", "approve")
    whole.wait_for(lambda: len(told(whole)) == 1, "the history has it")
    disk, key = whole.folder / "brain", whole.folder / "signing.key"
    for name in ("signing.key", "signing.key.pub"):
        shutil.copy(disk / name, whole.folder / name)
    shut_down(disk)
    whole.wait_for(lambda: pages(whole, "brain_disk") == ["open"], "people hear of it")
    whole.gpuward("mode", "connect-rdma", "approve")
    assert whole.get("/api/v1/status")["leads"]
    with pytest.raises(HTTPError, match="503"):
        text(whole, "/readyz")
    with looped_disk(whole.folder / "standby"):
        standby = whole.start_standby(key)
        whole.wait_for(lambda: whole.get("/api/v1/status", standby)["leads"], "the standby leads")
        assert not whole.get("/api/v1/status")["leads"]
        assert whole.get("/api/v1/status")["caught_up"]
        replace_disk(disk)
        whole.wait_for(
            lambda: pages(whole, "brain_disk") == ["open", "resolve"], "people hear that it is over"
        )
        whole.wait_for(lambda: len(told(whole)) == 2, "the history is whole")
        assert text(whole, "/readyz") == "ok\n"
        whole.stop("standby")
    whole.wait_for(lambda: whole.get("/api/v1/status")["leads"], "it leads again")
