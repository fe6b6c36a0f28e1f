"""What the embedded server may promise to its streams, and where it may listen."""

import os
import shutil
from pathlib import Path
from types import SimpleNamespace

import orjson
import pytest

from agent.contract.errors import ConfigError
from brain.adapters.nats_server import NatsServer
from brain.adapters.nats_server_config import store_limit

MIB = 1024**2


def free(monkeypatch: pytest.MonkeyPatch, mib: int) -> None:
    """The disk has so much."""
    monkeypatch.setattr(shutil, "disk_usage", lambda _: SimpleNamespace(free=mib * MIB))


def test_what_was_promised_once_is_promised_again_on_a_fuller_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At first no more than the disk has; then never less than before, and more when there is more and it is wanted."""
    config, store = tmp_path / "nats.conf", tmp_path / "js"
    store.mkdir()

    def started(needed_mib: int) -> int:
        limit = store_limit(config, store, needed_mib * MIB)
        config.write_bytes(orjson.dumps({"jetstream": {"max_file_store": limit}}))
        return limit // MIB

    free(monkeypatch, 400)
    assert started(9000) == 300
    free(monkeypatch, 4)
    assert started(9000) == 300
    free(monkeypatch, 100_000)
    assert started(9000) == 9064
    free(monkeypatch, 4)
    assert started(9000) == 9064
    assert store_limit(config, store, 0) == 0


def test_a_store_of_an_earlier_version_keeps_its_streams(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It did not write down what it had promised."""
    (tmp_path / "js/jetstream/B/streams/LOG").mkdir(parents=True)
    free(monkeypatch, 4)
    assert store_limit(tmp_path / "nats.conf", tmp_path / "js", 9000 * MIB) == 9064 * MIB


def test_a_pipe_in_the_place_of_the_last_configuration_is_not_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nor is any other thing there that is no file: a brain that reads it would never start, and say nothing."""
    free(monkeypatch, 400)
    config = tmp_path / "nats.conf"
    os.mkfifo(config)
    assert store_limit(config, tmp_path / "js", 9000 * MIB) == 300 * MIB
    config.unlink()
    config.mkdir()
    assert store_limit(config, tmp_path / "js", 9000 * MIB) == 300 * MIB


@pytest.mark.parametrize("host", ["192.0.2.7", "no-such-host.invalid"])
def test_an_address_of_another_machine_is_told_as_that(tmp_path: Path, host: str) -> None:
    """No program has taken the port."""
    with pytest.raises(ConfigError, match=f"nats.embedded.host: {host} is no address of this machine"):
        NatsServer(tmp_path, cell="c", host=host).start()
