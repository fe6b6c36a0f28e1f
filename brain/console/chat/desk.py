"""From a word that a platform vouches for to an operator command: whose it is, whether it counts, and what they are told."""

from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import sha256

from aiohttp import web

from agent.contract.inert import inert
from agent.contract.messages import clip
from agent.shared.words import t
from brain.chat_config import PagerDutyChatConfig
from brain.console.access.door import Door
from brain.console.access.limits import Limits
from brain.console.access.people import Person, grant
from brain.console.access.two_persons import Proposals
from brain.console.access.users import Users
from brain.console.api.command_shapes import SaidShape
from brain.console.brain_view import BrainView
from brain.console.chat.once import Once
from brain.console.chat.words import Said
from brain.console.operator_commands import say
from brain.console.speech import in_language, told, told_note
from brain.core import ids
from brain.core.pack.spec import Scalar

HANDLED_S = 2.0  # how long the answer waits for the engine: Feishu gives three seconds, WeCom five
WORDS_PER_S, WORDS_AT_ONCE = 0.2, 20.0  # of one sender
MAX_ANSWER = 400  # characters of what somebody is told


@dataclass(frozen=True, slots=True, kw_only=True)
class ChatAnswer:
    """What the sender is told."""

    text: str
    # Did it count?
    good: bool = False
    # May the same word come again, because nothing was done by it?
    later: bool = False


class Desk:
    """Takes words of one platform."""

    def __init__(
        self,
        platform: str,
        users: Mapping[str, str],
        once: Once,
        *,
        brain: BrainView,
        door: Door,
        proposals: Proposals,
        known: Users,
        others: PagerDutyChatConfig | None = None,
    ) -> None:
        """`users`: the platform's id of a sender -> a name of console.users; `others`: may have what the rest may do."""
        self.platform = platform
        self.once = once
        self._users = users
        self._brain = brain
        self._door = door
        self._proposals = proposals
        self._known = known
        self._others = others.others if others else None
        self._pace = Limits(WORDS_PER_S, WORDS_AT_ONCE)

    def person(self, sender: str) -> Person | None:
        """Returns who a sender is, as brain.toml has them now; None: nobody who may do anything."""
        name = self._users.get(sender, "")
        found = self._known.now().get(name)
        how = f"{self.platform} {clip(sender, 80)}"
        if found is not None:
            return Person(name=name, grants=(grant(found),), how=how)
        if self._others is not None and not name and sender.isascii() and sender.isalnum():
            return Person(name=f"{self.platform}:{clip(sender, 60)}", grants=(grant(self._others),), how=how)
        return None

    def stranger(self, sender: str) -> ChatAnswer:
        """Notes that somebody who may do nothing said something; what they are told."""
        who, table = inert(clip(sender, 80)), f"[chat.{self.platform}.users]"
        name = self._users.get(sender, "")

        def why() -> str:
            if not name:
                return t("{who} is nobody of {table}", who=who, table=table)
            return t(
                "{name}, who is {who} in {table}, is not in [console.users]", name=name, who=who, table=table
            )

        with in_language("en"):  # as all that is noted
            self._door.refused(f"{self.platform} {who}", f"{self.platform}: {why()}")
        return ChatAnswer(
            text=t(
                "gpuward does not know you: {why}. An administrator can change that in brain.toml", why=why()
            )
        )

    async def take(self, request: web.Request, said: Said, now: float) -> ChatAnswer:
        """Says it in the sender's name. It counts once, however often the platform sends it."""
        person = self.person(said.sender)
        if person is None:
            return self.stranger(said.sender)
        if self._pace.too_many(said.sender, now):
            return ChatAnswer(text=t("too many words at once: try again in a moment"), later=True)
        if self.once.again(said.id, now):
            return ChatAnswer(text=t("gpuward has heard this already"), good=True)
        came = await self._said(request, person, said.verb, said.args, said.id)
        if came.later:
            self.once.forget(said.id)
        return came

    async def _said(
        self, request: web.Request, person: Person, verb: str, args: Mapping[str, Scalar], id_: str
    ) -> ChatAnswer:
        command = ids.COMMAND + sha256(id_.encode("utf-8", "replace")).hexdigest()[:32]
        self._brain.note(
            "access.chat", inert(f"{person.name} says {verb} by {person.how} ({command})"), person.name
        )
        try:
            answer = await say(
                self._brain,
                self._door,
                self._proposals,
                request,
                person,
                verb,
                args,
                still_good=lambda: self._still(person),
                id_=command,
                within_s=HANDLED_S,
            )
        except web.HTTPException as error:
            return ChatAnswer(text=clip(error.text or error.reason, MAX_ANSWER), later=error.status >= 500)
        return ChatAnswer(text=clip(_words(answer), MAX_ANSWER), good=not answer.refused)

    def _still(self, person: Person) -> bool:
        return self.person(person.how.partition(" ")[2]) == person


def _words(said: SaidShape) -> str:
    if said.waiting or said.refused:
        return told(said.waiting or said.refused)
    if not said.handled:
        return t("it stands on the log, and is not handled yet")
    return "; ".join(told_note(note.kind, note.text) for note in said.notes) or t("done")
