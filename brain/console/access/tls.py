"""TLS 1.3 for the console. A renewed certificate is taken up without a restart."""

import asyncio
import logging
import ssl
from pathlib import Path

from agent.contract.errors import ConfigError

_log = logging.getLogger(__name__)
LOOK_EVERY_S = 5.0


class Certificate:
    """A certificate chain and its key, in PEM files."""

    def __init__(self, chain: Path, key: Path) -> None:
        """ConfigError: they cannot be read, or do not belong together."""
        self._chain, self._key = chain, key
        self.context = self._loaded()
        self._seen = self._stamp()

    def refresh(self) -> None:
        """Takes up what has changed in the files; what cannot be used is logged, and the old certificate stays."""
        stamp = self._stamp()
        if stamp == self._seen:
            return
        self._seen = stamp
        try:
            self._loaded()  # proves that both files are whole and belong together before the live one is touched
            self.context.load_cert_chain(self._chain, self._key)
        except (ConfigError, OSError) as error:
            _log.error("the old certificate stays in use: %s", error)
        else:
            _log.info("%s: new certificate in use", self._chain)

    async def watch(self) -> None:
        """Refreshes it now and then, for ever."""
        while True:
            await asyncio.sleep(LOOK_EVERY_S)
            self.refresh()

    def _loaded(self) -> ssl.SSLContext:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.minimum_version = ssl.TLSVersion.TLSv1_3
        try:
            context.load_cert_chain(self._chain, self._key, password=_none)
        except (OSError, ValueError) as error:
            raise ConfigError(
                f"console.tls_cert_file {self._chain} and console.tls_key_file {self._key}: {error}"
            ) from error
        return context

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
