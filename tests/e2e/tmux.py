"""A real terminal with a program in it, as over ssh: tmux, which reads what the program draws and types what a test says."""

import os
import shutil
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest

WITHIN_S = 120.0


class Tmux:
    """One program in a terminal of this size; its own server, so that nobody's session is touched. `background`: what it says
    that it has, such as #ffffff; empty: it says nothing.
    """

    def __init__(
        self,
        folder: Path,
        *command: str,
        env: dict[str, str],
        size: tuple[int, int] = (80, 24),
        background: str = "",
    ) -> None:
        if shutil.which("tmux") is None:
            pytest.skip("needs tmux")
        self._socket = folder / "tmux.sock"
        self._env = {name: text for name, text in os.environ.items() if name not in ("TMUX", "NO_COLOR")}
        self._env |= {"LC_ALL": "C.UTF-8", "TERM": "xterm-256color"} | env
        columns, rows = size
        config, self._status = folder / "tmux.conf", folder / "tmux.status"
        style = f"set-option -g window-style bg={background}\n" if background else ""
        config.write_text(f"set-option -g remain-on-exit on\n{style}")  # before anything can end
        self._status.unlink(missing_ok=True)
        # tmux sees an end by two signs, in either order, and may wait for ever for the status: the shell writes it down.
        shell = ("sh", "-c", 'trap : INT; "$@"; echo $? >"$0.new"; mv "$0.new" "$0"', str(self._status))
        self._tmux(
            "-f", str(config), "new-session", "-d", "-x", str(columns), "-y", str(rows), *shell, *command
        )

    def _tmux(self, *args: str) -> str:
        done = subprocess.run(
            ["tmux", "-u", "-S", str(self._socket), *args],
            env=self._env,
            capture_output=True,
            text=True,
            timeout=60,
        )
        assert done.returncode == 0, f"{args}: {done.stderr}"
        return done.stdout

    def screen(self, *, colours: bool = False, scrolled: bool = False) -> str:
        """What stands there; `colours`: with the escape sequences that make it so; `scrolled`: with what has gone off its top, as
        when tmux says below it that the program has ended.
        """
        return self._tmux(
            "capture-pane", "-p", *(["-e"] if colours else []), *(["-S", "-"] if scrolled else [])
        )

    def press(self, *keys: str) -> None:
        """Types keys by tmux's names (`Tab`, `Enter`, `Escape`, letters)."""
        for key in keys:
            self._tmux("send-keys", key)

    def type(self, text: str) -> None:
        """Types a text."""
        self._tmux("send-keys", "-l", text)

    def until(self, look: Callable[[str], object], what: str) -> str:
        """Waits for something on the screen."""
        deadline = time.monotonic() + WITHIN_S
        while not look(screen := self.screen()):
            assert time.monotonic() < deadline, f"not within {WITHIN_S} s: {what}\n{screen}"
            time.sleep(0.1)  # before it looks again, until the deadline
        return screen

    def sees(self, *texts: str) -> str:
        """Waits until all of these stand there, however the lines are broken; returns the screen."""
        return self.until(
            lambda screen: all(text in " ".join(screen.split()) for text in texts), f"{texts} are seen"
        )

    def told(self, what: str) -> str:
        """What tmux knows of the terminal, by the name of its format: `alternate_on`, `cursor_flag`, `pane_tty`, `pane_pid`."""
        return self._tmux("display-message", "-p", f"#{{{what}}}").strip()

    def ended(self) -> int | None:
        """The exit status of the program; None: it runs."""
        return int(self._status.read_text()) if self._status.exists() else None

    def end(self) -> None:
        """Of the terminal, and what runs in it."""
        self._tmux("kill-server")
