"""TLS 1.3 for the console. A renewed certificate is taken up without a restart."""

import asyncio
import logging
import os
import ssl
from pathlib import Path

from agent.contract.errors import ConfigError
from agent.shared import files
from brain.glance import Glance

_log = logging.getLogger(__name__)
LOOK_EVERY_S = 5.0


class Certificate:
    """A certificate chain and its key, in PEM files."""

    def __init__(self, chain: Path, key: Path) -> None:
        """ConfigError: they cannot be read, or do not belong together."""
        self._chain, self._key = chain, key
        self._seen = self._stamp()
        self.context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self.context.minimum_version = ssl.TLSVersion.TLSv1_3
        self._load(self.context, self._read())
        self._glance = Glance(self._look, known=True)
        self._new: tuple[bytes, bytes] | None = None  # that is whole, and not in use yet

    def refresh(self) -> None:
        """Takes up what has changed in the files; what cannot be used is logged, and the old certificate stays; also while their
        disk hangs.
        """
        self._glance()
        new, self._new = self._new, None
        if new is not None:
            self._load(self.context, new)
            _log.info("%s: new certificate in use", self._chain)

    def _look(self) -> None:
        stamp = self._stamp()
        if stamp == self._seen:
            return
        try:
            found = self._read()
            # Both are whole and belong together, before the live one is touched.
            self._load(ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER), found)
            self._new = found
        except ConfigError as error:
            _log.error("the old certificate stays in use: %s", error)
        self._seen = stamp

    async def watch(self) -> None:
        """Refreshes it now and then, for ever."""
        while True:
            await asyncio.sleep(LOOK_EVERY_S)
            self.refresh()

    def _read(self) -> tuple[bytes, bytes]:
        try:
            return files.read(self._chain), files.read(self._key)
        except OSError as error:
            raise self._unfit(error) from error

    def _load(self, context: ssl.SSLContext, found: tuple[bytes, bytes]) -> None:
        """From memory: OpenSSL takes the names of files only, and a disk may hang."""
        handles: list[int] = []
        try:
            for content in found:
                handles.append(os.memfd_create("certificate", os.MFD_CLOEXEC))
                os.write(handles[-1], content)
            chain, key = (f"/proc/self/fd/{handle}" for handle in handles)
            context.load_cert_chain(chain, key, password=_none)
        except (OSError, ValueError) as error:
            raise self._unfit(error) from error
        finally:
            for handle in handles:
                os.close(handle)

    def _unfit(self, error: Exception) -> ConfigError:
        return ConfigError(
            f"console.tls_cert_file {self._chain} and console.tls_key_file {self._key}: {error}"
        )

    def _stamp(self) -> tuple[tuple[int, int, int], ...]:
        found = []
        for path in (self._chain, self._key):
            try:
                stat = path.stat()
            except OSError:
                found.append((0, 0, 0))
            else:
                found.append((stat.st_ino, stat.st_mtime_ns, stat.st_size))
        return tuple(found)


def _none() -> str:
    """A key with a passphrase is an error, not a question on the terminal."""
    return ""


def client_context(ca_file: Path) -> ssl.SSLContext:
    """Returns what trusts this CA alone. ConfigError: it cannot be read."""
    try:
        return ssl.create_default_context(cafile=str(ca_file))
    except OSError as error:
        raise ConfigError(f"console.oidc.ca_file {ca_file}: {error}") from error
