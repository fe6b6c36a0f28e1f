"""The parts `[chat]` and `[alerts]` of the brain's configuration: who may answer pages from a chat or a pager, and whose alerts
become events.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, field_validator

from brain.console_config import GrantConfig, is_name


class _Model(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class _WithUsers(_Model):
    # The platform's id of a person -> their name in [console.users]; who is not here may do nothing
    users: Mapping[str, str] = {}
    # Of what is answered to whoever said something: en or zh
    language: Literal["en", "zh"] = "en"

    @field_validator("users")
    @classmethod
    def _named(cls, users: Mapping[str, str]) -> Mapping[str, str]:
        for sender, name in users.items():
            if not sender or not is_name(name):
                raise ValueError(
                    f"{sender!r} = {name!r}: give an id of the platform and a name of console.users"
                )
        return users


class SlackChatConfig(_WithUsers):
    """Buttons in Slack: `POST /chat/slack` is the Request URL under Interactivity of the app."""

    # File with the app's signing secret
    signing_secret_file: Path


class FeishuChatConfig(_WithUsers):
    """Buttons in Feishu: `POST /chat/feishu` is the request address of the app's events and callbacks. Users: by open_id."""

    # File with the app's Encrypt Key: without one nothing is signed
    encrypt_key_file: Path
    # File with the app's Verification Token
    verification_token_file: Path


class DingTalkChatConfig(_WithUsers):
    """Words to a robot in DingTalk: `POST /chat/dingtalk` is the address that it sends messages to. Users: by senderStaffId."""

    # File with the robot's AppSecret
    app_secret_file: Path


class WeComChatConfig(_WithUsers):
    """Words and buttons in WeCom: `/chat/wecom` is the URL under Receive Messages of the app. Users: by UserID."""

    # File with its Token
    token_file: Path
    # File with its EncodingAESKey (43 letters and digits)
    aes_key_file: Path
    # The CorpID
    corp: str = Field(min_length=1)


class PagerDutyChatConfig(_WithUsers):
    """What is said at PagerDuty: `POST /chat/pagerduty` is the URL of a webhook (v3). Users: by id (P...)."""

    # File with the webhook's secret
    secret_file: Path
    # What others whom PagerDuty names may do, as `pagerduty:<id>`; none: nothing
    others: GrantConfig | None = None


class ChatConfig(_Model):
    """Who may answer from where. Each table opens one route; the platform reaches it by a name of console.hosts."""

    slack: SlackChatConfig | None = None
    feishu: FeishuChatConfig | None = None
    dingtalk: DingTalkChatConfig | None = None
    wecom: WeComChatConfig | None = None
    pagerduty: PagerDutyChatConfig | None = None


class AlertmanagerInputConfig(_Model):
    """Alertmanager's webhook: `POST /alerts/alertmanager` with the token of one user."""

    # Of console.users; a viewer is enough. Only this user's token may report alerts
    user: str
    # The labels that may name a node, in the order in which they are tried; a port behind a name (`n1:9100`) is left out
    node_labels: tuple[str, ...] = ("node", "instance")
    # A label's value -> the node's name, where they differ
    nodes: Mapping[str, str] = {}
    # Alerts that become events; five minutes' worth at once, more must come again
    alerts_per_s: float = Field(default=5, gt=0, le=1000)


class AlertsConfig(_Model):
    """Whose alerts become events that rules can use."""

    alertmanager: AlertmanagerInputConfig | None = None
