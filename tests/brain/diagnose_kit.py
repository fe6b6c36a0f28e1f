"""Asks `gpuward diagnose`."""

import json
from typing import Any

from click.testing import CliRunner

from brain.cli.diagnose import diagnose

BOOT = "[    0.000000] Linux version 6.1.0\n[    1.000000] NVRM: loading NVIDIA UNIX x86_64 Kernel Module  580.82.07\n"


def ask(text: str, *options: str, status: int = 0, columns: int = 100) -> str:
    """What the command prints of a log on standard input."""
    result = CliRunner(env={"COLUMNS": str(columns)}).invoke(diagnose, list(options), input=text)
    assert result.exit_code == status, result.output
    return result.output


def ask_json(text: str, *options: str) -> dict[str, Any]:
    """As above, parsed."""
    return dict(json.loads(ask(text, "--json", *options)))


LINK = "mlx5_core 0000:5e:00.0 ib3: Link"
