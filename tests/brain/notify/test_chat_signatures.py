"""What chats and pagers sign, as their documentation has it: what is theirs is taken; each once, and only now."""

import base64
from hashlib import sha256
from typing import Any
from urllib.parse import quote

import orjson
import pytest
from cryptography.hazmat.primitives import padding
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

from brain.console.chat import dingtalk, feishu, slack
from brain.console.chat.once import Once, seconds
from brain.console.chat.refused import Forged, Odd, SameMoment

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
    body = orjson.dumps(
        {"msgtype": "text", "text": {"content": " ack inc-1"}, "msgId": "m1", "senderStaffId": "manager1"}
    )
    with pytest.raises(Forged):
        dingtalk.verify("other", headers, body, once, NOW)
    with pytest.raises(Forged):
        dingtalk.verify("s3cret", headers, body, once, NOW + 3000)
    with pytest.raises(Forged):
        dingtalk.verify("s3cret", {**headers, "timestamp": str(int(NOW))}, body, once, NOW)
    dingtalk.verify("s3cret", headers, body, once, NOW)
    with pytest.raises(Forged, match="before"):
        dingtalk.verify("s3cret", headers, body, once, NOW)
    with pytest.raises(SameMoment):
        dingtalk.verify("s3cret", headers, body.replace(b"inc-1", b"inc-2"), once, NOW)
    assert dingtalk.message(body) == dingtalk.RobotMessage(
        sender="manager1", id="dingtalk:m1", text=" ack inc-1"
    )
    for odd in (b"", b"[]", b"{}", body.replace(b"manager1", b""), body.replace(b'"text",', b'"audio",')):
        with pytest.raises(Odd):
            dingtalk.message(odd)


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
