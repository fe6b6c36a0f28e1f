"""A console with every platform of [chat], and requests as each of them sends them; for the tests of chats."""

import base64
import itertools
import time
from pathlib import Path
from typing import Any
from urllib.parse import quote

import aiohttp
import orjson

from brain.chat_words import Button
from brain.console.chat import dingtalk, feishu, pagerduty, slack, wecom
from brain.core.state import RunState, State
from tests.brain.notify.pages import incident, run
from tests.brain.notify.test_chat_signatures import feishu_encrypted

SECRET = "test key"
AES = "jWmYm7qr5nMoAUwZRjGtBxmz3KA1tkAj3ykkR6q2B2C"
WECOM = wecom.WeComKeys(token=SECRET, aes=wecom.aes_key(AES, "the test"), corp="corp")
USERS = {
    "ann": {"role": "approver"},
    "bob": {"role": "approver"},
    "olga": {"role": "operator"},
    "vic": {"role": "viewer"},
    "nora": {"role": "approver", "scopes": ["node/n2"]},
}
SENDERS = {f"U{name}": name for name in USERS} | {"Ugone": "gone"}
_numbers = itertools.count(1)
Sent = tuple[str, bytes, dict[str, str]]  # path with query, body, headers


def tables(folder: Path) -> dict[str, Any]:
    """The table `chat` of brain.toml, with the files that it names."""
    folder.mkdir(exist_ok=True)
    for name, text in (("secret", SECRET), ("aes", AES)):
        (folder / name).write_text(text)
        (folder / name).chmod(0o600)
    file, aes = str(folder / "secret"), str(folder / "aes")
    users = {"users": SENDERS}
    return {
        "slack": users | {"signing_secret_file": file},
        "feishu": users | {"encrypt_key_file": file, "verification_token_file": file},
        "dingtalk": users | {"app_secret_file": file},
        "wecom": users | {"token_file": file, "aes_key_file": aes, "corp": WECOM.corp},
        "pagerduty": users | {"secret_file": file},
    }


def waiting() -> State:
    """An incident whose run waits for an approval of `bounce`."""
    state = State()
    one = incident()
    one.runs.append("inc-1.r1")
    state.incidents[one.id] = one
    state.runs["inc-1.r1"] = run(RunState.APPROVAL)
    return state


def by_slack(sender: str, button: Button | str, now: float | None = None, secret: str = SECRET) -> Sent:
    number, stamp = next(_numbers), str(int(now or time.time()))
    payload = {
        "type": "block_actions",
        "user": {"id": sender},
        "actions": [
            {
                "type": "button",
                "value": button if isinstance(button, str) else button.value,
                "action_ts": f"{number}.0",
            }
        ],
        "response_url": f"https://hooks.slack.com/actions/{number}",
    }
    body = b"payload=" + quote(orjson.dumps(payload).decode()).encode()
    return (
        "/chat/slack",
        body,
        {
            "Content-Type": "application/x-www-form-urlencoded",
            "X-Slack-Request-Timestamp": stamp,
            "X-Slack-Signature": slack.sign(secret.encode(), stamp, body),
        },
    )


def by_feishu(sender: str, button: Button, now: float | None = None, secret: str = SECRET) -> Sent:
    stamp = str(int(now or time.time()))
    body = feishu_encrypted(
        {
            "schema": "2.0",
            "header": {
                "event_id": f"e{next(_numbers)}",
                "token": SECRET,
                "event_type": "card.action.trigger",
            },
            "event": {"operator": {"open_id": sender}, "action": {"value": orjson.loads(button.value)}},
        },
        SECRET,
    )
    return (
        "/chat/feishu",
        body,
        {
            "Content-Type": "application/json",
            "X-Lark-Request-Timestamp": stamp,
            "X-Lark-Request-Nonce": "n",
            "X-Lark-Signature": feishu.sign(secret, stamp, "n", body),
        },
    )


def by_dingtalk(
    sender: str, text: str, now: float | None = None, secret: str = SECRET, stamp: str = ""
) -> Sent:
    """`stamp`: in ms; empty: of this line alone."""
    number = next(_numbers)
    stamp = stamp or str(int((now or time.time()) * 1000) + number)
    body = {"msgtype": "text", "text": {"content": text}, "msgId": f"m{number}", "senderStaffId": sender}
    headers = {"Content-Type": "application/json", "timestamp": stamp, "sign": dingtalk.sign(secret, stamp)}
    return "/chat/dingtalk", orjson.dumps(body), headers


def by_wecom(sender: str, text: str, now: float | None = None, secret: str = SECRET) -> Sent:
    stamp = str(int(now or time.time()))
    plain = (
        f"<xml><ToUserName>corp</ToUserName><FromUserName>{sender}</FromUserName><CreateTime>{stamp}</CreateTime>"
        f"<MsgType>text</MsgType><Content>{text}</Content><MsgId>{next(_numbers)}</MsgId></xml>"
    )
    encrypted = wecom.encrypt(WECOM, plain.encode())
    query = f"msg_signature={wecom.sign(secret, stamp, 'n', encrypted)}&timestamp={stamp}&nonce=n"
    body = f"<xml><ToUserName>corp</ToUserName><Encrypt><![CDATA[{encrypted}]]></Encrypt></xml>"
    return f"/chat/wecom?{query}", body.encode(), {"Content-Type": "text/xml"}


def by_pagerduty(
    sender: str, kind: str = pagerduty.ACKNOWLEDGED, now: float | None = None, secret: str = SECRET
) -> Sent:
    at = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(now or time.time()))
    event = {
        "id": f"e{next(_numbers)}",
        "event_type": kind,
        "occurred_at": at,
        "agent": {"id": sender, "type": "user_reference"},
        "data": {"incident_key": "inc-1"},
    }
    body = orjson.dumps({"event": event})
    headers = {
        "Content-Type": "application/json",
        "X-PagerDuty-Signature": pagerduty.sign(secret.encode(), body),
    }
    return "/chat/pagerduty", body, headers


async def send(url: str, sent: Sent) -> tuple[int, bytes]:
    """Status and body of the answer."""
    path, body, headers = sent
    async with (
        aiohttp.ClientSession() as session,
        session.post(url + path, data=body, headers=headers) as answer,
    ):
        return answer.status, await answer.read()


def shown(status: int, body: bytes) -> str:
    """What the platform shows to the sender."""
    if status != 200:
        return ""
    if body.startswith(b"<xml>"):
        text = wecom._decrypted(WECOM, wecom.encrypted_part(body))
        return text.decode(errors="replace").partition("<Content>")[2].partition("<")[0]
    answer = orjson.loads(body)
    return str(answer["toast"]["content"] if "toast" in answer else answer["text"]["content"])


def nonsense() -> list[tuple[str, str, bytes]]:
    """(path, type, body) of what none of the platforms sends."""
    bodies = (
        b"",
        b"{}",
        b"[]",
        b"\xff\xfe",
        b"payload=%7B",
        b"<xml/>",
        b"<xml>",
        base64.b64encode(b"x" * 999),
        b"[" * 9999,
    )
    kinds = {"slack": "application/x-www-form-urlencoded", "wecom": "text/xml"}
    return [
        (f"/chat/{name}", kinds.get(name, "application/json"), body)
        for name in ("slack", "feishu", "dingtalk", "wecom", "pagerduty")
        for body in bodies
    ]
