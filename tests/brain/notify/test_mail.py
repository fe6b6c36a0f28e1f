"""Mails of reports, by a real mail server: which addresses took them, what is tried again, and what a person must correct."""

import ssl
import time
from email.message import EmailMessage
from pathlib import Path

import pytest

from agent.contract.errors import ConfigError, Refused, Unreachable
from brain.cell.authority import Authority
from brain.notify.mail import Mailer, of_file
from tests.mail_server import PASSWORD, USER, MailServer, mail_server
from tests.real.nats import free_port

TO = ("ann@example.com", "bob@example.com")


def mailer(url: str, folder: Path) -> Mailer:
    """As an operator configures it."""
    file = folder / "mail.url"
    file.write_text(url + "\n")
    return of_file(file, "reports.0.url_file")


def mail(text: str = "Übergabe: 交接班") -> EmailMessage:
    """A small one."""
    message = EmailMessage()
    message["Subject"], message["From"], message["To"] = text, "ward@example.com", ", ".join(TO)
    message["Message-ID"] = "<report.default.r.1@example.com>"
    message.set_content(text + "\n")
    return message


async def test_who_took_it_and_who_did_not(tmp_path: Path) -> None:
    """Of each address its own answer; a server that takes nothing now, or ever, is told apart."""
    with mail_server() as server:
        it = mailer(server.url("ann@example.com,bob@example.com"), tmp_path)
        assert (it.sender, set(it.to)) == ("ward@example.com", set(TO))
        outcome = await it.send(mail(), TO)
        assert (outcome.took, outcome.later, outcome.never) == (TO, {}, {})
        ((to, message),) = server.mails
        assert (to, message["Subject"]) == (list(TO), "Übergabe: 交接班")
        assert "交接班" in str(message.get_content())
        server.refuses = {"ann@example.com": "451 greylisted", "bob@example.com": "550 no such user"}
        outcome = await it.send(mail(), (*TO, "cat@example.com"))
        assert outcome.took == ("cat@example.com",)
        assert outcome.later == {"ann@example.com": "451 greylisted"}
        assert outcome.never == {"bob@example.com": "550 no such user"}
        outcome = await it.send(mail(), TO)
        assert (outcome.took, len(outcome.later), len(outcome.never)) == ((), 1, 1)
        server.refuses = {}
        for answer, error in (("452 disk full", Unreachable), ("554 policy", Refused)):
            server.data_answers = [answer]
            with pytest.raises(error, match=answer[:3]):
                await it.send(mail(), TO)
        assert await it.reach() == f"127.0.0.1:{server.port}"
        assert len(server.mails) == 2
        assert server.asked == 11


async def test_a_server_that_is_away(tmp_path: Path) -> None:
    it = mailer(
        f"mailto://127.0.0.1:{free_port()}/?from=ward@example.com&to=ann@example.com&mode=insecure", tmp_path
    )
    with pytest.raises(Unreachable):
        await it.send(mail(), TO)
    with pytest.raises(Unreachable):
        await it.reach()


async def test_a_login_over_tls(tmp_path: Path) -> None:
    """STARTTLS and a login, as the URL says; a certificate that is not trusted and a wrong password are told, without it."""
    authority = Authority(tmp_path)
    authority.make("default", ["127.0.0.1"], time.time())
    tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    tls.load_cert_chain(authority.certificate_file, authority.key_file)
    with mail_server(tls=tls) as server:
        await _log_in(server, tmp_path)


async def _log_in(server: MailServer, folder: Path) -> None:
    def url(password: str, **more: str) -> str:
        query = "&".join(f"{key}={value}" for key, value in more.items())
        where = f"{USER}:{password}@127.0.0.1:{server.port}"
        return f"mailtos://{where}/?from=ward@example.com&to=ann@example.com&{query}"

    outcome = await mailer(url(PASSWORD, verify="no"), folder).send(mail(), TO)
    assert (outcome.took, server.users, len(server.mails)) == (TO, [USER], 1)
    with pytest.raises(Refused, match="535") as caught:
        await mailer(url("wr0ng", verify="no"), folder).send(mail(), TO)
    assert "wr0ng" not in str(caught.value)
    with pytest.raises(Unreachable, match="certificate"):
        await mailer(url(PASSWORD), folder).send(mail(), TO)
    assert len(server.mails) == 1


@pytest.mark.parametrize("url", ["json://127.0.0.1/", "pigeon://user:s3cret@loft"])
def test_another_url_is_refused_without_being_shown(url: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"reports\.0\.url_file") as caught:
        mailer(url, tmp_path)
    assert "s3cret" not in str(caught.value)
