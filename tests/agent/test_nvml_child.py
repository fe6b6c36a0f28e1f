"""What the child process in which NVML runs is made of: it is light."""

import json
import subprocess
import sys
from typing import Any

import pytest

from agent.nvml import start
from agent.nvml.wire import json_text


@pytest.mark.parametrize(
    "value",
    [
        {
            "at": 1.5,
            "gpus": [{"uuid": 'GPU-"\\\n\t', "lost": "", "temp": None, "procs": [[1, 2]], "health": {}}],
        },
        {"skipped": [(0, "nvmlDeviceGetPciInfo")], "yes": True, "no": False, "big": 2**64 - 1, "minus": -2},
        {"umlaut": "Grüße 設備", "ber": 1e-12, "empty": []},
    ],
)
def test_the_childs_json_is_json(value: dict[str, Any]) -> None:
    """The child does not import json."""
    assert json.loads(json_text(value)) == json.loads(json.dumps(value))
    assert json_text([float("nan"), float("inf")]) == "[null,null]"


def test_the_child_imports_little() -> None:
    """No asyncio, no regular expressions, next to nothing of ours: its memory counts as the agent's."""
    code = (
        f"import sys; sys.argv = ['x']; file = {start.__file__!r}\n"
        "try: exec(open(file).read(), {'__name__': '__main__', '__file__': file})\n"
        "except ValueError: print(*sys.modules)"
    )
    out = subprocess.run(
        [sys.executable, "-I", "-c", code], capture_output=True, text=True, check=True
    ).stdout
    modules = set(out.split())
    assert {"pynvml", "agent.nvml.child"} <= modules
    assert {name for name in modules if name.startswith("agent.")} == {
        "agent.nvml",
        "agent.nvml.calls",
        "agent.nvml.child",
        "agent.nvml.pace",
        "agent.nvml.sampled_gpu",
        "agent.nvml.wire",
    }
    assert not modules & {
        "asyncio",
        "nats",
        "logging",
        "dataclasses",
        "pydantic",
        "json",
        "re",
        "enum",
        "typing",
    }
