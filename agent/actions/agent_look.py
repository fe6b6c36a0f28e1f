"""agent.look: the node's sources look again, and tell afresh what is present and what is well; it reads only."""

from typing import ClassVar, Self

from agent.actions.action_setup import ActionSetup, LookAgain, LookedAgain
from agent.actions.base import Done, NodeAction, Params
from agent.contract.look import blind_sources
from agent.contract.messages import clip

_SHOWN = 12  # conditions that the result names


class AgentLook(NodeAction):
    """See the module's docstring. Silence proves nothing: what could not look is named, and everything else has looked."""

    name: ClassVar[str] = "agent.look"

    def __init__(self, look: LookAgain) -> None:
        self._look = look

    @classmethod
    def of(cls, setup: ActionSetup) -> Self:
        """See NodeAction."""
        return cls(setup.look)

    async def plan(self, params: Params) -> list[str]:
        """One line."""
        return [
            f"look again at {params.get('component') or 'everything'}, and tell what is present and what is well"
        ]

    async def run(self, params: Params) -> Done:
        """Looks; the facts are in the spool when it returns."""
        seen = await self._look(str(params.get("component", "")))
        return Done(text=clip(_text(seen)), blind=clip(blind_sources(seen.blind)))

    async def recover(self, params: Params) -> None:
        """Nothing to repair: it only reads."""


def _text(seen: LookedAgain) -> str:
    count = len(seen.present)
    text = f"{seen.looked} sources looked"
    if seen.blind:
        text += f", {len(seen.blind)} could not: {'; '.join(f'{name} ({why})' for name, why in seen.blind.items())}"
    text += f"; {count or 'no'} condition{' is' if count == 1 else 's are'} present"
    if count:
        more = f", and {count - _SHOWN} more" if count > _SHOWN else ""
        text += f": {', '.join(seen.present[:_SHOWN])}{more}"
    return text
