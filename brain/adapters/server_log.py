"""What the embedded NATS server writes about itself: did it run out of space, and which nodes did it refuse something?

A node's user can make it write a line as often as it likes, so the file is bounded: above MAX_BYTES it begins anew, and the
end of what stood in it is kept once beside it.
"""

import contextlib
import os
import re
import threading
from collections import Counter
from pathlib import Path
from typing import BinaryIO

from agent.shared import files
from brain.adapters.files import move_away

MAX_BYTES = 32 * 1024**2
_MAX_LOOK = 1 << 20  # bytes at a time
_NO_SPACE = b"no space left on device"
# A client chooses its version and the subject; both are quoted, so that neither can be taken for the account's name.
_REFUSED = re.compile(
    rb'\[ERR\] \S+ - cid:\d+ - (?:"(?:[^"\\\n]|\\.)*" - )?"N_([A-Za-z0-9_-]{1,63})/[^"\n]*" - '
    rb"(?:Publish Violation|Subscription Violation|maximum payload exceeded)"
)


class ServerLog:
    """One file, to which the server appends."""

    def __init__(self, path: Path) -> None:
        self.path = path
        # Could it not write a file since `begin`?
        self.out_of_space = False
        # Messages and subscriptions that it refused since `take_refused`, by the name of the user's account.
        self._refused: Counter[str] = Counter()
        self._looked = 0
        # Held by whoever waits for a line.
        self.waits = threading.Lock()

    def opened(self) -> BinaryIO:
        """The file, to append to. What is no file there is moved away: opening a pipe would wait for ever. OSError."""
        if os.path.lexists(self.path) and not self.path.is_file():
            move_away(self.path, "damaged")
        return self.path.open("ab")

    def begin(self) -> None:
        """The server is started: what it has written before does not count."""
        self.out_of_space = False
        self._looked = self.size()

    def look(self) -> None:
        """Reads what is new."""
        with contextlib.suppress(OSError), self.path.open("rb") as source:
            while True:
                source.seek(self._looked)
                new_lines = source.read(_MAX_LOOK)
                # A line that is longer than one look is no line that is sought.
                end = new_lines.rfind(b"\n") + 1 or (_MAX_LOOK if len(new_lines) == _MAX_LOOK else 0)
                if not end:
                    return
                self._looked += end
                self.out_of_space |= _NO_SPACE in new_lines[:end]
                self._refused.update(name.decode() for name in _REFUSED.findall(new_lines[:end]))

    def bound(self) -> None:
        """Keeps the end of the file beside it and empties it when it is longer than MAX_BYTES, unless somebody waits for a
        line.
        """
        if self.size() <= MAX_BYTES or not self.waits.acquire(blocking=False):
            return
        try:
            self.look()
            with self.path.open("rb") as source:
                source.seek(max(0, self.size() - _MAX_LOOK))
                files.write(self.path.with_name(f"{self.path.name}.1"), source.read())
            os.truncate(self.path, 0)  # the server appends
            self._looked = 0
        except OSError:
            return
        finally:
            self.waits.release()

    def take_refused(self) -> Counter[str]:
        """Whom it refused something since the last call, and how often."""
        refused, self._refused = self._refused, Counter()
        return refused

    def size(self) -> int:
        """Bytes of the file; 0: there is none."""
        return self.path.stat().st_size if self.path.exists() else 0
