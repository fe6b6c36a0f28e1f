"""Canaille, an OpenID Connect provider that we did not write, and a browser that logs in there."""

import html
import re
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import aiohttp
import pytest

from tests.real.nats import free_port

PYTHON = Path("/var/cache/gpuward-canaille/bin/python")  # deploy/dev/components.sh installs it
SERVE = Path(__file__).parent / "canaille" / "serve.py"


@contextmanager
def canaille(folder: Path, redirect: str) -> Iterator[str]:
    """Its issuer; people and groups: canaille/serve.py. Gone when the block ends."""
    if not PYTHON.exists():
        pytest.skip("needs Canaille: deploy/dev/components.sh installs it")
    port = free_port()
    said = folder / "canaille.log"
    with said.open("wb") as sink:
        process = subprocess.Popen(
            [PYTHON, SERVE, str(port), redirect], stdout=sink, stderr=sink, cwd=folder, start_new_session=True
        )
    try:
        deadline = time.monotonic() + 120
        while "ready" not in said.read_text():
            assert process.poll() is None, said.read_text()
            assert time.monotonic() < deadline, said.read_text()
            time.sleep(0.05)
        yield f"http://127.0.0.1:{port}"
    finally:
        process.kill()
        process.wait(60)


class Browser:
    """Cookies, redirects and forms: as much of a browser as a login needs."""

    def __init__(self, session: aiohttp.ClientSession) -> None:
        self.session = session

    async def log_in(self, begin: str, name: str) -> str:
        """Begins at `begin`, answers the provider's forms; returns the address to which it sends the browser back."""
        url, data = begin, None
        for _ in range(12):
            method = "GET" if data is None else "POST"
            async with self.session.request(method, url, data=data, allow_redirects=False) as answer:
                text, here = await answer.text(), str(answer.url)
                where = answer.headers.get("Location", "")
            data = None
            if where:
                url = (
                    where if "://" in where else here.split("/", 3)[0] + "//" + here.split("/", 3)[2] + where
                )
                if "/login/callback?" in url:
                    return url
                continue
            found = re.search(r'name="csrf_token"[^>]*value="([^"]+)"', text)
            assert found, f"no form at {here}: {text[:500]}"
            data = {"csrf_token": html.unescape(found[1])}
            data |= {"password": f"{name}-password"} if 'name="password"' in text else {"login": name}
            url = here
        raise AssertionError(f"the login of {name} does not end: {url}")
