"""Globs that somebody has asked for. Pure."""

import re
from collections.abc import Callable
from fnmatch import translate


def glob(pattern: str) -> Callable[[str], bool]:
    """Returns what says whether a text fits, as fnmatch.fnmatchcase does. That one keeps 32,768 patterns, each of up to 16 KB
    where the API takes it: whoever asks for another one each time fills the brain's memory.
    """
    found = re.compile(translate(pattern))
    return lambda text: found.match(text) is not None
