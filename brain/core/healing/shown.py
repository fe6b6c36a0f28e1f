"""What somebody was shown when they were asked for an approval: a mark that the button, card or page carries and hands back.

An approval given by it counts only as long as nothing has become worse since: it is for what was shown, however long the card
has hung in a chat. The mark is a text of six parts between dots: severity, nodes, and short hashes of the step, the protected
job, the maintenance windows that are open and the active symptoms. A long list is cut (`*`): what it leaves out counts as shown.
"""

from collections.abc import Container, Iterable
from hashlib import blake2s

from brain.core.context import Context
from brain.core.healing import approvals
from brain.core.pack.spec import Priority
from brain.core.said import said
from brain.core.state import Run, State

MOST = 16  # entries of one list: a button of WeCom carries 1,024 bytes
_MORE = "*"


class _Hashes(Container[str]):
    """Texts of which only hashes are known."""

    def __init__(self, part: str) -> None:
        self._known = set(part.split(","))

    def __contains__(self, text: object) -> bool:
        return _MORE in self._known or _hash(str(text)) in self._known


def mark(state: State, run: Run) -> str:
    """Returns the mark of what an approval of this run would be for now; empty: its incident is forgotten."""
    incident = state.incidents.get(run.incident)
    if incident is None:
        return ""
    settings = state.pack.settings if state.pack else None
    windows = [
        approvals.window_text(one)
        for one in (settings.maintenance if settings else ())
        if one.since <= state.now < one.until
    ]
    parts = (
        incident.severity.value,
        str(incident.nodes),
        _hash(approvals.what(run)),
        _hash(approvals.protected_job(state, run)),
        _few(windows),
        _few(approvals.active_symptoms(state, run)),
    )
    return ".".join(parts)


def objection(ctx: Context, run: Run, *, rung: str, seen: str) -> str:
    """Why an approval of `rung`, with the mark `seen`, is not for what is there now; empty: it is. Either may be empty."""
    present = approvals.rung(run)
    if rung and rung != present:
        return said(
            "{id} is at {present} now, not at {shown}: look again before you approve",
            id=run.id,
            present=repr(present),
            shown=repr(rung),
        )
    if seen and (why := _worse_since(ctx, run, seen)):
        return said("{id} is not as it was shown: {why}; look again before you approve", id=run.id, why=why)
    return ""


def _worse_since(ctx: Context, run: Run, seen: str) -> str:
    try:
        severity, nodes, what, protected, windows, symptoms = seen.split(".")
        most = Priority(severity), int(nodes)
    except ValueError:
        return "what was shown cannot be read"
    if _hash(approvals.what(run)) != what:
        return "it is another step now"
    return approvals.worse(
        ctx,
        run,
        severity=most[0],
        nodes=most[1],
        windows=_Hashes(windows),
        protected=_Hashes(protected),
        symptoms=_Hashes(symptoms),
    )


def _hash(text: str) -> str:
    return blake2s(text.encode("utf-8", "replace"), digest_size=4).hexdigest()


def _few(texts: Iterable[str]) -> str:
    found = sorted({_hash(one) for one in texts})
    return ",".join((*found[:MOST], *([_MORE] if len(found) > MOST else [])))
