"""Limits of the kernel that are reached (Linux, fs/file_table.c)."""

import re
from typing import ClassVar

from agent.contract.components import NODE
from agent.contract.lines.base import unsent
from agent.contract.messages import Severity, UnsentEvent

_FILES = re.compile(r"\s*VFS: file-max limit ([0-9]{1,20}) reached")


class LimitsArea:
    """node.file_limit."""

    markers: ClassVar[tuple[str, ...]] = ("file-max limit ",)
    kinds: ClassVar[tuple[str, ...]] = ("node.file_limit",)
    distinguishing: ClassVar[tuple[str, ...]] = ()

    def read(self, text: str) -> UnsentEvent | None:
        """See Area."""
        if match := _FILES.match(text):
            return unsent("node.file_limit", NODE, Severity.ERROR, {"limit": int(match[1])}, text)
        return None
