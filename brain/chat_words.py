"""What the cards of a chat and the answers to them have in common: buttons, and what they carry there and back."""

from collections.abc import Mapping
from dataclasses import dataclass, field

import orjson

from brain.core.pack.spec import Scalar

HOLD_S = 4 * 3600.0  # how long a hold from a chat lasts
MAX_VALUE = 2000  # characters of a button's value: Slack's limit


@dataclass(frozen=True, slots=True, kw_only=True)
class Button:
    """One button of a card: an operator command, with exactly what the card shows."""

    verb: str
    args: Mapping[str, Scalar] = field(default_factory=dict)

    @property
    def value(self) -> str:
        """What the platform sends back when somebody presses it."""
        return orjson.dumps({"verb": self.verb, "args": dict(self.args)}).decode()


def label(button: Button) -> str:
    """What stands on it: what it is for."""
    match button.verb:
        case "approve":
            return f"Approve {button.args.get('rung', '')}"
        case "deny":
            return f"Deny {button.args.get('id', '')}"
        case "hold":
            return f"Hold {button.args.get('scope', '')} for {HOLD_S / 3600:.0f} h"
    return "Acknowledge" if button.verb == "ack" else button.verb.capitalize()


def escape(text: str) -> str:
    """Escapes what Slack would show as a link, a mention or a channel."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
