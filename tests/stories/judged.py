"""The stories of the corpus, played: each once in a process."""

import functools
from collections.abc import Iterator
from pathlib import Path

from simulations.scenarios.judge import StoryJudgement, judge
from tests.stories.load import files, load


@functools.cache
def judged(path: Path) -> tuple[StoryJudgement, ...]:
    """The stories of a file; each is played once."""
    return tuple(judge(tale) for tale in load(path).stories)


def all_judged() -> Iterator[tuple[Path, tuple[StoryJudgement, ...]]]:
    """All files, played here one after the other."""
    for path in files():
        yield path, judged(path)
