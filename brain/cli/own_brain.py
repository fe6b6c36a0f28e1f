"""Where the brain of this machine is, by its brain.toml: a page says what to type, and so it is typed on the brain's machine.

Standard library only, as the client of the API (brain/cli/client.py). Decision 98.
"""

import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

DEFAULT_CONFIG = Path("/etc/gpuward/brain.toml")  # of the brain's unit
DEFAULT_PORT = 8470
DEFAULT_URL = f"http://127.0.0.1:{DEFAULT_PORT}"
_DATA_DIR = "/var/lib/gpuward"  # as in brain/config.py
_EVERYWHERE = {"0.0.0.0": "127.0.0.1", "::": "::1"}


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnBrain:
    """Where a brain is asked."""

    url: str
    # of whoever vouches for its certificate; None: an authority of the system's, or there is no certificate
    ca_file: Path | None = None


def place(config: Path = DEFAULT_CONFIG) -> OwnBrain:
    """That of the brain of this file; the default's where it cannot be read: why is the doctor's to say."""
    try:
        with config.open("rb") as file:
            loaded = tomllib.load(file)
    except (OSError, ValueError, RecursionError):
        return OwnBrain(url=DEFAULT_URL)
    console = loaded.get("console")
    if not isinstance(console, dict):
        return OwnBrain(url=DEFAULT_URL)
    certificate = _text(console, "tls_cert_file")
    cell = config.parent / (_text(loaded, "data_dir") or _DATA_DIR) / "cell"
    # as the console shows it (brain/cell/authority.py); who may not look into the folder is told by the client
    issued = certificate and config.parent / certificate == cell / "server.pem"
    port = console.get("port")
    return OwnBrain(
        url=url_of(
            _text(console, "host") or "127.0.0.1",
            port if isinstance(port, int) and port else DEFAULT_PORT,
            tls=bool(certificate),
        ),
        ca_file=cell / "ca.pem" if issued else None,
    )


def url_of(host: str, port: int, *, tls: bool) -> str:
    """By which a console that listens there is asked on its machine."""
    host = _EVERYWHERE.get(host, host)
    return f"{'https' if tls else 'http'}://{f'[{host}]' if ':' in host else host}:{port}"


def _text(table: dict[str, Any], key: str) -> str:
    found = table.get(key)
    return found if isinstance(found, str) else ""
