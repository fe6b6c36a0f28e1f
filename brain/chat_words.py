"""What the cards of a chat and the answers to them have in common: buttons, and what they carry there and back."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import orjson

from brain.core.pack.spec import Scalar

HOLD_S = 4 * 3600.0  # how long a hold from a chat lasts
MAX_VALUE = 2000  # characters of a button's value: Slack's limit


@dataclass(frozen=True, slots=True, kw_only=True)
class Button:
    """One button of a card: an operator command, with exactly what the card shows."""

    verb: str
    args: Mapping[str, Scalar] = field(default_factory=dict)
    # whose card it is: one app of a platform may be that of several cells; empty: it does not say
    cell: str = ""

    @property
    def carried(self) -> dict[str, Any]:
        """What the platform sends back when somebody presses it."""
        return {"verb": self.verb, "args": dict(self.args)} | ({"cell": self.cell} if self.cell else {})

    @property
    def value(self) -> str:
        """The same as a text."""
        return orjson.dumps(self.carried).decode()


# The verbs in Chinese: on buttons, and as people type them
CHINESE: Mapping[str, str] = {"ack": "我来处理", "approve": "批准", "deny": "拒绝", "hold": "暂停"}


def label(button: Button, language: str = "en") -> str:
    """What stands on it: what it is for. `language`: of the card; `zh` is Chinese alone."""
    if language == "zh" and button.verb in CHINESE:
        about = button.args.get("rung") or button.args.get("scope" if button.verb == "hold" else "id", "")
        lasts = f" {HOLD_S / 3600:.0f} 小时" if button.verb == "hold" else ""
        return CHINESE[button.verb] if button.verb == "ack" else f"{CHINESE[button.verb]} {about}{lasts}"
    match button.verb:
        case "approve":
            return f"Approve {button.args.get('rung', '')}"
        case "deny":
            return f"Deny {button.args.get('id', '')}"
        case "hold":
            return f"Hold {button.args.get('scope', '')} for {HOLD_S / 3600:.0f} h"
    return "Acknowledge" if button.verb == "ack" else button.verb.capitalize()


def question(button: Button, language: str = "en") -> str:
    """What is asked before it counts."""
    return f"{CHINESE[button.verb]}？" if language == "zh" else f"{button.verb.capitalize()}?"


def escape(text: str) -> str:
    """Escapes what Slack would show as a link, a mention or a channel."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
