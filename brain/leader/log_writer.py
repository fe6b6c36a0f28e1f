"""Appends inputs to the log."""

import asyncio
import time
from functools import partial

from nats.aio.client import Client

from agent.contract.errors import Unreachable
from agent.shared.tasks import abandonable
from brain.adapters.codec import Codec
from brain.adapters.outbox import Outbox
from brain.adapters.unsent_words import LASTING, OTHERS_S, UnsentWord, UnsentWords
from brain.core.inputs import Input, OperatorCommand, Reported

KEEP_S = 3.0  # so long the disk may take for a word


class LogWriter:
    """Encodes inputs and queues them in the outbox. Appending does not wait, except for `append_and_wait`."""

    def __init__(self, codec: Codec, outbox: Outbox, unsent: UnsentWords) -> None:
        """`unsent`: where what people said waits over an end of this brain."""
        self._codec = codec
        self._outbox = outbox
        self._unsent = unsent
        self._forgetting: set[asyncio.Future[None]] = set()

    def append(self, given: Input) -> None:
        """Appends an input, on whichever connection takes it: what was done must be known."""
        what, body = self._codec.encode(given)
        self._outbox.put(what, body, given.id, keep=True)

    def append_or_drop(self, given: Input) -> None:
        """Appends an input, or drops it when the connection is lost first: only the present leader may publish it."""
        what, body = self._codec.encode(given)
        self._outbox.put(what, body, given.id, keep=False)

    async def append_and_wait(self, given: OperatorCommand | Reported) -> int:
        """Appends what somebody waits for; returns its position on the log. Unreachable when NATS does not take it in time: what
        a person said is then kept on disk, and the error says for how long.
        """
        what, body = self._codec.encode(given)
        said_at = time.time()
        try:
            return await self._outbox.append(what, body, given.id, answered=partial(self._sent, given.id))
        except Unreachable as error:
            if not isinstance(given, OperatorCommand):
                raise
            word = UnsentWord(
                id=given.id, what=what, body=body, who=given.who, verb=given.verb, said_at=said_at
            )
            if not await self._kept(word):
                raise Unreachable(
                    f"{error}, unless this brain ends before that: its disk takes nothing"
                ) from error
            last = "" if given.verb in LASTING else f", within {OTHERS_S / 60:.0f} minutes"
            raise Unreachable(f"{error}, also when this brain is started again{last}") from error

    async def _kept(self, word: UnsentWord) -> bool:
        """Keeps a word on disk. False: the disk does not take it, or takes too long."""
        try:
            async with asyncio.timeout(KEEP_S):
                return await abandonable(lambda: self._unsent.keep(word), "unsent word")
        except TimeoutError:
            return False

    def _sent(self, id_: str) -> None:
        """It is on the log: what is on disk of it is not needed."""
        if self._unsent.has(id_):
            work = asyncio.ensure_future(abandonable(lambda: self._unsent.sent(id_), "unsent word"))
            self._forgetting.add(work)
            work.add_done_callback(self._forgetting.discard)

    def say_what_was_left(self) -> list[str]:
        """Queues what the brain that ran before was told and did not send. A sentence for each word, for the notes."""
        words, lapsed = self._unsent.left()
        for word in words:
            self._outbox.put(word.what, word.body, word.id, answered=partial(self._sent, word.id))
        return [
            *(f"{word.verb} of {word.who} was not sent before this brain ended: it is now" for word in words),
            *(
                f"{word.verb} of {word.who} was not sent within {OTHERS_S / 60:.0f} minutes, and is not sent any more: "
                "say it again if it is still right"
                for word in lapsed
            ),
        ]

    async def send(self) -> None:
        """Sends what is queued at once, if there is a connection."""
        await self._outbox.send()

    async def serve(self, client: Client) -> None:
        """Publishes what is queued on this connection, until cancelled."""
        await self._outbox.serve(client)
