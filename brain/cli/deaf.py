"""A brain that hears nobody: what it says of nodes and faults is how they were, and may look well when they are not."""

from collections.abc import Mapping
from typing import Any

from agent.shared.words import t

NOBODY_LEADS = "nobody_leads"  # among the troubles; as brain/leader/leader_watch.py says it


def nobody_leads(status: Mapping[str, Any]) -> bool:
    """Does the brain page that nobody leads? It goes on naming the leader that the log had last."""
    return any(one.get("cause") == NOBODY_LEADS for one in status["troubles"])


def deaf(status: Mapping[str, Any]) -> str:
    """Why what the brain with this `/api/v1/status` says of nodes and faults is out of date; empty: it is not."""
    if not status.get("connected", True):
        return t("it is not connected to NATS, so it hears of no node and no fault")
    if nobody_leads(status):
        return t("nobody leads, so nothing that nodes say is taken up")
    if not status.get("caught_up", True):
        return t("it is still reading the log")
    return ""
