"""Appends pages to a text file. The default when no channel is configured: a page is never dropped."""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Annotated, Any, ClassVar

from pydantic import Field

from agent.contract.errors import Unreachable
from brain.aside import aside
from brain.glance import FileHangs
from brain.notify.message import Language, PageMessage
from brain.options import options
from brain.outgoing import DIRECT, Outgoing


@dataclass(frozen=True, slots=True, kw_only=True)
class LogOptions:
    """The keys of a table with `type = "log"`."""

    # the file; its folder must exist
    path: Path
    # a larger file is renamed to <path>.1, which replaces the older one
    max_bytes: Annotated[int, Field(ge=10_000)] = 10_000_000
    # of the rule's knowledge
    language: Language = "both"
    __pydantic_config__: ClassVar[dict[str, Any]] = {"extra": "forbid"}


class PageLog:
    """One file. Pages are separated by an empty line."""

    def __init__(
        self, name: str, path: Path, *, max_bytes: int = 10_000_000, language: Language = "both"
    ) -> None:
        self._name = name
        self._path = path
        self._max_bytes = max_bytes
        self._language: Language = language

    @property
    def name(self) -> str:
        """What the configuration calls it."""
        return self._name

    async def send(self, message: PageMessage) -> None:
        """Appends the page. Unreachable: the file cannot be written (full disk, permissions, a disk that hangs)."""
        text = f"{message.to_text(self._language)}  page       {message.id} for {message.group}\n\n"
        try:
            await aside(partial(self._append, text), self._path)
        except FileHangs as error:
            raise Unreachable(str(error)) from error
        except OSError as error:
            raise Unreachable(f"{self._path}: {error.strerror}") from error

    async def reach(self) -> str:
        """As in Channel: may the file be written?"""
        try:
            await aside(self._look, self._path)
        except FileHangs as error:
            raise Unreachable(str(error)) from error
        return str(self._path)

    async def close(self) -> None:
        """Does nothing: the file is open only while a page is written."""

    def _look(self) -> None:
        place = self._path if self._path.exists() else self._path.parent
        if not os.access(place, os.W_OK):
            raise Unreachable(f"{self._path} cannot be written")

    def _append(self, text: str) -> None:
        if self._path.exists() and self._path.stat().st_size > self._max_bytes:
            self._path.replace(self._path.with_name(self._path.name + ".1"))
        with self._path.open("a", encoding="utf-8") as sink:
            sink.write(text)


def build(
    name: str,
    table: Mapping[str, Any],
    where: str,
    way: Outgoing = DIRECT,  # noqa: ARG001 - as of every channel
) -> PageLog:
    """Builds the channel of a configuration table; ConfigError names the key."""
    want = options(LogOptions, table, where)
    return PageLog(name, want.path, max_bytes=want.max_bytes, language=want.language)
