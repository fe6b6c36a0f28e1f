"""Short questions to the history, each in a thread that can be abandoned: a disk that hangs keeps nobody waiting."""

import asyncio
import sqlite3
from collections.abc import Callable
from typing import TypeVar

from agent.contract.errors import Unreachable
from agent.shared.tasks import abandonable
from brain.adapters.history_queries import HistoryQueries

T = TypeVar("T")
WITHIN_S = 3.0


class PromptReader:
    """One connection to the read model, one question at a time."""

    def __init__(self, reader: HistoryQueries) -> None:
        self._reader = reader
        self._under_way: asyncio.Task[object] | None = None
        self._turn = asyncio.Lock()

    async def ask(self, work: Callable[[HistoryQueries], T]) -> T:
        """Returns the answer. Unreachable: none in time, or the file cannot be read."""
        try:
            async with asyncio.timeout(WITHIN_S), self._turn:
                if (
                    self._under_way is not None
                ):  # one that was given up: the connection is not free before it returns
                    await asyncio.wait((self._under_way,))
                    self._under_way.exception()  # of a question that nobody waits for any more
                task = asyncio.create_task(abandonable(lambda: work(self._reader), "history-question"))
                self._under_way = task
                return await asyncio.shield(task)
        except TimeoutError:
            raise Unreachable("the history does not answer: this brain's disk hangs") from None
        except (sqlite3.Error, UnicodeDecodeError) as error:
            self._reader.failed(error)
            raise Unreachable(f"the history cannot be read now: {error}") from error
