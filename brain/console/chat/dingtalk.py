"""Words to a robot in DingTalk: signature, sender, text. Pure.

https://open.dingtalk.com/document/orgapp/receive-message: header `timestamp` in ms, header `sign`: base64 of
HMAC-SHA256(AppSecret, "<timestamp>\\n<AppSecret>"), an hour at most. The signature does not cover the body: so only five minutes
count here, and a signature once, whatever comes with it. Two lines of one millisecond have the same one: the second does nothing,
and whoever wrote it is told to write it again (decision 102).
"""

import base64
import hmac
from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import sha256
from typing import Any

import orjson

from brain.console.chat.once import Once, seconds
from brain.console.chat.refused import Forged, Odd, SameMoment

WITHIN_S = 300.0
AGAIN = "this was not taken: another line came within its millisecond, and DingTalk signs nothing but the time. Write it again"


@dataclass(frozen=True, slots=True, kw_only=True)
class RobotMessage:
    """A line that somebody wrote to the robot."""

    # senderStaffId: of a member of the organisation, whoever else writes has none
    sender: str
    id: str
    text: str


def sign(secret: str, stamp: str) -> str:
    """Returns the value of the header `sign`."""
    return base64.b64encode(
        hmac.new(secret.encode(), f"{stamp}\n{secret}".encode(), sha256).digest()
    ).decode()


def verify(secret: str, headers: Mapping[str, str], body: bytes, once: Once, now: float) -> None:
    """Forged: DingTalk has not sent it now, or it was here before. SameMoment: its signature was, with another line."""
    stamp, shown = headers.get("timestamp", ""), headers.get("sign", "")
    if not (stamp.isascii() and stamp.isdigit()) or once.too_old(seconds(stamp, 1000), now):
        raise Forged("its time is not now")
    if not hmac.compare_digest(sign(secret, stamp).encode(), shown.encode("utf-8", "replace")):
        raise Forged("its signature is wrong")
    line = f"{shown} {sha256(body).hexdigest()}"
    if not once.again(shown, now):
        once.again(line, now)
    elif once.knows(line):
        raise Forged("it was here before")
    else:
        raise SameMoment("its signature was here before, with another line")


def message(body: bytes) -> RobotMessage:
    """Returns what was written. Odd: it is no text, or of nobody of the organisation."""
    try:
        raw: Any = orjson.loads(body)
        if raw["msgtype"] != "text":
            raise Odd("only text is read")
        sender, id_, text = raw["senderStaffId"], raw["msgId"], raw["text"]["content"]
    except (orjson.JSONDecodeError, KeyError, TypeError) as error:
        raise Odd("it is no message to a robot") from error
    if not all(isinstance(one, str) and one for one in (sender, id_, text)):
        raise Odd("it is no message to a robot")
    return RobotMessage(sender=sender, id=f"dingtalk:{id_}", text=text)


def answer(text: str) -> dict[str, Any]:
    """What is written into the conversation."""
    return {"msgtype": "text", "text": {"content": text}}
