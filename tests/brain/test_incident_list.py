"""`gpuward incidents` on terminals of any width: nothing is cut, and no word is broken."""

import io
from typing import Any

import pytest
from rich.console import Console

from brain.cli.queries import IncidentList


def incident(**fields: Any) -> dict[str, Any]:
    """As the API gives it."""
    whole = {
        "id": "inc-7kq2m4xz", "severity": "P1", "state": "needs_human", "opened_at": "2026-11-20T13:17:35Z",
        "cause": "gpu-nvlink-discovery-failed", "scope": "gpu/gpu-0017/0000:3b:00", "nodes": 1, "runs": ["r1"],
    }  # fmt: skip
    return whole | fields


def shown(width: int, *found: dict[str, Any]) -> list[str]:
    """The lines."""
    out = io.StringIO()
    Console(file=out, width=width, force_terminal=False).print(IncidentList(list(found)), crop=False)
    return out.getvalue().splitlines()


def test_a_wide_terminal_has_a_table() -> None:
    """One line each, under a head."""
    head, line = shown(140, incident(nodes=12))
    assert head.split() == ["ID", "SEV", "STATE", "SINCE", "CAUSE", "WHERE", "RUNS"]
    assert "gpu/gpu-0017/0000:3b:00 (12 nodes)" in line


@pytest.mark.parametrize("width", [20, 60, 80, 100])
def test_a_narrow_one_has_two_lines_for_each(width: int) -> None:
    """Whatever its width, identifiers, cause and place are whole, to be copied."""
    lines = shown(width, incident(), incident(id="inc-b", runs=[]))
    assert lines == [
        "inc-7kq2m4xz  P1  needs_human  11-20 13:17:35Z  1 runs",
        "    gpu-nvlink-discovery-failed at gpu/gpu-0017/0000:3b:00",
        "inc-b  P1  needs_human  11-20 13:17:35Z",
        "    gpu-nvlink-discovery-failed at gpu/gpu-0017/0000:3b:00",
    ]
