"""What others answer and nobody can read: an error of theirs, and never the end of the brain.

Each reader refuses what it knows to be wrong. A form of answer that nobody thought of raises what is in BROKEN_BY_TEXT, in the
middle of the reader; the brain would end by it, be started again, ask again and end again, and so would the next leader. So
whoever asks another system does it within `answered_by`.
"""

import contextlib
import logging
from collections.abc import Iterator

from agent.contract.errors import ActionError
from agent.contract.inert import inert
from agent.contract.messages import clip

# What a text that nobody thought of raises in code that reads it.
BROKEN_BY_TEXT = (ValueError, TypeError, LookupError, ArithmeticError, AttributeError, RecursionError)
_MOST_TEXT = 200
_log = logging.getLogger(__name__)


@contextlib.contextmanager
def answered_by(whom: str = "", error_kind: type[ActionError] = ActionError) -> Iterator[None]:
    """Raises what breaks by an answer of `whom` as an `error_kind`; other errors pass. TimedOut: something may have been done.
    `whom` stands in the text, where nobody else puts it there.
    """
    try:
        yield
    except OSError:  # some are ValueErrors too, and say what is wrong
        raise
    except BROKEN_BY_TEXT as error:
        _log.exception("an answer broke what reads it")
        what = f"{type(error).__name__}: {inert(clip(str(error), _MOST_TEXT))}"
        text = f"its answer has a form that nobody here knows ({what})"
        raise error_kind(f"{whom}: {text}" if whom else text) from error
