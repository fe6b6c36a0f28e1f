"""What chats and pagers sign, as their documentation has it: what is theirs is taken; each once, and only now."""

import base64
import struct
from hashlib import sha1, sha256
from typing import Any
from urllib.parse import quote

import orjson
import pytest
from cryptography.hazmat.primitives import padding
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

from agent.contract.errors import ConfigError
from brain.console.chat import dingtalk, feishu, pagerduty, slack, wecom
from brain.console.chat.once import Once, seconds
from brain.console.chat.refused import Forged, Odd

NOW = 1_531_420_618.0
# The example of docs.slack.dev/authentication/verifying-requests-from-slack.
SLACK_SECRET = b"8f742231b10e8888abcd99yyyzzz85a5"
SLACK_BODY = (
    b"token=xyzz0WbapA4vBCDEFasx0q6G&team_id=T1DC2JH3J&team_domain=testteamnow&channel_id=G8PSS9T3V&channel_name=foobar"
    b"&user_id=U2CERLKJA&user_name=roadrunner&command=%2Fwebhook-collect&text=&response_url=https%3A%2F%2Fhooks.slack.com"
    b"%2Fcommands%2FT1DC2JH3J%2F397700885554%2F96rGlfmibIGlgcZRskXaIFfN&trigger_id=398738663015.47445629121.803a0bc887a14d10d2c447fce8b6703c"
)
SLACK_SIGNATURE = "v0=a2114d57b48eac39b9ad189dd8316235a7b4a8d21a10bd27519666489c69b503"
FEISHU = feishu.FeishuKeys(encrypt="test key", token="verify me")
WECOM = wecom.WeComKeys(
    token="QDG6eK",
    aes=wecom.aes_key("jWmYm7qr5nMoAUwZRjGtBxmz3KA1tkAj3ykkR6q2B2C", "here"),
    corp="wx5823bf96d3bd56c7",
)


def slack_headers(body: bytes, stamp: str = "1531420618") -> dict[str, str]:
    return {"X-Slack-Request-Timestamp": stamp, "X-Slack-Signature": slack.sign(SLACK_SECRET, stamp, body)}


def test_slack_signs_as_its_documentation_shows() -> None:
    """The secret, the body and the signature of its example; a second time, later, or changed it is forged."""
    once = Once(slack.WITHIN_S)
    headers = {"X-Slack-Request-Timestamp": "1531420618", "X-Slack-Signature": SLACK_SIGNATURE}
    for body, at in ((SLACK_BODY + b"x", NOW), (SLACK_BODY, NOW + 301), (SLACK_BODY, NOW - 301)):
        with pytest.raises(Forged):
            slack.verify(SLACK_SECRET, headers, body, once, at)
    slack.verify(SLACK_SECRET, headers, SLACK_BODY, once, NOW)
    with pytest.raises(Forged, match="before"):
        slack.verify(SLACK_SECRET, headers, SLACK_BODY, once, NOW + 10)


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"X-Slack-Request-Timestamp": "nan", "X-Slack-Signature": SLACK_SIGNATURE},
        {"X-Slack-Request-Timestamp": "1531420618.0", "X-Slack-Signature": SLACK_SIGNATURE},
        {"X-Slack-Request-Timestamp": "١٥٣١٤٢٠٦١٨", "X-Slack-Signature": SLACK_SIGNATURE},
        {"X-Slack-Request-Timestamp": "1531420618", "X-Slack-Signature": ""},
        {"X-Slack-Request-Timestamp": "1531420618", "X-Slack-Signature": SLACK_SIGNATURE.upper()},
        {"X-Slack-Request-Timestamp": "1531420618", "X-Slack-Signature": "v0=\udc80"},
        {"X-Slack-Request-Timestamp": "9" * 400, "X-Slack-Signature": SLACK_SIGNATURE},
    ],
)
def test_what_slack_has_not_signed_is_forged(headers: dict[str, str]) -> None:
    """No odd header is an error of ours, or let in."""
    with pytest.raises(Forged):
        slack.verify(SLACK_SECRET, headers, SLACK_BODY, Once(slack.WITHIN_S), NOW)


def block_actions(**more: Any) -> bytes:
    payload: dict[str, Any] = {
        "type": "block_actions",
        "user": {"id": "U1", "username": "ann", "team_id": "T1"},
        "actions": [
            {"action_id": "ack", "block_id": "b", "type": "button", "value": "{}", "action_ts": "1.2"}
        ],
        "response_url": "https://hooks.slack.com/actions/T1/2/3",
    }
    return b"payload=" + quote(orjson.dumps(payload | more).decode()).encode()


def test_a_button_in_slack_is_read() -> None:
    """Its sender, its value, and where to answer; an answer elsewhere than at Slack is asked of nobody."""
    assert slack.pressed(block_actions()) == slack.Pressed(
        sender="U1", id="slack:U1:1.2", value="{}", response_url="https://hooks.slack.com/actions/T1/2/3"
    )
    for url in (
        "http://hooks.slack.com/x",
        "https://hooks.slack.com@evil.example/x",
        "https://hooks.slack.com.evil.example/x",
        "https://127.0.0.1/x",
        "https://hooks.slack.com:8443/x",
        "https://[",
    ):
        assert slack.pressed(block_actions(response_url=url)).response_url == ""


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"payload=",
        b"payload={",
        b"payload=[]",
        b"x=1",
        b"\xff\xfe",
        b"payload=%FF",
        b"payload=7",
        b"&" * 100,
    ],
)
def test_what_is_no_block_action_is_odd(body: bytes) -> None:
    """Whatever it is, it is refused, and is no error of ours."""
    with pytest.raises(Odd):
        slack.pressed(body)


@pytest.mark.parametrize(
    "more",
    [
        {"type": "view_submission"},
        {"user": None},
        {"user": {"id": 7}},
        {"actions": []},
        {"actions": [{"value": 1}]},
    ],
)
def test_a_payload_that_lacks_something_is_odd(more: dict[str, Any]) -> None:
    """Signed by Slack, and still not what we can use."""
    with pytest.raises(Odd):
        slack.pressed(block_actions(**more))


def feishu_encrypted(inner: Any, key: str = FEISHU.encrypt) -> bytes:
    """As Feishu encrypts, with an IV of our own."""
    iv, pad = b"0123456789abcdef", padding.PKCS7(128).padder()
    box = Cipher(algorithms.AES256(sha256(key.encode()).digest()), modes.CBC(iv)).encryptor()
    text = box.update(pad.update(orjson.dumps(inner)) + pad.finalize()) + box.finalize()
    return orjson.dumps({"encrypt": base64.b64encode(iv + text).decode()})


def feishu_headers(body: bytes, key: str = FEISHU.encrypt) -> dict[str, str]:
    stamp, nonce = str(int(NOW)), "n1"
    signature = sha256((stamp + nonce + key).encode() + body).hexdigest()
    return {"X-Lark-Request-Timestamp": stamp, "X-Lark-Request-Nonce": nonce, "X-Lark-Signature": signature}


CARD = {
    "schema": "2.0",
    "header": {
        "event_id": "e1",
        "token": FEISHU.token,
        "create_time": "1531420618000",
        "event_type": "card.action.trigger",
    },
    "event": {"operator": {"open_id": "ou_1"}, "action": {"tag": "button", "value": {"verb": "ack"}}},
}


def test_feishu_decrypts_the_example_of_its_documentation() -> None:
    """`hello world` with `test key`, from the page about the Encrypt Key."""
    shown = "P37w+VZImNgPEO1RBhJ6RtKl7n6zymIbEG1pReEzghk="
    assert feishu.decrypt("test key", shown) == b"hello world"


def test_a_card_of_feishu_counts_once() -> None:
    """Encrypted and signed; not with another key, another token, later, or a second time."""
    body, once = feishu_encrypted(CARD), Once(feishu.WITHIN_S)
    other = feishu_encrypted(CARD | {"header": CARD["header"] | {"token": "?"}})  # type: ignore[operator]  # a dict of dicts
    for raw, headers, at in (
        (body, {}, NOW),
        (body, feishu_headers(body, "other key"), NOW),
        (body, feishu_headers(body + b" "), NOW),
        (body, feishu_headers(body), NOW + 301),
        (other, feishu_headers(other), NOW),
        (feishu_encrypted(CARD, "other key"), feishu_headers(body), NOW),
        (orjson.dumps(CARD), feishu_headers(orjson.dumps(CARD)), NOW),
        (b"[]", feishu_headers(b"[]"), NOW),
        (b'{"encrypt": "AAAA"}', feishu_headers(b"x"), NOW),
        (b'{"encrypt": 7}', feishu_headers(b"x"), NOW),
        (b"{", feishu_headers(b"{"), NOW),
    ):
        with pytest.raises(Forged):
            feishu.opened(FEISHU, headers, raw, once, at)
    inner = feishu.opened(FEISHU, feishu_headers(body), body, once, NOW)
    assert feishu.action(inner) == feishu.CardAction(sender="ou_1", id="feishu:e1", value={"verb": "ack"})
    with pytest.raises(Forged, match="before"):
        feishu.opened(FEISHU, feishu_headers(body), body, once, NOW)


def test_headers_that_are_no_text_are_forged() -> None:
    """A header may hold any byte: it is no error of ours."""
    body = feishu_encrypted(CARD)
    with pytest.raises(Forged):
        feishu.opened(FEISHU, feishu_headers(body) | {"X-Lark-Request-Nonce": "\udc80"}, body, Once(300), NOW)
    with pytest.raises(Forged):
        wecom.opened(WECOM, wecom_query("AAAA") | {"nonce": "\udc80"}, "AAAA", Once(300), NOW)
    with pytest.raises(Forged):
        wecom.opened(WECOM, wecom_query("AAAA"), "\udc80", Once(300), NOW)


def test_feishu_verifies_an_address() -> None:
    """The challenge comes back to whoever knows key and token, and to nobody else."""
    asked = {"type": "url_verification", "challenge": "c1", "token": FEISHU.token}
    once = Once(feishu.WITHIN_S)
    assert feishu.challenge(feishu.opened(FEISHU, {}, feishu_encrypted(asked), once, NOW)) == "c1"
    with pytest.raises(Forged):
        feishu.opened(FEISHU, {}, feishu_encrypted(asked | {"token": "guess"}), once, NOW)
    with pytest.raises(Forged):
        feishu.opened(FEISHU, {}, orjson.dumps(asked), once, NOW)


@pytest.mark.parametrize(
    "inner", [{}, {"header": {}}, CARD | {"event": {}}, CARD | {"header": {"event_type": "x"}}]
)
def test_another_event_of_feishu_is_odd(inner: dict[str, Any]) -> None:
    """An app can be subscribed to more than its cards."""
    with pytest.raises(Odd):
        feishu.action(inner)


def test_a_line_to_a_robot_of_dingtalk_counts_once() -> None:
    """Its signature covers the time alone: so one signature brings one line, whatever the line is."""
    once, stamp = Once(dingtalk.WITHIN_S), str(int(NOW * 1000))
    headers = {"timestamp": stamp, "sign": dingtalk.sign("s3cret", stamp)}
    with pytest.raises(Forged):
        dingtalk.verify("other", headers, once, NOW)
    with pytest.raises(Forged):
        dingtalk.verify("s3cret", headers, once, NOW + 3000)
    with pytest.raises(Forged):
        dingtalk.verify("s3cret", {**headers, "timestamp": str(int(NOW))}, once, NOW)
    dingtalk.verify("s3cret", headers, once, NOW)
    with pytest.raises(Forged, match="before"):
        dingtalk.verify("s3cret", headers, once, NOW)
    body = orjson.dumps(
        {"msgtype": "text", "text": {"content": " ack inc-1"}, "msgId": "m1", "senderStaffId": "manager1"}
    )
    assert dingtalk.message(body) == dingtalk.RobotMessage(
        sender="manager1", id="dingtalk:m1", text=" ack inc-1"
    )
    for odd in (b"", b"[]", b"{}", body.replace(b"manager1", b""), body.replace(b'"text",', b'"audio",')):
        with pytest.raises(Odd):
            dingtalk.message(odd)


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
    assert (said.sender, said.id, said.button) == ("ann.li", "wecom:ann.li:1531420618:t1", "{}")
    with pytest.raises(Odd):
        wecom.message(event.replace(b"template_card_event", b"LOCATION"))


def test_an_aes_key_of_wecom_has_43_letters() -> None:
    """A wrong one is told at the start, with the key of the configuration."""
    for wrong in ("", "short", "é" * 43, "A" * 44):
        with pytest.raises(ConfigError, match=r"chat\.wecom"):
            wecom.aes_key(wrong, "chat.wecom.aes_key_file")


def pagerduty_event(**more: Any) -> bytes:
    event: dict[str, Any] = {
        "id": "5ac64822-4adc-4fda-ade0-410becf0de4f",
        "event_type": "incident.acknowledged",
        "resource_type": "incident",
        "occurred_at": "2018-07-12T18:36:58.000Z",
        "agent": {"id": "PXPGF42", "type": "user_reference", "summary": "Earline Greenholt"},
        "data": {"id": "PGR0VU2", "type": "incident", "incident_key": "inc-abc"},
    }
    return orjson.dumps({"event": event | more})


def test_pagerduty_signs_with_one_of_several_secrets() -> None:
    """While a secret is exchanged there are two signatures."""
    body = pagerduty_event()
    good = pagerduty.sign(b"s", body)
    pagerduty.verify(b"s", {"X-PagerDuty-Signature": f"{pagerduty.sign(b'old', body)},{good}"}, body)
    for shown in (
        "",
        "v1=",
        good.removeprefix("v1="),
        good.replace("v1", "v0"),
        pagerduty.sign(b"old", body),
        "\udc80",
    ):
        with pytest.raises(Forged):
            pagerduty.verify(b"s", {"X-PagerDuty-Signature": shown}, body)
    with pytest.raises(Forged):
        pagerduty.verify(b"s", {"X-PagerDuty-Signature": good}, body + b" ")


def test_what_pagerduty_tells_is_an_acknowledgement_or_a_note() -> None:
    """Never the end of an incident; nothing by what is no person, or about what is not ours."""
    one = pagerduty.event(pagerduty_event())
    assert (one.sender, one.at) == ("PXPGF42", NOW)
    assert pagerduty.wanted(one) == ("ack", {"id": "inc-abc"})
    resolved = pagerduty.wanted(pagerduty.event(pagerduty_event(event_type="incident.resolved")))
    assert resolved is not None
    assert (resolved[0], resolved[1]["id"]) == ("note", "inc-abc")
    group = {"incident_key": "grp-1"}
    assert pagerduty.wanted(pagerduty.event(pagerduty_event(data=group))) == ("ack", {"id": "grp-1"})
    for nothing in (
        {"agent": None},
        {"agent": {"id": "PS", "type": "service_reference"}},
        {"data": {"incident_key": "another"}},
        {"data": {"incident_key": None}},
        {"event_type": "incident.triggered"},
        {"event_type": "incident.resolved", "data": group},
    ):
        assert pagerduty.wanted(pagerduty.event(pagerduty_event(**nothing))) is None


@pytest.mark.parametrize(
    "body", [b"", b"[]", b"{}", b'{"event": []}', pagerduty_event(data=[]), pagerduty_event(id="")]
)
def test_what_is_no_event_of_pagerduty_is_odd(body: bytes) -> None:
    """Signed, and not of the documented form."""
    with pytest.raises(Odd):
        pagerduty.event(body)


def test_what_was_here_is_remembered_as_long_as_it_could_come_again() -> None:
    """And no longer: memory is bounded by the window."""
    once = Once(300)
    assert not once.again("a", 1000)
    assert once.again("a", 1600)
    assert not once.again("b", 1601)
    assert not once.again("a", 1601), "forgotten: by its time it is too old"
    assert once.too_old(1000, 1601)
    assert not once.too_old(1000, 700)
    assert once.too_old(seconds("x"), 1000)
    assert once.too_old(seconds(None), 1000)
    once.forget("a")
    assert not once.again("a", 1602)
