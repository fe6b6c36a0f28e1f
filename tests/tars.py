"""Unpacks archives of ours: tarfile of Debian 12's Python (3.11.2) has no filters yet, and later ones want one."""

import subprocess
from pathlib import Path


def unpack(archive: bytes, into: Path) -> None:
    """`archive`: a plain tar. Owners and devices are as they stand in it, where root unpacks."""
    into.mkdir(parents=True, exist_ok=True)
    subprocess.run(["tar", "-x", "--numeric-owner", "-C", str(into)], input=archive, check=True)
