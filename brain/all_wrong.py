"""All that is wrong with a configuration, not only what is found first: whoever corrects it does so once.

wrong = AllWrong()
with wrong.also():
    look_at_one_part()
with wrong.also():
    look_at_another()
wrong.end(ConfigError)
"""

from collections.abc import Iterator
from contextlib import contextmanager

from agent.contract.errors import ConfigError


class AllWrong:
    """What was refused, each line once."""

    def __init__(self) -> None:
        self._lines: dict[str, None] = {}

    @contextmanager
    def also(self) -> Iterator[None]:
        """What is refused within is kept, and whoever looks goes on."""
        try:
            yield
        except (ConfigError, ValueError) as error:
            self.add(str(error))

    def add(self, text: str) -> None:
        """What is wrong, one thing a line."""
        self._lines.update(dict.fromkeys(text.splitlines()))

    @property
    def lines(self) -> tuple[str, ...]:
        """What was refused."""
        return tuple(self._lines)

    def end(self, kind: type[Exception] = ConfigError) -> None:
        """Raises one error of all lines, where there are any."""
        if self._lines:
            raise kind("\n".join(self._lines))
