"""Where the archive lies: a folder or a bucket of S3, by obstore, which `gpuward[archive]` installs.

`<cell>/<log>/<position of the first message, 20 digits>.ndjson.gz`, each as brain.adapters.log_file describes it. `<log>` is
made of the log's identity, the time at which it was made; `<log>.2` is the same log after NATS had lost its newest messages,
when positions were given a second time.
"""

import configparser
import contextlib
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Literal
from urllib.parse import urlsplit

from agent.contract.errors import ConfigError, Unreachable
from agent.contract.inert import inert
from agent.contract.messages import clip
from agent.shared.secret_file import warn_if_open
from brain.adapters.log_file import LogName
from brain.archive_config import ArchiveConfig

if TYPE_CHECKING:
    from obstore.store import ClientConfig, LocalStore, S3Config, S3Store

_SUFFIX = ".ndjson.gz"
_ANSWER_S = 30.0
_RETRIES = 2
_RETRY_S = 20.0
_PIECE = 1024**2
_MOST_FILES = 1_000_000  # of one log: a server may name more without end
_NAME = re.compile(r"([0-9]{20})\.ndjson\.gz")
_LOG = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}-[0-9A-Za-z-]{1,100}(\.[0-9]{1,9})?")


@dataclass(frozen=True, slots=True, kw_only=True)
class Segment:
    """One file of an archive."""

    # Below the archive's URL
    path: str
    # The position with which it begins
    first: int
    size: int
    written_at: datetime


class ArchiveStore:
    """An archive's files. Unreachable: it cannot be read or written now."""

    def __init__(self, store: "LocalStore | S3Store", url: str, folder: Path | None) -> None:
        self._store = store
        self._url = url
        self._folder = folder

    @property
    def url(self) -> str:
        """Where it is."""
        return self._url

    def cells(self) -> list[str]:
        """The cells that it has logs of. What else lies there is none: somebody has named another folder."""
        return [cell for cell in self._folders("") if self.logs(cell)]

    def logs(self, cell: str) -> list[str]:
        """The logs of a cell, by the names of their folders, oldest first."""
        return sorted(filter(_LOG.fullmatch, self._folders(cell)), key=_in_order)

    def segments(self, cell: str, log: str) -> list[Segment]:
        """The files of a log, in order."""
        import obstore

        found = []
        with _told(self._url):
            for some in obstore.list(self._store, prefix=f"{cell}/{log}", chunk_size=1000):
                for one in some:
                    path = one["path"]
                    match = _NAME.fullmatch(path.rpartition("/")[2])
                    if match is not None and path.count("/") == 2:
                        found.append(
                            Segment(
                                path=path,
                                first=int(match[1]),
                                size=one["size"],
                                written_at=one["last_modified"],
                            )
                        )
                if len(found) > _MOST_FILES:
                    raise Unreachable(f"{self._url}: it names more than {_MOST_FILES} files of {cell}/{log}")
        return sorted(found, key=lambda one: one.first)

    def pieces(self, path: str) -> Iterator[bytes]:
        """Yields a file."""
        import obstore

        with _told(self._url):
            for piece in obstore.get(self._store, path).stream(min_chunk_size=_PIECE):
                yield bytes(piece)

    def check_writable(self, cell: str) -> None:
        """Unreachable: it is a folder in which this user may not write, as the unit does not let it, say. Nothing is written; a
        bucket says so with the first file only.
        """
        if self._folder is None:
            return
        of_cell = self._folder / cell
        place = of_cell if of_cell.is_dir() else self._folder
        if not os.access(place, os.W_OK | os.X_OK):
            raise Unreachable(f"{self._url}: the brain's user may not write in {place}")

    def has(self, path: str) -> bool:
        """Is there such a file?"""
        import obstore

        with _told(self._url):
            try:
                obstore.head(self._store, path)
            except FileNotFoundError:
                return False
        return True

    def put(self, path: str, content: bytes, *, again: bool = False) -> bool:
        """Writes a file that is not there yet, and reads it back; False: there is one already, of other content. `again`: it
        may be there, and is damaged.
        """
        if not again and self.has(path):  # not every S3 server knows If-None-Match
            return self._is(path, content)
        if not self._put(path, content, "overwrite" if again else "create"):
            return self._is(path, content)
        if not self._is(path, content):
            raise Unreachable(f"{self._url}: {path} is not what was written")
        return True

    def _put(self, path: str, content: bytes, mode: Literal["create", "overwrite"]) -> bool:
        """False: it is there."""
        import obstore
        from obstore.exceptions import AlreadyExistsError

        with _told(self._url):
            try:
                obstore.put(self._store, path, content, mode=mode, use_multipart=False)
            except AlreadyExistsError:
                return False
            self._sync(path)
        return True

    def _is(self, path: str, content: bytes) -> bool:
        """Has the file this content? A server may answer without end: no more is read than that."""
        at = 0
        for piece in self.pieces(path):
            if content[at : at + len(piece)] != piece:
                return False
            at += len(piece)
        return at == len(content)

    def _sync(self, path: str) -> None:
        """A folder: the file is on disk when this returns."""
        if self._folder is None:
            return
        file = self._folder / path
        for one in (file, file.parent, file.parent.parent):
            descriptor = os.open(one, os.O_RDONLY)
            try:
                os.fsync(descriptor)
            finally:
                os.close(descriptor)

    def _folders(self, prefix: str) -> list[str]:
        import obstore

        with _told(self._url):
            found = obstore.list_with_delimiter(self._store, prefix=prefix or None)["common_prefixes"]
        return [one.rpartition("/")[2] for one in found]


def opened(config: ArchiveConfig) -> ArchiveStore:
    """The archive of this configuration; its credentials are read now. ConfigError names the key; Unreachable: there is no such
    folder now.
    """
    require(config)
    from obstore.store import LocalStore, S3Store

    if config.folder is not None:
        with _told(config.url):
            if not config.folder.is_dir():
                raise Unreachable(f"{config.url}: there is no such folder (archive.url)")
            return ArchiveStore(LocalStore(config.folder), config.url, config.folder)
    parts = urlsplit(config.url)
    client: ClientConfig = {"timeout": f"{_ANSWER_S:.0f}s", "connect_timeout": "5s"}
    client["allow_http"] = config.endpoint.startswith("http:")
    keys = _credentials(config.credentials_file)
    keys["region"] = config.region
    if config.endpoint:
        keys["endpoint"] = config.endpoint
    if config.ca_file is not None:
        client["root_certificate"] = _read(config.ca_file, "archive.ca_file")
    with _told(config.url):
        store = S3Store(
            parts.netloc,
            prefix=parts.path.strip("/") or None,
            config=keys,
            client_options=client,
            retry_config={"max_retries": _RETRIES, "retry_timeout": timedelta(seconds=_RETRY_S)},
        )
        return ArchiveStore(store, config.url, None)


def require(config: ArchiveConfig) -> None:
    """ConfigError: the library is missing, or the credentials cannot be read."""
    try:
        import obstore.store  # noqa: F401 - whether it is there
    except ImportError as error:
        raise ConfigError(
            "archive: this needs the library obstore: pip install 'gpuward[brain,archive]' (the packages have it)"
        ) from error
    if config.folder is None and config.url:
        _credentials(config.credentials_file)


def folder_name(name: LogName, branch: int = 1) -> str:
    """The name of a log's folder, which sorts by the time at which the log was made."""
    made = re.sub(r"[^0-9A-Za-z]+", "-", name.log).strip("-")
    return made if branch == 1 else f"{made}.{branch}"


def branch_of(folder: str) -> int:
    """Which branch of its log it is; the first one is 1."""
    _, dot, number = folder.rpartition(".")
    return int(number) if dot and number.isdecimal() else 1


def path_of(cell: str, folder: str, first: int) -> str:
    """The path of the file that begins with this position."""
    return f"{cell}/{folder}/{first:020d}{_SUFFIX}"


def _in_order(folder: str) -> tuple[str, int]:
    branch = branch_of(folder)
    return (folder if branch == 1 else folder.rpartition(".")[0]), branch


def _credentials(path: Path | None) -> "S3Config":
    where = f"archive.credentials_file: {path}"
    if path is None:
        raise ConfigError("archive.credentials_file: an s3:// url needs one")
    parser = configparser.RawConfigParser(default_section="")
    try:
        parser.read_string(_read(path, "archive.credentials_file"))
    except configparser.Error as error:  # and never its text: it is a secret
        raise ConfigError(
            f"{where}: want a section [default] with aws_access_key_id and aws_secret_access_key"
        ) from error
    warn_if_open(path)
    given = dict(parser.items("default")) if parser.has_section("default") else {}
    if not {"aws_access_key_id", "aws_secret_access_key"} <= given.keys():
        raise ConfigError(f"{where}: [default] needs aws_access_key_id and aws_secret_access_key")
    found: S3Config = {
        "access_key_id": given["aws_access_key_id"],
        "secret_access_key": given["aws_secret_access_key"],
    }
    if "aws_session_token" in given:
        found["session_token"] = given["aws_session_token"]
    return found


def _read(path: Path, key: str) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except OSError as error:
        raise ConfigError(f"{key}: {path} cannot be read: {error.strerror or error}") from error
    except UnicodeDecodeError as error:
        raise ConfigError(f"{key}: {path} is not text") from error


@contextlib.contextmanager
def _told(url: str) -> Iterator[None]:
    """obstore's errors as ours: one line, without what its library prints for its own developers."""
    from obstore.exceptions import BaseError

    try:
        yield
    except (BaseError, OSError, ValueError) as error:
        text = " ".join(str(error).partition("\n\nDebug source")[0].split())
        raise Unreachable(f"{url}: {inert(clip(text, 300))}") from error
