"""A real SMTP server on loopback (aiosmtpd): what it has taken, and answers that a test can change."""

import contextlib
import email
import email.policy
import ssl
from collections.abc import Iterator
from email.message import EmailMessage
from typing import Any

from aiosmtpd.controller import Controller
from aiosmtpd.smtp import SMTP, AuthResult, Envelope, LoginPassword, Session

from tests.real.nats import free_port

USER, PASSWORD = "ward", "s3cret"


class MailServer:
    """Takes every mail, unless a test says otherwise."""

    def __init__(self) -> None:
        self.mails: list[tuple[list[str], EmailMessage]] = []  # to whom, what
        self.refuses: dict[str, str] = {}  # address -> answer to RCPT
        self.data_answers: list[str] = []  # the next answers to the end of DATA
        self.asked = 0
        self.users: list[str] = []
        self.port = 0

    async def handle_RCPT(  # noqa: N802 - aiosmtpd's name
        self, server: SMTP, session: Session, envelope: Envelope, address: str, options: list[str]
    ) -> str:
        """One recipient."""
        self.asked += 1
        if address in self.refuses:
            return self.refuses[address]
        envelope.rcpt_tos.append(address)
        return "250 OK"

    async def handle_DATA(self, server: SMTP, session: Session, envelope: Envelope) -> str:  # noqa: N802 - aiosmtpd's name
        """The mail."""
        if self.data_answers:
            return self.data_answers.pop(0)
        assert isinstance(envelope.content, bytes)
        message = email.message_from_bytes(envelope.content, policy=email.policy.default)
        assert isinstance(message, EmailMessage)
        self.mails.append((list(envelope.rcpt_tos), message))
        return "250 taken"

    def login(
        self, server: SMTP, session: Session, envelope: Envelope, mechanism: str, data: Any
    ) -> AuthResult:
        """One login."""
        good = isinstance(data, LoginPassword) and (data.login, data.password) == (
            USER.encode(),
            PASSWORD.encode(),
        )
        self.users += [USER] if good else []
        return AuthResult(success=good, handled=False)

    def url(self, to: str = "oncall@example.com", **more: str) -> str:
        """As an operator writes it for Apprise."""
        query = "&".join(
            f"{key}={value}"
            for key, value in {"from": "ward@example.com", "to": to, "mode": "insecure", **more}.items()
        )
        return f"mailto://127.0.0.1:{self.port}/?{query}"

    @property
    def ids(self) -> list[str]:
        """The Message-ID of each mail."""
        return [str(message["Message-ID"]) for _, message in self.mails]


@contextlib.contextmanager
def mail_server(port: int = 0, tls: ssl.SSLContext | None = None) -> Iterator[MailServer]:
    """Listens, on a free port. `tls`: only after STARTTLS, and only who logs in."""
    it = MailServer()
    more: dict[str, Any] = (
        {"tls_context": tls, "require_starttls": True, "auth_required": True, "authenticator": it.login}
        if tls
        else {}
    )
    it.port = port or free_port()
    controller = Controller(it, hostname="127.0.0.1", port=it.port, **more)
    controller.start()
    try:
        yield it
    finally:
        controller.stop()
