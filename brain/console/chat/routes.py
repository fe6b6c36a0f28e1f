"""The routes by which chats and pagers speak to gpuward: one for each table of [chat] in brain.toml.

Each platform signs what it sends. Only then is anything in it believed: who the sender is, and what they said. What is not
signed, too old, or was here before is noted and answered like a stranger's request, in their pace.
"""

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Mapping
from functools import partial

from aiohttp import hdrs, web

from agent.shared.secret_file import secret
from agent.shared.tasks import Tasks
from brain.chat_config import ChatConfig
from brain.console.access.door import Door
from brain.console.access.route import BODY, Route
from brain.console.access.two_persons import Proposals
from brain.console.access.users import Users
from brain.console.answers import json_answer
from brain.console.brain_view import BrainView
from brain.console.chat import dingtalk, feishu, pagerduty, reply, slack, wecom
from brain.console.chat.desk import ChatAnswer, Desk
from brain.console.chat.once import Once
from brain.console.chat.refused import Forged, Odd, SameMoment
from brain.console.chat.words import NotUnderstood, Said, of_button, of_text
from brain.console.speech import in_language
from brain.core.pack.spec import Scalar
from brain.outgoing import outgoing

_log = logging.getLogger(__name__)
LARGEST = 262_144  # bytes of a body: Slack sends the whole message with its button
_FORM, _XML = "application/x-www-form-urlencoded", "text/xml"


class ChatRoutes:
    """What the routes of all platforms share."""

    def __init__(
        self,
        brain: BrainView,
        door: Door,
        proposals: Proposals,
        known: Users,
        background: Tasks,
        *,
        clock: Callable[[], float] = time.time,
    ) -> None:
        """`background`: where what outlasts an answer goes on; `clock`: seconds since 1970."""
        self._door = door
        self._background = background
        self._clock = clock
        self._cell = brain.config.cell
        self._way = outgoing(brain.config.outgoing)
        self._desk = partial(Desk, brain=brain, door=door, proposals=proposals, known=known)

    def routes(self, config: ChatConfig) -> list[Route]:
        """Returns those of the platforms that a site uses. ConfigError: a secret cannot be read."""
        each = (self._slack, self._feishu, self._dingtalk, self._wecom, self._pagerduty)
        return [route for one in each for route in one(config)]

    def _slack(self, config: ChatConfig) -> list[Route]:
        if (want := config.slack) is None:
            return []
        key = secret(want.signing_secret_file, "chat.slack.signing_secret_file").encode()
        desk = self._desk("slack", want.users, Once(slack.WITHIN_S))

        async def take(request: web.Request) -> web.Response:
            """The answer is empty, and soon: Slack waits for three seconds. The sender is told afterwards."""
            slack.verify(key, request.headers, request.get(BODY, b""), desk.once, self._clock())
            pressed = slack.pressed(request.get(BODY, b""))

            async def go_on() -> None:
                told = await self._button(request, desk, pressed.sender, pressed.id, pressed.value)
                if pressed.response_url:
                    await reply.to_sender(pressed.response_url, told.text, self._way)

            self._background.start(go_on(), "slack button").add_done_callback(_failed)
            return web.Response()

        return [self._route("/chat/slack", "slack", take, want.language, media=_FORM)]

    def _feishu(self, config: ChatConfig) -> list[Route]:
        if (want := config.feishu) is None:
            return []
        keys = feishu.FeishuKeys(
            encrypt=secret(want.encrypt_key_file, "chat.feishu.encrypt_key_file"),
            token=secret(want.verification_token_file, "chat.feishu.verification_token_file"),
        )
        desk = self._desk("feishu", want.users, Once(feishu.WITHIN_S))

        async def take(request: web.Request) -> web.Response:
            inner = feishu.opened(keys, request.headers, request.get(BODY, b""), desk.once, self._clock())
            if word := feishu.challenge(inner):
                return json_answer({"challenge": word})
            pressed = feishu.action(inner)
            told = await self._button(request, desk, pressed.sender, pressed.id, pressed.value)
            return json_answer(feishu.toast(told.text, good=told.good))

        return [self._route("/chat/feishu", "feishu", take, want.language)]

    def _dingtalk(self, config: ChatConfig) -> list[Route]:
        if (want := config.dingtalk) is None:
            return []
        key = secret(want.app_secret_file, "chat.dingtalk.app_secret_file")
        desk = self._desk("dingtalk", want.users, Once(dingtalk.WITHIN_S))

        async def take(request: web.Request) -> web.Response:
            body = request.get(BODY, b"")
            try:
                dingtalk.verify(key, request.headers, body, desk.once, self._clock())
            except SameMoment as error:
                self._door.refused("chat dingtalk", f"dingtalk: {error}")
                await self._door.hold_back(request)
                return json_answer(dingtalk.answer(dingtalk.AGAIN))
            written = dingtalk.message(body)
            told = await self._text(request, desk, written.sender, written.id, written.text)
            return json_answer(dingtalk.answer(told.text))

        return [self._route("/chat/dingtalk", "dingtalk", take, want.language)]

    def _wecom(self, config: ChatConfig) -> list[Route]:
        if (want := config.wecom) is None:
            return []
        where = "chat.wecom.aes_key_file"
        keys = wecom.WeComKeys(
            token=secret(want.token_file, "chat.wecom.token_file"),
            aes=wecom.aes_key(secret(want.aes_key_file, where), where),
            corp=want.corp,
        )
        desk = self._desk("wecom", want.users, Once(wecom.WITHIN_S))

        async def verify(request: web.Request) -> web.Response:
            text = request.query.get("echostr", "")
            return web.Response(body=wecom.opened(keys, request.query, text, desk.once, self._clock()))

        async def take(request: web.Request) -> web.Response:
            now, encrypted = self._clock(), wecom.encrypted_part(request.get(BODY, b""))
            said = wecom.message(wecom.opened(keys, request.query, encrypted, desk.once, now))
            if said.button:
                told = await self._button(request, desk, said.sender, said.id, said.button)
            else:
                told = await self._text(request, desk, said.sender, said.id, said.text)
            return web.Response(body=wecom.answer(keys, said, told.text, now), content_type=_XML)

        return [
            self._route("/chat/wecom", "wecom", verify, want.language, method=hdrs.METH_GET),
            self._route("/chat/wecom", "wecom", take, want.language, media=_XML),
        ]

    def _pagerduty(self, config: ChatConfig) -> list[Route]:
        if (want := config.pagerduty) is None:
            return []
        key = secret(want.secret_file, "chat.pagerduty.secret_file").encode()
        once = Once(pagerduty.WITHIN_S)
        desk = self._desk("pagerduty", want.users, once, others=want)

        async def take(request: web.Request) -> web.Response:
            """It is sent again until it is answered with 2xx: what will never count is answered so, too."""
            pagerduty.verify(key, request.headers, request.get(BODY, b""))
            one = pagerduty.event(request.get(BODY, b""))
            now = self._clock()
            if once.too_old(one.at, now):
                raise Forged("its time is not now")
            wanted = pagerduty.wanted(one)
            if wanted is None:
                return web.Response(status=204)
            told = await desk.take(
                request, Said(sender=one.sender, id=one.id, verb=wanted[0], args=wanted[1]), now
            )
            if told.later:
                raise web.HTTPServiceUnavailable(text=told.text)
            return web.Response(status=204)

        return [self._route("/chat/pagerduty", "pagerduty", take, want.language)]

    async def _button(
        self, request: web.Request, desk: Desk, sender: str, id_: str, value: object
    ) -> ChatAnswer:
        return await self._taken(request, desk, sender, id_, lambda: of_button(value, sender, self._cell))

    async def _text(self, request: web.Request, desk: Desk, sender: str, id_: str, text: str) -> ChatAnswer:
        return await self._taken(request, desk, sender, id_, lambda: of_text(text, sender))

    async def _taken(
        self,
        request: web.Request,
        desk: Desk,
        sender: str,
        id_: str,
        read: Callable[[], tuple[str, Mapping[str, Scalar]]],
    ) -> ChatAnswer:
        if desk.person(sender) is None:
            return desk.stranger(sender)
        try:
            verb, args = read()
        except NotUnderstood as error:
            return ChatAnswer(text=str(error))
        return await desk.take(request, Said(sender=sender, id=id_, verb=verb, args=args), self._clock())

    def _route(
        self,
        path: str,
        platform: str,
        handler: Callable[[web.Request], Awaitable[web.Response]],
        language: str,
        *,
        method: str = hdrs.METH_POST,
        media: str = "application/json",
    ) -> Route:
        async def guarded(request: web.Request) -> web.Response:
            try:
                with in_language(language):
                    return await handler(request)
            except Forged as error:
                self._door.refused(f"chat {platform}", f"a request that is not {platform}'s: {error}")
                await self._door.hold_back(request)
                raise web.HTTPForbidden(
                    text="this is not signed as it must be, or has been here before"
                ) from error
            except Odd as error:
                self._door.refused(f"chat {platform}", f"{platform} sent what is not understood: {error}")
                raise web.HTTPBadRequest(text=f"this is not understood: {error}") from error

        return Route(
            method=method, path=path, least=None, handler=guarded, largest=LARGEST, media=media, signed=True
        )


def _failed(task: asyncio.Task[object]) -> None:
    if not task.cancelled() and (error := task.exception()) is not None:
        _log.error("%s failed: that is a bug of gpuward", task.get_name(), exc_info=error)
