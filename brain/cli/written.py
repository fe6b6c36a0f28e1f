"""What runbooks and drills say of themselves, in another language: by the catalogue that the console's pages have."""

from collections.abc import Mapping
from functools import cache
from pathlib import Path

from agent.shared.words import language, read

FOLDER = Path(__file__).resolve().parents[1] / "console" / "web" / "words"
_WRITTEN = "said-of-"  # what the ids of such texts begin with


def written(english: str) -> str:
    """Returns the text in the language that is spoken; what a site has written itself stands as it is."""
    return english if language() == "en" else _told(language()).get(english, english)


@cache
def _told(of: str) -> Mapping[str, str]:
    theirs = read(FOLDER / of)
    return {
        text: theirs[id_]
        for id_, text in read(FOLDER / "en").items()
        if id_.startswith(_WRITTEN) and id_ in theirs
    }
