"""Answers a sender in Slack, at the address that Slack gave for it."""

import logging
from urllib.parse import urlsplit

import aiohttp
import orjson

from brain.chat_words import escape
from brain.outgoing import DIRECT, Outgoing

_log = logging.getLogger(__name__)
TIMEOUT_S = 10.0


async def to_sender(url: str, text: str, way: Outgoing = DIRECT) -> None:
    """Shows a text to whoever pressed the button, and to nobody else. That it cannot be shown is only logged."""
    body = {"response_type": "ephemeral", "replace_original": False, "text": escape(text)}
    try:
        async with (
            aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=TIMEOUT_S)) as session,
            session.post(
                url,
                data=orjson.dumps(body),
                headers={"Content-Type": "application/json"},
                allow_redirects=False,
                proxy=way.proxy_of(url),
                proxy_headers=way.headers_of(url),
            ) as answer,
        ):
            if answer.status >= 300:
                _log.warning("%s answered %s", urlsplit(url).hostname, answer.status)
    except (aiohttp.ClientError, OSError, TimeoutError) as error:
        _log.warning("%s: %s", urlsplit(url).hostname, way.trouble(error) or type(error).__name__)
