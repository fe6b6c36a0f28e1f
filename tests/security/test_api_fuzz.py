"""Requests made from the API's own description, good and bad ones, against a running brain: none is answered with a 500."""

import asyncio
import os
import subprocess
import sys
from pathlib import Path

import aiohttp
import pytest
from yarl import URL

from brain.console.access import local_token
from tests import people
from tests.real.brain_kit import lab

pytestmark = [pytest.mark.component("nats-server"), pytest.mark.slow]
FOR_S = 20
# What an attack with this seed sends is the same each time.
SEED = "13"


async def test_no_request_that_fits_the_document_or_does_not_is_a_500(tmp_path: Path) -> None:
    """Whoever started the brain sends them, so that none is stopped at the door, whatever tokens they take away. Whatever is
    answered is what the document says: its status, its media type and its schema. The brain leads on meanwhile. Without
    simulated nodes: drills are a 404 then.
    """
    async with lab(tmp_path, console={"port": 0, "requests_per_s": 10_000} | people.ANN) as whole:
        assert whole.running is not None
        node = await whole.node("n1")
        await node.event("gpu.xid", "gpu/0000:3b:00", code=79)
        await whole.until(lambda found: found["incidents"], "an incident", "/api/v1/incidents")
        url = whole.running.console_url
        schemathesis = await asyncio.create_subprocess_exec(
            str(Path(sys.executable).with_name("schemathesis")),
            "run",
            f"{url}/api/v1/openapi.json",
            "--header", f"Authorization: Bearer {local_token.found(URL(url).port or 0)}",
            "--exclude-path", "/api/v1/watch",  # it does not end
            # a process for each log would take the time of all others (tests/real/test_api_pages.py asks it)
            "--exclude-path", "/api/v1/diagnose",
            "--checks", "not_a_server_error,status_code_conformance,content_type_conformance,response_schema_conformance",
            "--phases", "examples,coverage,fuzzing",
            "--max-time", str(FOR_S),
            "--max-examples", "30",
            "--request-timeout", "20",
            "--seed", SEED,
            "--no-color",
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            cwd=tmp_path,
            env=os.environ | {"SCHEMATHESIS_HOOKS": "", "NO_PROXY": "127.0.0.1"},
        )  # fmt: skip
        said, _ = await asyncio.wait_for(schemathesis.communicate(), FOR_S * 10)
        assert schemathesis.returncode == 0, said.decode()[-20_000:]
        async with aiohttp.ClientSession() as session, session.get(f"{url}/api/v1/status") as answer:
            assert (await answer.json())["leads"]
