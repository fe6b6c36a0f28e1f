"""What `gpuward-agent once` prints for each recorded machine, kept in tests/fixtures/golden/.

    python -m tests.agent.golden        # writes them; read the difference before you commit it

A machine's own etc/gpuward/agent.toml is its configuration.
"""

import io
from pathlib import Path

from agent import config_file
from agent.cli import once

FIXTURES = Path(__file__).resolve().parents[1] / "fixtures"
MACHINES = tuple(sorted(path.name for path in (FIXTURES / "machines").iterdir()))


def golden(machine: str) -> Path:
    """The file that holds what is expected."""
    return FIXTURES / "golden" / f"{machine}.jsonl"


def reported(machine: str) -> str:
    """What the agent prints now."""
    root = FIXTURES / "machines" / machine
    file = root / "etc/gpuward/agent.toml"
    out = io.StringIO()
    once.main(config_file.load(file if file.exists() else None, {"root": str(root)}), kmsg=None, out=out)
    return out.getvalue()


def main() -> None:
    """Writes every golden file."""
    for machine in MACHINES:
        golden(machine).write_text(reported(machine))


if __name__ == "__main__":
    main()
