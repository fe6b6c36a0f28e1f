"""What WeCom encrypts and signs, as its documentation has it."""

import base64
import struct
from hashlib import sha1

import pytest
from cryptography.hazmat.primitives import padding
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

from agent.contract.errors import ConfigError
from brain.console.chat import wecom
from brain.console.chat.once import Once
from brain.console.chat.refused import Forged, Odd

NOW = 1_531_420_618.0
WECOM = wecom.WeComKeys(
    token="QDG6eK",
    aes=wecom.aes_key("jWmYm7qr5nMoAUwZRjGtBxmz3KA1tkAj3ykkR6q2B2C", "here"),
    corp="wx5823bf96d3bd56c7",
)


def wecom_query(encrypted: str, stamp: str = str(int(NOW)), nonce: str = "263014780") -> dict[str, str]:
    joined = "".join(sorted([WECOM.token, stamp, nonce, encrypted]))
    return {"msg_signature": sha1(joined.encode()).hexdigest(), "timestamp": stamp, "nonce": nonce}  # noqa: S324 - WeCom's


def test_wecom_opens_the_example_of_its_library() -> None:
    """Token, EncodingAESKey, CorpID and echostr of the sample that Tencent publishes with its library."""
    query = {
        "msg_signature": "5c45ff5e21c57e6ad56bac8758b79b1d9ac89fd3",
        "timestamp": "1409659589",
        "nonce": "263014780",
    }
    echo = "P9nAzCzyDtyTWESHep1vC5X9xho/qYX3Zpb4yKa9SKld1DsH3Iyt3tP3zNdtp+4RPcs8TgAE7OaBO+FZXvnaqQ=="
    assert wecom.opened(WECOM, query, echo, Once(wecom.WITHIN_S), 1_409_659_600.0) == b"1616140317555161061"


TEXT = (
    b"<xml><ToUserName><![CDATA[wx5823bf96d3bd56c7]]></ToUserName><FromUserName><![CDATA[ann.li]]></FromUserName>"
    b"<CreateTime>1531420618</CreateTime><MsgType><![CDATA[text]]></MsgType><Content><![CDATA[ack inc-1]]></Content>"
    b"<MsgId>4561255354251345929</MsgId><AgentID>218</AgentID></xml>"
)


def test_a_message_of_wecom_counts_once_and_only_for_us() -> None:
    """Signed, encrypted, for our company; the answer opens with the same keys."""
    once, encrypted = Once(wecom.WITHIN_S), wecom.encrypt(WECOM, TEXT)
    elsewhere = wecom.encrypt(wecom.WeComKeys(token=WECOM.token, aes=WECOM.aes, corp="wx1"), TEXT)
    for query, text, at in (
        ({}, encrypted, NOW),
        (wecom_query(encrypted) | {"msg_signature": "0" * 40}, encrypted, NOW),
        (wecom_query(encrypted), encrypted, NOW + 301),
        (wecom_query(encrypted), elsewhere, NOW),
        (wecom_query(elsewhere), elsewhere, NOW),
        (wecom_query("AAAA"), "AAAA", NOW),
        (wecom_query("?"), "?", NOW),
    ):
        with pytest.raises(Forged):
            wecom.opened(WECOM, query, text, once, at)
    said = wecom.message(wecom.opened(WECOM, wecom_query(encrypted), encrypted, once, NOW))
    assert (said.sender, said.id, said.text) == ("ann.li", "wecom:4561255354251345929", "ack inc-1")
    with pytest.raises(Forged, match="before"):
        wecom.opened(WECOM, wecom_query(encrypted), encrypted, once, NOW)
    answer = wecom.answer(WECOM, said, "a < b & c", NOW)
    back = wecom.encrypted_part(answer)
    signature = answer.decode().partition("<MsgSignature>")[2].partition("<")[0]
    nonce = answer.decode().partition("<Nonce>")[2].partition("<")[0]
    query = {"msg_signature": signature, "timestamp": str(int(NOW)), "nonce": nonce}
    opened = wecom.opened(WECOM, query, back, once, NOW)
    assert b"<Content>a &lt; b &amp; c</Content>" in opened


def test_a_length_that_leads_beyond_the_message_is_forged() -> None:
    """The length within the text is WeCom's; a wrong one reads nothing behind it."""
    plain = b"r" * 16 + struct.pack("!I", 2**31) + b"<xml/>" + WECOM.corp.encode()
    pad = padding.PKCS7(256).padder()
    box = Cipher(algorithms.AES256(WECOM.aes), modes.CBC(WECOM.aes[:16])).encryptor()
    text = base64.b64encode(box.update(pad.update(plain) + pad.finalize()) + box.finalize()).decode()
    with pytest.raises(Forged):
        wecom.opened(WECOM, wecom_query(text), text, Once(wecom.WITHIN_S), NOW)


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"<xml>",
        b"\xff",
        b'<!DOCTYPE x [<!ENTITY a "b">]><xml><Encrypt>&a;</Encrypt></xml>',
        b"<!doctype x><xml><Encrypt>a</Encrypt></xml>",
        "<!DOCTYPE x><xml><Encrypt>a</Encrypt></xml>".encode("utf-16"),
        b"<a>" * 37_000 + b"</a>" * 37_000,
        b"<x>" + b"<Encrypt/>" * 25_000,
        b"<xml><Other>a</Other></xml>",
    ],
)
def test_xml_that_is_not_wecoms_is_refused(body: bytes) -> None:
    """No document types: there is nothing to expand, and nothing to fetch."""
    with pytest.raises(Forged):
        wecom.encrypted_part(body)


def test_a_button_of_wecom_is_read() -> None:
    """The key of the button is what its card carried."""
    event = TEXT.replace(b"[text]", b"[event]").replace(
        b"<MsgId>", b"<Event>template_card_event</Event><EventKey>{}</EventKey><TaskId>t1</TaskId><MsgId>"
    )
    said = wecom.message(event)
    assert (said.sender, said.button) == ("ann.li", "{}")
    assert said.id.startswith("wecom:ann.li:1531420618:t1:")
    assert wecom.message(event).id == said.id, "sent again it is the same word"
    other = wecom.message(event.replace(b"{}", b"{1}"))
    assert other.id != said.id, "another button of that card, within the same second, is another word"
    with pytest.raises(Odd):
        wecom.message(event.replace(b"template_card_event", b"LOCATION"))


def test_an_aes_key_of_wecom_has_43_letters() -> None:
    """A wrong one is told at the start, with the key of the configuration."""
    for wrong in ("", "short", "é" * 43, "A" * 44):
        with pytest.raises(ConfigError, match=r"chat\.wecom"):
            wecom.aes_key(wrong, "chat.wecom.aes_key_file")


def test_a_query_of_wecom_that_is_no_text_is_forged() -> None:
    """A refusal, not an error of ours."""
    with pytest.raises(Forged):
        wecom.opened(WECOM, wecom_query("AAAA") | {"nonce": "\udc80"}, "AAAA", Once(300), NOW)
    with pytest.raises(Forged):
        wecom.opened(WECOM, wecom_query("AAAA"), "\udc80", Once(300), NOW)
