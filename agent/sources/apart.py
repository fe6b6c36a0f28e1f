"""Asking several parts of the machine, each of which may hang by itself: a thread for each.

Not a source; a part of those that ask so (a poll that reads one thing after the other: agent/sources/poll.py). A thread that
hangs cannot be ended: it is left alone, and its part is not asked again until it has returned.
"""

import asyncio
import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Generic, TypeVar

from agent.host import Host

Answer = TypeVar("Answer")


@dataclass(slots=True, kw_only=True)
class _Question:
    """One that was asked."""

    thread: threading.Thread
    since_s: float


class Apart(Generic[Answer]):
    """Remembers which parts have not answered yet. `what`: how the threads are named, before their part."""

    def __init__(self, host: Host, what: str, *, deadline_s: float) -> None:
        self._host = host
        self._what = what
        self._deadline_s = deadline_s
        # Part → what it was asked last.
        self._asked: dict[str, _Question] = {}
        # Two who ask at the same time do not share the answers.
        self._turn = asyncio.Lock()

    async def ask(
        self, questions: Mapping[str, Callable[[], Answer]], take: Callable[[str, Answer], None]
    ) -> dict[str, float]:
        """Asks these parts; `take` gets each answer as soon as it is there. Returns after the deadline at the latest, with the
        parts that hang → since when, seconds. A question must not raise.
        """
        async with self._turn:
            return await self._ask(questions, take)

    async def _ask(
        self, questions: Mapping[str, Callable[[], Answer]], take: Callable[[str, Answer], None]
    ) -> dict[str, float]:
        loop = asyncio.get_running_loop()
        answers: asyncio.Queue[tuple[str, Answer]] = asyncio.Queue()

        def hand_over(part: str, answer: Answer) -> None:
            with suppress(RuntimeError):  # the loop was closed meanwhile
                loop.call_soon_threadsafe(answers.put_nowait, (part, answer))

        waiting = {part for part, question in questions.items() if self._start(part, question, hand_over)}
        with suppress(TimeoutError):
            async with asyncio.timeout(self._deadline_s):
                while waiting:
                    part, answer = await answers.get()
                    waiting.discard(part)
                    take(part, answer)
        now_s = self._host.mono_s()
        return {
            part: now_s - asked.since_s
            for part in questions
            if (asked := self._asked[part]).thread.is_alive()
            and (part in waiting or now_s - asked.since_s > self._deadline_s)
        }

    def _start(
        self, part: str, question: Callable[[], Answer], hand_over: Callable[[str, Answer], None]
    ) -> bool:
        """Starts a thread; False when the last one has not returned yet."""
        asked = self._asked.get(part)
        if asked is not None and asked.thread.is_alive():
            return False
        # A daemon: the agent can end while it hangs.
        thread = threading.Thread(
            target=lambda: hand_over(part, question()), name=f"{self._what} {part}", daemon=True
        )
        self._asked[part] = _Question(thread=thread, since_s=self._host.mono_s())
        thread.start()
        return True
