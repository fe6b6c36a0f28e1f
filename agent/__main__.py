"""`gpuward-agent`: the node agent and its tools."""

import os
import sys


def main() -> None:
    """Entry point of the command."""
    spoken = next(filter(None, map(os.environ.get, ("LC_ALL", "LC_MESSAGES", "LANG"))), "")
    english = not spoken.startswith("zh") and not any(one.startswith("--lang") for one in sys.argv)
    if (
        sys.argv[1:2] == ["check"] and english
    ):  # within 100 ms: it goes without all that the other commands import
        from agent.cli import check

        sys.exit(check.main(sys.argv[2:]))

    from agent.lean import lean_imports

    lean_imports()

    from agent.cli.main import main as run

    sys.exit(run(sys.argv[1:]))


if __name__ == "__main__":
    main()
