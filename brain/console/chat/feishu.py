"""Feishu's (Lark's) callbacks: encryption, signature, challenge, buttons of cards. Pure.

https://open.feishu.cn/document/server-docs/event-subscription-guide/event-subscription-configure-/encrypt-key-encryption-configuration-case:
the body is `{"encrypt": <base64>}`: AES-256-CBC, key SHA256(Encrypt Key), the first 16 bytes are the IV, PKCS #7.
`X-Lark-Signature` is SHA256(timestamp + nonce + Encrypt Key + body) in hexadecimal. An address is verified once by
`{"type": "url_verification", "token": ..., "challenge": ...}`.
https://open.feishu.cn/document/feishu-cards/card-callback-communication: `card.action.trigger` of schema 2.0, answered with a
toast within three seconds.
"""

import base64
import binascii
import hmac
from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import sha256
from typing import Any

import orjson
from cryptography.hazmat.primitives import padding
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

from brain.console.chat.once import Once, seconds
from brain.console.chat.refused import Forged, Odd

WITHIN_S = 300.0


@dataclass(frozen=True, slots=True, kw_only=True)
class FeishuKeys:
    """What the app and gpuward both know."""

    encrypt: str
    token: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CardAction:
    """A button of a card that somebody pressed."""

    sender: str
    # Of this press: it counts once
    id: str
    value: Any


def sign(encrypt_key: str, stamp: str, nonce: str, body: bytes) -> str:
    """Returns the value of X-Lark-Signature."""
    return sha256(f"{stamp}{nonce}{encrypt_key}".encode("utf-8", "replace") + body).hexdigest()


def decrypt(encrypt_key: str, text: str) -> bytes:
    """Returns what was encrypted. Forged: not with this key."""
    try:
        raw = base64.b64decode(text, validate=True)
        key = Cipher(
            algorithms.AES256(sha256(encrypt_key.encode()).digest()), modes.CBC(raw[:16])
        ).decryptor()
        unpad = padding.PKCS7(128).unpadder()
        return unpad.update(key.update(raw[16:]) + key.finalize()) + unpad.finalize()
    except (ValueError, binascii.Error) as error:
        raise Forged("it is not encrypted with this app's key") from error


def opened(
    keys: FeishuKeys, headers: Mapping[str, str], body: bytes, once: Once, now: float
) -> dict[str, Any]:
    """Returns what Feishu says: a challenge, or an event whose signature is right. Forged: Feishu has not sent it now."""
    try:
        outer: Any = orjson.loads(body)
        text = outer["encrypt"]
    except (orjson.JSONDecodeError, KeyError, TypeError) as error:
        raise Forged("it is not encrypted") from error
    if not isinstance(text, str):
        raise Forged("it is not encrypted")
    try:
        inner: Any = orjson.loads(decrypt(keys.encrypt, text))
    except orjson.JSONDecodeError as error:
        raise Forged("it is not encrypted with this app's key") from error
    if not isinstance(inner, dict):
        raise Odd("it is no object")
    if challenge(inner):  # not signed; nothing is done by it
        _check_token(keys, inner.get("token"))
        return inner
    stamp, nonce, shown = (
        headers.get(f"X-Lark-{name}", "") for name in ("Request-Timestamp", "Request-Nonce", "Signature")
    )
    if not (stamp.isascii() and stamp.isdigit()) or once.too_old(seconds(stamp), now):
        raise Forged("its time is not now")
    wanted = sign(keys.encrypt, stamp, nonce, body)
    if not hmac.compare_digest(wanted.encode(), shown.encode("utf-8", "replace")):
        raise Forged("its signature is wrong")
    header = inner.get("header")
    _check_token(keys, header.get("token") if isinstance(header, dict) else None)
    if once.again(shown, now):
        raise Forged("it was here before")
    return inner


def challenge(inner: Mapping[str, Any]) -> str:
    """What an address that is verified must answer with; empty: it is an event."""
    word = inner.get("challenge")
    return word if inner.get("type") == "url_verification" and isinstance(word, str) else ""


def action(inner: Mapping[str, Any]) -> CardAction:
    """Returns the button that was pressed. Odd: it is another event."""
    try:
        header, event = inner["header"], inner["event"]
        kind, id_ = header["event_type"], header["event_id"]
        sender, value = event["operator"]["open_id"], event["action"]["value"]
    except (KeyError, TypeError) as error:
        raise Odd("it is no card action") from error
    if kind != "card.action.trigger" or not isinstance(sender, str) or not isinstance(id_, str):
        raise Odd("it is no card action")
    return CardAction(sender=sender, id=f"feishu:{id_}", value=value)


def toast(text: str, *, good: bool) -> dict[str, Any]:
    """What is shown to whoever pressed it."""
    return {"toast": {"type": "success" if good else "error", "content": text}}


def _check_token(keys: FeishuKeys, shown: object) -> None:
    if not isinstance(shown, str) or not hmac.compare_digest(
        shown.encode("utf-8", "replace"), keys.token.encode()
    ):
        raise Forged("its verification token is wrong")
