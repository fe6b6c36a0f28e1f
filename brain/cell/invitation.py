"""The text of a join token: where to join, whom to trust there, and the secret. Agents read it (agent/cli/join.py).

`gwj_` and the URL-safe base64 of a JSON object: `u` addresses of consoles, `f` SHA-256 of the cell's authority (empty: the
system's CAs are trusted), `i` id, `s` secret.
"""

import base64
import json
from collections.abc import Sequence
from urllib.parse import urlsplit

from agent.contract.errors import ConfigError

PREFIX = "gwj_"


def check_url(url: str) -> None:
    """ConfigError: no node could ask a console there."""
    parts = urlsplit(url)
    local = parts.scheme == "http" and parts.hostname in ("127.0.0.1", "::1", "localhost")
    if not parts.hostname or not (parts.scheme == "https" or local):
        raise ConfigError(f"--url {url!r}: want https://NAME:PORT of the console")


def invitation(urls: Sequence[str], fingerprint: str, id_: str, secret: str) -> str:
    """Returns the text."""
    body = json.dumps({"u": list(urls), "f": fingerprint, "i": id_, "s": secret}, separators=(",", ":"))
    return PREFIX + base64.urlsafe_b64encode(body.encode()).decode().rstrip("=")
