"""What the APIs of Feishu and WeCom have in common: a token for some time, and answers with a code for how it went."""

from collections.abc import Awaitable, Callable, Collection
from dataclasses import dataclass
from typing import Any

import orjson

from agent.contract.errors import Refused, Unreachable
from agent.contract.messages import clip

EARLY_S = 300.0  # a token is asked for anew so long before it ends


class AppToken:
    """The token of one app."""

    def __init__(self, ask: Callable[[], Awaitable[tuple[str, Any]]], clock: Callable[[], float]) -> None:
        """`ask`: a new token, and for how many seconds it counts. `clock`: seconds that do not run backwards."""
        self._ask = ask
        self._clock = clock
        self._token, self._until = "", 0.0

    async def get(self) -> str:
        """Returns the one that counts."""
        if not self._token or self._clock() >= self._until:
            token, lasts = await self._ask()
            self._token = token
            self._until = self._clock() + (lasts if isinstance(lasts, int | float) else 0) - EARLY_S
        return self._token

    def forget(self) -> None:
        """It counts no more."""
        self._token = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Codes:
    """How a platform says how it went."""

    platform: str
    # the keys of code and text
    code: str
    text: str
    # The token is none
    no_token: Collection[int]
    # It may go well later
    later: Collection[int]

    def read(self, raw: bytes, host: str, token: AppToken) -> dict[str, Any]:
        """Returns the answer that went well. Refused, Unreachable: what the platform says in its code, whatever the status."""
        try:
            answer: Any = orjson.loads(raw)
        except orjson.JSONDecodeError as error:
            raise Unreachable(f"{host}: the answer is not JSON") from error
        found = answer if isinstance(answer, dict) else {}
        code = found.get(self.code)
        if code == 0:
            return dict(found)
        says = f"{self.platform}: {code}: {clip(str(found.get(self.text, '')), 100)}"
        if code in self.no_token:
            token.forget()
            raise Unreachable(says)
        raise Unreachable(says) if code in self.later else Refused(says)
