"""Messages and button events of a WeCom app: signature, encryption, sender, the answer. Pure.

https://developer.work.weixin.qq.com/document/path/90968: `msg_signature` is SHA1 of token, timestamp, nonce and the encrypted
text, sorted and joined. The text is base64 of AES-256-CBC: key base64(EncodingAESKey + "="), IV its first 16 bytes, PKCS #7 to 32
bytes; within it 16 random bytes, the length (4 bytes, big endian), the message, the CorpID.
https://developer.work.weixin.qq.com/document/path/90238: GET with `echostr` verifies the URL; an answer within five seconds is
encrypted in the same way. https://developer.work.weixin.qq.com/document/path/90240: `template_card_event` with `EventKey`.
"""

import base64
import binascii
import hmac
import secrets
import struct
from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import sha1, sha256
from xml.etree import ElementTree as ET
from xml.sax.saxutils import escape

from cryptography.hazmat.primitives import padding
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

from agent.contract.errors import ConfigError
from brain.console.chat.once import Once, seconds
from brain.console.chat.refused import Forged, Odd

WITHIN_S = 300.0
_BLOCK = 256  # bits: they pad to 32 bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class WeComKeys:
    """What the app and gpuward both know."""

    token: str
    # 32 bytes
    aes: bytes
    corp: str


@dataclass(frozen=True, slots=True, kw_only=True)
class AppMessage:
    """A line that somebody wrote, or a button that they pressed (`button`: its key)."""

    sender: str
    id: str
    text: str = ""
    button: str = ""
    # The app, as the answer names it
    app: str = ""


def aes_key(encoded: str, where: str) -> bytes:
    """Returns the key of an EncodingAESKey. ConfigError: it is none."""
    try:
        key = base64.b64decode(encoded + "=", validate=True)
    except (ValueError, binascii.Error):
        key = b""
    if len(encoded) != 43 or len(key) != 32:
        raise ConfigError(f"{where}: an EncodingAESKey has 43 letters and digits")
    return key


def sign(token: str, stamp: str, nonce: str, encrypted: str) -> str:
    """Returns msg_signature. SHA-1 is the platform's choice."""
    joined = "".join(sorted((token, stamp, nonce, encrypted))).encode("utf-8", "replace")
    return sha1(joined, usedforsecurity=False).hexdigest()


def encrypt(keys: WeComKeys, message: bytes) -> str:
    """Returns a message as the platform takes it."""
    plain = secrets.token_bytes(16) + struct.pack("!I", len(message)) + message + keys.corp.encode()
    pad = padding.PKCS7(_BLOCK).padder()
    box = Cipher(algorithms.AES256(keys.aes), modes.CBC(keys.aes[:16])).encryptor()
    return base64.b64encode(box.update(pad.update(plain) + pad.finalize()) + box.finalize()).decode()


def opened(keys: WeComKeys, query: Mapping[str, str], encrypted: str, once: Once, now: float) -> bytes:
    """Returns what is in it. Forged: WeCom has not sent it to us now, or it was here before."""
    stamp, nonce, shown = (query.get(name, "") for name in ("timestamp", "nonce", "msg_signature"))
    if not (stamp.isascii() and stamp.isdigit()) or once.too_old(seconds(stamp), now):
        raise Forged("its time is not now")
    wanted = sign(keys.token, stamp, nonce, encrypted)
    if not hmac.compare_digest(wanted.encode(), shown.encode("utf-8", "replace")):
        raise Forged("its signature is wrong")
    plain = _decrypted(keys, encrypted)
    size = struct.unpack("!I", plain[16:20])[0] if len(plain) >= 20 else 0
    message, corp = plain[20 : 20 + size], plain[20 + size :]
    if len(message) < size or not hmac.compare_digest(corp, keys.corp.encode()):
        raise Forged("it is for another company")
    if once.again(shown, now):
        raise Forged("it was here before")
    return message


def encrypted_part(body: bytes) -> str:
    """Returns the element `Encrypt` of a request. Forged: there is none."""
    try:
        return _xml(body)["Encrypt"]
    except (Odd, KeyError) as error:
        raise Forged("it is not encrypted") from error


def message(plain: bytes) -> AppMessage:
    """Returns what was written or pressed. Odd: it is something else."""
    found = _xml(plain)
    sender, made, app = (found.get(name, "") for name in ("FromUserName", "CreateTime", "ToUserName"))
    kind, event = found.get("MsgType"), found.get("Event")
    if sender and kind == "text" and found.get("MsgId"):
        return AppMessage(sender=sender, id=f"wecom:{found['MsgId']}", text=found.get("Content", ""), app=app)
    if sender and kind == "event" and event == "template_card_event" and found.get("EventKey"):
        key = sha256(found["EventKey"].encode()).hexdigest()[
            :16
        ]  # two buttons of a card within a second are two words
        id_ = f"wecom:{sender}:{made}:{found.get('TaskId', '')}:{key}"
        return AppMessage(sender=sender, id=id_, button=found["EventKey"], app=app)
    raise Odd("neither a text nor a button")


def answer(keys: WeComKeys, to: AppMessage, text: str, now: float) -> bytes:
    """Returns the answer: a text for a text; for a button, its new label."""
    stamp, nonce = str(int(now)), secrets.token_hex(8)
    said = (
        f"<MsgType>update_button</MsgType><Button><ReplaceName>{escape(text)}</ReplaceName></Button>"
        if to.button
        else f"<MsgType>text</MsgType><Content>{escape(text)}</Content>"
    )
    plain = (
        f"<xml><ToUserName>{escape(to.sender)}</ToUserName><FromUserName>{escape(to.app)}</FromUserName>"
        f"<CreateTime>{stamp}</CreateTime>{said}</xml>"
    )
    encrypted = encrypt(keys, plain.encode())
    signature = sign(keys.token, stamp, nonce, encrypted)
    return (
        f"<xml><Encrypt>{encrypted}</Encrypt><MsgSignature>{signature}</MsgSignature>"
        f"<TimeStamp>{stamp}</TimeStamp><Nonce>{nonce}</Nonce></xml>"
    ).encode()


def _decrypted(keys: WeComKeys, encrypted: str) -> bytes:
    try:
        raw = base64.b64decode(encrypted, validate=True)
        box = Cipher(algorithms.AES256(keys.aes), modes.CBC(keys.aes[:16])).decryptor()
        unpad = padding.PKCS7(_BLOCK).unpadder()
        return unpad.update(box.update(raw) + box.finalize()) + unpad.finalize()
    except (ValueError, binascii.Error) as error:
        raise Forged("it is not encrypted with this app's key") from error


def _xml(body: bytes) -> dict[str, str]:
    """The texts of the root's children. Odd: it is no XML, or declares a type: entities are for nobody."""
    if b"<!DOCTYPE" in body.upper() or b"<!ENTITY" in body.upper() or b"\0" in body:
        raise Odd("it declares a document type")
    try:
        root = ET.fromstring(body.decode())  # noqa: S314 - without a document type there are no entities to expand
    except (ET.ParseError, UnicodeDecodeError, ValueError) as error:
        raise Odd("it is no XML") from error
    return {child.tag: (child.text or "").strip() for child in root}
