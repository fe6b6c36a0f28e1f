"""Mails of more than a page: reports. By the mail server of an Apprise URL (mailto://, mailtos://), so that a site says it once.

Apprise reads the URL; the mail itself goes by the standard library, since here it counts which address has taken it, why another
one has not, and by which Message-ID a mail that comes twice is known. Both block, so they run in a thread.
"""

import asyncio
import smtplib
import socket
import ssl
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from email.message import EmailMessage
from pathlib import Path
from typing import Any

from agent.contract.errors import ConfigError, Refused, Unreachable
from agent.contract.messages import clip
from agent.shared.secret_file import secret

TIMEOUT_S = 30.0  # of each piece of an answer of the server
WHOLE_S = 300.0  # of a whole exchange
MOST_ANSWER = 65_536  # bytes of one answer
_MOST_SAID = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class MailOutcome:
    """What became of a mail, by address."""

    took: tuple[str, ...] = ()
    # address -> what the server said: it may take it later
    later: Mapping[str, str] = field(default_factory=dict)
    # the same: it will not, before a person has corrected something
    never: Mapping[str, str] = field(default_factory=dict)


class Mailer:
    """One mail server, and whom mails go to if nothing else is said."""

    def __init__(self, service: Any, where: str) -> None:
        """`service`: Apprise's object for the URL. ConfigError: it is no mailto:// URL; `where` names the key."""
        from apprise.plugins.email import NotifyEmail  # the library is loaded only where mails are sent

        if not isinstance(service, NotifyEmail):
            raise ConfigError(f"{where}: want a URL that begins with mailto:// or mailtos://")
        self._host: str = service.smtp_host
        self._port = int(service.port or 0)
        self._mode = str(service.secure_mode) if service.secure else "insecure"
        self._user: str = service.user or ""
        self._password: str = service.password or ""
        self._tls = ssl.create_default_context()
        if not service.verify_certificate:
            self._tls.check_hostname = False
            self._tls.verify_mode = ssl.CERT_NONE
        self.sender = str(service.from_addr[1])
        self.to: tuple[str, ...] = tuple(address for _, address in service.targets)

    @property
    def host(self) -> str:
        """The server, for people."""
        return f"{self._host}:{self._port}"

    async def send(self, message: EmailMessage, to: Sequence[str]) -> MailOutcome:
        """Mails it to these addresses. Unreachable, Refused: nobody has got it; Unreachable also where that is not known."""
        return await asyncio.to_thread(self._send, message, to)

    async def reach(self) -> str:
        """Connects and logs in, and mails nothing; returns whom it has reached. Errors as above."""
        await asyncio.to_thread(self._send, None, ())
        return self.host

    def _send(self, message: EmailMessage | None, to: Sequence[str]) -> MailOutcome:
        try:
            with self._connected() as server:
                refused = server.send_message(message, self.sender, to) if message else {}
        except smtplib.SMTPRecipientsRefused as error:
            refused = error.recipients
        except smtplib.SMTPResponseException as error:
            text = f"{self.host} answered {error.smtp_code}: {_said(error.smtp_error)}"
            raise (Refused if error.smtp_code >= 500 else Unreachable)(text) from error
        except smtplib.SMTPNotSupportedError as error:
            raise Refused(f"{self.host}: {error}") from error
        except (
            OSError,
            smtplib.SMTPException,
            ValueError,
        ) as error:  # ValueError: of a challenge that is none
            raise Unreachable(
                f"{self.host}: {clip(str(error) or type(error).__name__, _MOST_SAID)}"
            ) from error
        said = {address: f"{code} {_said(text)}" for address, (code, text) in refused.items()}
        return MailOutcome(
            took=tuple(address for address in to if address not in said),
            later={address: text for address, text in said.items() if not text.startswith("5")},
            never={address: text for address, text in said.items() if text.startswith("5")},
        )

    def _connected(self) -> smtplib.SMTP:
        if self._mode == "ssl":
            server: smtplib.SMTP = _TlsServer(self._host, self._port, timeout=TIMEOUT_S, context=self._tls)
        else:
            server = _Server(self._host, self._port, timeout=TIMEOUT_S)
        try:
            if self._mode == "starttls":
                server.starttls(context=self._tls)
            if self._user and self._password:
                server.login(self._user, self._password)
        except (OSError, smtplib.SMTPException, ValueError):
            server.close()
            raise
        return server


class _Bounded:
    """What a server says, piece by piece. smtplib takes the lines of an answer for ever, while they say that more come."""

    def __init__(self, sock: socket.socket) -> None:
        self._sock = sock
        self._kept = b""
        self._until_s = time.monotonic() + WHOLE_S
        self.left = MOST_ANSWER

    def readline(self, most: int) -> bytes:
        """The next line; OSError: it takes too long, or the answer has no end."""
        while b"\n" not in self._kept and len(self._kept) < most:
            if self.left <= 0:
                raise OSError(f"its answer has more than {MOST_ANSWER} bytes")
            if time.monotonic() >= self._until_s:
                raise TimeoutError(f"it has not ended within {WHOLE_S:g} s")
            piece = self._sock.recv(min(4096, self.left))
            if not piece:
                break
            self.left -= len(piece)
            self._kept += piece
        end = self._kept.find(b"\n") + 1 or len(self._kept)
        line, self._kept = self._kept[: min(end, most)], self._kept[min(end, most) :]
        return line

    def close(self) -> None:
        """smtplib closes the socket."""


class _Server(smtplib.SMTP):
    """A server whose answers have an end."""

    file: Any

    def getreply(self) -> tuple[int, bytes]:
        """As in smtplib, which begins a file anew after STARTTLS."""
        if self.file is None and self.sock is not None:
            self.file = _Bounded(self.sock)
        if self.file is not None:
            self.file.left = MOST_ANSWER
        return super().getreply()


class _TlsServer(smtplib.SMTP_SSL):
    """The same, by TLS from its first byte on."""

    file: Any
    getreply = _Server.getreply


def _said(text: bytes | str) -> str:
    return clip(
        " ".join((text.decode(errors="replace") if isinstance(text, bytes) else text).split()), _MOST_SAID
    )


def of_file(url_file: Path, where: str) -> Mailer:
    """The server of the Apprise URL in a file. ConfigError names the key."""
    url = secret(url_file, where)
    from apprise import Apprise

    service = Apprise.instantiate(url, suppress_exceptions=True)
    if service is None:
        raise ConfigError(f"{where}: {url_file}: not a URL that Apprise knows")
    return Mailer(service, where)
