"""Can what a brain answers be drawn? It is drawn to nobody, where it was read: what another version says is told, and the
terminal goes on with what it had.
"""

from collections.abc import Mapping

from brain.cli.answers import MeJson, NeedJson, StatusJson
from brain.cli.terminal import WIDTH
from brain.cli.top import details, frame
from brain.cli.top.heard import RowKnown
from brain.cli.top.questions import exactly, offers
from brain.cli.top.rows import Entry, RowKind
from brain.console.words import Words

# What comes of an answer that is none of a brain of this version
BROKEN = (KeyError, TypeError, ValueError, IndexError, AttributeError)
_ANY = "n1"  # what is said about any node must be there, whichever it is


def state(words: Words, status: StatusJson, me: MeJson | None) -> None:
    """One of BROKEN, where the frame or a node's row cannot be drawn of it."""
    frame.head(words, status, me, 0)
    frame.wrong(words, status, cut=None, silent_s=0.0, late="", when="")
    node = Entry(key=_ANY, kind=RowKind.NODE, fields=(), found="")
    details.modes(words, status["modes"])
    offers(node, {}, me, status["holds"])


def needs(words: Words, found: Mapping[str, NeedJson], me: MeJson | None) -> None:
    """The same, where it cannot be asked what may be said about them."""
    for key in found:
        for offer in offers(Entry(key=key, kind=RowKind.INCIDENT, fields=(), found=""), found, me, ()):
            exactly(words, offer)


def known(words: Words, subject: Entry, found: RowKnown, status: StatusJson) -> None:
    """The same of the details of a row."""
    details.text(words, subject, found, status["modes"], WIDTH)
