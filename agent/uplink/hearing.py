"""When the brain was last heard: an agent that has nothing to tell does not notice otherwise that its server is cut off.

A beat is not acknowledged. Where nothing has come from the brain for a while, the next beats ask for an answer, which is an
empty acknowledgement. When none comes either, another server is tried, with growing pauses (docs/decisions/0049).
"""

import random
import time
from collections.abc import Callable

ASK_AFTER_S = 6.0
FIRST_PATIENCE_S = (
    4.0  # of whoever asks; with ASK_AFTER_S shorter than the silence that the brain takes for a fault
)
LONGEST_PATIENCE_S = 300.0
LEAST_ASKED = 3  # beats
SPREAD = 0.5  # by so much of it patience differs from node to node: a fleet does not move as one


class Hearing:
    """One agent's, over all of its connections."""

    def __init__(
        self,
        elsewhere: Callable[[], object],
        clock: Callable[[], float] = time.monotonic,
        chance: Callable[[], float] = random.random,
    ) -> None:
        """`elsewhere`: goes to another server. `chance`: from 0 to 1."""
        self._elsewhere = elsewhere
        self._clock = clock
        self._chance = chance
        self._answers = False  # has the brain ever answered a beat?
        self._heard_s = clock()
        self._asked = 0  # beats in a row that ask
        self._until_s = 0.0  # when the one that asks loses its patience
        self._patience_s = FIRST_PATIENCE_S

    def heard(self, beat: bool) -> None:
        """Something of the brain has come. `beat`: the answer to one."""
        self._answers |= beat
        self._heard_s = self._clock()
        self._asked = 0
        self._patience_s = FIRST_PATIENCE_S

    def asks(self, waits: bool) -> bool:
        """Does the beat that is sent now ask for an answer? `waits`: events wait to be acknowledged; whoever sends them looks for
        another server then.
        """
        if not self._answers:
            return True  # that of 0.1 never answers, and asking costs nothing
        now_s = self._clock()
        if now_s - self._heard_s < ASK_AFTER_S:
            return False
        if self._asked == 0:
            self._until_s = now_s + self._patience_s * (1 + SPREAD * self._chance())
        elif self._asked >= LEAST_ASKED - 1 and now_s >= self._until_s and not waits:
            self._patience_s = min(2 * self._patience_s, LONGEST_PATIENCE_S)
            self._asked = 0
            self._elsewhere()
            return True
        self._asked += 1
        return True
