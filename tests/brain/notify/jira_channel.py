"""The Jira channel as an operator configures it, and the pages that it gets in tests."""

from dataclasses import replace
from pathlib import Path
from typing import Any

from brain.core.state import RunState
from brain.notify.compose import compose
from brain.notify.jira import build
from brain.notify.message import PageMessage
from brain.notify.tickets import TicketChannel
from tests.brain.notify.jira_server import TOKEN, USER
from tests.brain.notify.pages import page, rule, run


def jira(at: str, folder: Path, version: int = 3, **more: Any) -> TicketChannel:
    """The channel as an operator configures it."""
    token = folder / "token"
    token.write_text(TOKEN + "\n")
    given = {
        "url": f"{at}/jira",
        "project": "OPS",
        "token_file": str(token),
        "api": version,
        "settle_s": 0.0,
    }
    return build("j", given | ({"user": USER} if version == 3 else {}) | more, "channels.j")


def message(what: Any = "open", number: int = 1, **more: Any) -> PageMessage:
    """A page of the incident, with its number."""
    sent = replace(page(what, text=more.pop("text", "opened")), id=f"inc-1.p{number}")
    return replace(compose(sent, rule=rule(), runs=[run(RunState.APPROVAL)]), **more)
