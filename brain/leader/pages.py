"""Sends the engine's pages."""

from agent.shared.tasks import Tasks
from brain.core.effects import SendPage
from brain.core.inputs import Delivery
from brain.leader.leadership import Leadership
from brain.leader.log_writer import LogWriter
from brain.leader.replica import Replica
from brain.notify.compose import compose_from
from brain.notify.notifier import Notifier


class PageSender:
    """Sends pages in the background. The outcome of each becomes an input, after which the engine may retry it."""

    def __init__(
        self,
        *,
        notifier: Notifier,
        replica: Replica,
        leadership: Leadership,
        writer: LogWriter,
        background: Tasks,
    ) -> None:
        self._notifier = notifier
        self._replica = replica
        self._leadership = leadership
        self._writer = writer
        self._background = background
        self._count = 0

    def send(self, page: SendPage) -> None:
        """Begins to send a page."""
        self._background.start(self._send(page), f"page {page.id}")

    async def _send(self, page: SendPage) -> None:
        message = compose_from(self._replica.state, page)
        sent = await self._notifier.send(message, page.alerted)
        self._count += 1
        id_ = f"d:{page.id}:{self._leadership.epoch}.{self._count}"
        self._writer.append(
            Delivery(
                id=id_,
                page=page.id,
                ok=sent.delivered,
                channel=sent.channels,
                why=sent.why,
                tickets=sent.tickets,
            )
        )
