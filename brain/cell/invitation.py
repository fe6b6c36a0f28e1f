"""The text of a join token: where to join, whom to trust there, and the secret. Agents read it (agent/cli/join.py).

`gwj_` and the URL-safe base64 of a JSON object: `u` addresses of consoles, `f` SHA-256 of the cell's authority (empty: the
system's CAs are trusted), `i` id, `s` secret.
"""

import base64
import json
from collections.abc import Sequence

PREFIX = "gwj_"


def invitation(urls: Sequence[str], fingerprint: str, id_: str, secret: str) -> str:
    """Returns the text."""
    body = json.dumps({"u": list(urls), "f": fingerprint, "i": id_, "s": secret}, separators=(",", ":"))
    return PREFIX + base64.urlsafe_b64encode(body.encode()).decode().rstrip("=")
