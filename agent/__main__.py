"""`gpuward-agent`: the node agent and its tools."""

import sys


def main() -> None:
    """Entry point of the command."""
    # nats-py imports aiohttp where it is installed, for websockets that we do not use: 11 MB of memory. The
    # brain's environment has it, so the import is made to fail in this process.
    sys.modules["aiohttp"] = None  # type: ignore[assignment]  # None: its import fails
    # It also asks importlib.metadata for its own version, and does without: email, zipfile and csv, 1 MB.
    sys.modules["importlib.metadata"] = None  # type: ignore[assignment]  # as above

    from agent.cli.main import main as run

    sys.exit(run(sys.argv[1:]))


if __name__ == "__main__":
    main()
