"""Folders of tests that another user enters."""

from pathlib import Path


def passable(folder: Path) -> None:
    """Lets anybody pass through a folder and all around it; pytest makes its own for one user."""
    for one in (folder, *folder.parents):
        if not one.stat().st_mode & 0o001:
            one.chmod(one.stat().st_mode | 0o011)
