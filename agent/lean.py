"""What the agent's process does without, so that it takes little memory beside a job. Called before anything else is
imported, in the command's own process only: the brain's and the tests' imports are as they are.
"""

import ctypes
import importlib
import sys
from types import ModuleType
from typing import Any


def lean_imports() -> None:
    """Leaves out, or puts off, imports of our libraries that the agent hardly uses: 13 MB."""
    # nats-py imports aiohttp where it is installed, for websockets that we do not use: 11 MB. The brain's environment
    # has it, so the import is made to fail. It also asks importlib.metadata for its own version, and does without:
    # email, zipfile and csv, 1 MB.
    sys.modules["aiohttp"] = sys.modules["importlib.metadata"] = None  # type: ignore[assignment]  # its import fails
    # pyudev asks ctypes.util for the name of libudev; it would import shutil, tempfile, bz2 and lzma and run ldconfig.
    names = ModuleType("ctypes.util")
    names.__dict__["find_library"] = {"udev": "libudev.so.1"}.get
    sys.modules["ctypes.util"] = ctypes.util = names  # type: ignore[attr-defined]  # as an import would set it
    # JetStream's part of nats-py (with email, 1 MB) is needed for the upload of evidence only.
    sys.modules["nats.js"] = _Later("nats.js")
    nats = importlib.import_module("nats")
    nats.__dict__["js"] = sys.modules["nats.js"]


class _Later(ModuleType):
    """Stands for a module that is loaded when something of it is wanted."""

    def __getattr__(self, name: str) -> Any:  # of what this has not, so of all
        if isinstance(sys.modules[self.__name__], _Later):
            del sys.modules[self.__name__]
        return getattr(importlib.import_module(self.__name__), name)
