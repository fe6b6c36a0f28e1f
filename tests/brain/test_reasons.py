"""Why a server is not reached: by who must do something, however a library has wrapped it, and each reads differently."""

import errno
import os
import socket
import ssl
import urllib.error
from unittest.mock import Mock

import aiohttp
import nats.errors
import pytest
import requests
import urllib3

from agent.shared import reasons
from agent.shared.reasons import Trouble
from brain.cli.checkup import reached

PLACE = Mock(host="h", port=1, ssl=True, is_ssl=True)


def of(number: int) -> OSError:
    """As a socket says it."""
    return OSError(number, os.strerror(number))


def untrusted() -> ssl.SSLCertVerificationError:
    """As a handshake says it."""
    error = ssl.SSLCertVerificationError(1, "[SSL: CERTIFICATE_VERIFY_FAILED] certificate verify failed")
    error.verify_code, error.verify_message = 18, "self-signed certificate"
    return error


def late(last: Exception) -> TimeoutError:
    """A deadline that passed while this came again and again."""
    error = TimeoutError()
    error.__cause__ = last
    return error


def deep(last: Exception) -> Exception:
    """As urllib3, requests and another library wrap one another."""
    for number in range(8):
        error = ValueError(f"{number}", last)
        error.__context__ = last
        last = error
    return last


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (of(errno.ECONNREFUSED), Trouble.NOBODY_LISTENS),
        (urllib.error.URLError(of(errno.ECONNREFUSED)), Trouble.NOBODY_LISTENS),
        (aiohttp.ClientConnectorError(PLACE, of(errno.ECONNREFUSED)), Trouble.NOBODY_LISTENS),
        (
            requests.ConnectionError(
                urllib3.exceptions.MaxRetryError(
                    Mock(), "/", urllib3.exceptions.ProtocolError("aborted", of(errno.ECONNREFUSED))
                )
            ),
            Trouble.NOBODY_LISTENS,
        ),
        (
            OSError(
                "Multiple exceptions: [Errno 111] Connect call failed ('::1', 1, 0, 0), "
                "[Errno 111] Connect call failed ('127.0.0.1', 1)"
            ),
            Trouble.NOBODY_LISTENS,
        ),
        (
            OSError("Multiple exceptions: [Errno 101] no, [Errno 111] Connect call failed"),
            Trouble.NOBODY_LISTENS,
        ),
        (late(of(errno.ECONNREFUSED)), Trouble.NOBODY_LISTENS),
        (of(errno.EHOSTUNREACH), Trouble.NO_WAY),
        (of(errno.ENETUNREACH), Trouble.NO_WAY),
        (of(errno.ETIMEDOUT), Trouble.NO_ANSWER),
        (TimeoutError(), Trouble.NO_ANSWER),
        (nats.errors.TimeoutError(), Trouble.NO_ANSWER),
        (aiohttp.ServerTimeoutError("to h"), Trouble.NO_ANSWER),
        (socket.gaierror(-2, "Name or service not known"), Trouble.UNKNOWN_NAME),
        (urllib.error.URLError(socket.gaierror(-2, "Name or service not known")), Trouble.UNKNOWN_NAME),
        (untrusted(), Trouble.CERTIFICATE),
        (deep(untrusted()), Trouble.CERTIFICATE),
        (aiohttp.ClientConnectorCertificateError(PLACE, untrusted()), Trouble.CERTIFICATE),
        (ssl.SSLError(1, "[SSL: WRONG_VERSION_NUMBER] wrong version number"), Trouble.TLS),
        (aiohttp.ClientConnectorSSLError(PLACE, ssl.SSLError(1, "[SSL] x")), Trouble.TLS),
        (nats.errors.Error("'Authorization Violation'"), Trouble.NOT_LET_IN),
        (of(errno.ECONNRESET), Trouble.OTHER),
        (nats.errors.NoRespondersError(), Trouble.OTHER),
    ],
)
def test_which_it_is(error: Exception, kind: Trouble) -> None:
    """The innermost error that says it decides; words are only looked at where a library gives no number."""
    assert reasons.trouble(error) is kind
    assert kind.value in reasons.what(error)


def test_each_reads_differently_and_says_who_must_do_what() -> None:
    """A person reads from the line alone whether a process, a network, a name, a certificate or a key is wrong."""
    errors = [
        *(of(errno.ECONNREFUSED), of(errno.EHOSTUNREACH), TimeoutError(), socket.gaierror(-2, "unknown")),
        *(untrusted(), ssl.SSLError(1, "wrong version"), nats.errors.Error("'Authorization Violation'")),
    ]
    for texts in (
        [reasons.what(error) for error in errors],
        [reasons.of_connection(error) for error in errors],
        [
            reached.todo(error, key="nats.url", ca_key="nats.ca_file", credential="our key", otherwise="?")
            for error in errors
        ],
    ):
        assert len(set(texts)) == len(errors) == len(Trouble) - 1
        assert "?" not in texts
    refused = [text for text in map(reasons.what, errors) if "let us in" in text]
    assert refused == [reasons.what(errors[-1])]
