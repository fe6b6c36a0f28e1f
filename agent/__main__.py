"""`gpuward-agent`: the node agent and its tools."""

import sys

from agent.lean import lean_imports


def main() -> None:
    """Entry point of the command."""
    lean_imports()

    from agent.cli.main import main as run

    sys.exit(run(sys.argv[1:]))


if __name__ == "__main__":
    main()
