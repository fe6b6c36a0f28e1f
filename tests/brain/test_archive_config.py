"""`[archive]` of brain.toml: what is refused, by key, and never with a secret in the message."""

import sys
from pathlib import Path
from typing import Any

import pytest

from agent.contract.errors import ConfigError, Unreachable
from brain import config
from brain.adapters import archive_store
from brain.archive_config import ArchiveConfig

S3 = {"url": "s3://bucket/prefix", "credentials_file": "keys"}


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"url": "logs"}, "want /absolute/folder, file:///absolute/folder or s3://bucket/prefix"),
        ({"url": "https://bucket.s3.example.org"}, "want /absolute/folder"),
        ({"url": "file://host/logs"}, "want /absolute/folder"),
        ({"url": "s3://KEY:SECRET@bucket"}, "credentials and options have keys of their own"),
        ({"url": "s3://bucket?secret=SECRET"}, "credentials and options have keys of their own"),
        ({"url": "s3://bucket"}, "credentials_file: an s3:// url needs one"),
        (S3 | {"endpoint": "s3.example.org"}, "endpoint: want https://host"),
        (S3 | {"endpoint": "http://s3.example.org"}, "endpoint: http:// is for this machine only"),
        (S3 | {"endpoint": "http://10.0.0.1:9000"}, "endpoint: http:// is for this machine only"),
        ({"url": "/logs", "segment_s": 0}, "segment_s"),
        ({"url": "/logs", "every_s": 5}, "every_s: unknown key"),
    ],
)
def test_what_is_refused(given: dict[str, Any], says: str, tmp_path: Path) -> None:
    """At the start, and by `gpuward run --check`."""
    with pytest.raises(ConfigError) as caught:
        config.parse({"archive": given}, "brain.toml", tmp_path)
    assert says in str(caught.value)
    assert "SECRET" not in str(caught.value)


@pytest.mark.parametrize(
    "given",
    [
        {},
        {"url": "/srv/logs/"},
        {"url": "file:///srv/logs"},
        S3,
        S3 | {"endpoint": "https://s3.example.org:9000"},
        S3 | {"endpoint": "http://127.0.0.1:9000"},
        S3 | {"endpoint": "http://[::1]:9000"},
        S3 | {"endpoint": "http://s3.rack:9000", "allow_http": True},
    ],
)
def test_what_is_taken(given: dict[str, Any], tmp_path: Path) -> None:
    """Relative paths are relative to brain.toml."""
    found = config.parse({"archive": given}, "brain.toml", tmp_path).archive
    assert found.on == bool(given)
    assert found.folder == (Path("/srv/logs") if "srv/logs" in given.get("url", "") else None)
    assert found.credentials_file == (tmp_path / "keys" if "credentials_file" in given else None)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (None, "keys cannot be read"),
        ("KEY SECRET\n", r"want a section \[default\]"),
        ("[other]\naws_access_key_id = KEY\naws_secret_access_key = SECRET\n", r"\[default\] needs"),
        ("[default]\naws_secret_access_key = SECRET\n", r"\[default\] needs aws_access_key_id"),
        ("[default]\naws_secret_access_key = SECRET\naws_secret_access_key = SECRET\n", r"want a section"),
    ],
)
def test_credentials_are_read_before_anything_begins(text: str | None, says: str, tmp_path: Path) -> None:
    """And never quoted."""
    if text is not None:
        (tmp_path / "keys").write_text(text)
    given = config.parse({"archive": S3}, "brain.toml", tmp_path).archive
    with pytest.raises(ConfigError, match=says) as caught:
        archive_store.require(given)
    assert "SECRET" not in str(caught.value)


def test_a_missing_library_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is an extra, and the operator is told which."""
    monkeypatch.setitem(sys.modules, "obstore.store", None)
    with pytest.raises(ConfigError, match=r"pip install 'gpuward\[brain,archive\]'"):
        archive_store.require(ArchiveConfig(url="/srv/logs"))


def test_a_folder_that_is_not_mounted_is_not_made(tmp_path: Path) -> None:
    """The archive would fill the disk below the mount point."""
    with pytest.raises(Unreachable, match="there is no such folder"):
        archive_store.opened(ArchiveConfig(url=str(tmp_path / "share")))
    assert not (tmp_path / "share").exists()
