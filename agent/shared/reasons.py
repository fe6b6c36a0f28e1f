"""Why a server could not be reached, in words, and who must do what: error texts of libraries name neither.

`trouble` is the one place that tells these cases apart, whichever library has wrapped the error. `of_connection` says what to do
about NATS, `what` only what it is, of any server: brain/cli/checkup/reached.py adds what to do there.
"""

import errno
import re
import socket
import ssl
from collections.abc import Iterator
from datetime import UTC, datetime
from enum import Enum
from typing import Final

_EXPIRED, _NOT_YET = 10, 9  # X509_V_ERR_*
_OTHER_NAME = (62, 64)  # host name, address
_CLOCK = "%Y-%m-%d"  # no time: the same text for a day
_OFFER = re.compile(r"\.offer\.([A-Za-z0-9_-]+)\.")
_DENIED: Final = ("authorization violation", "authentication")
_ERRNO: Final = re.compile(r"\[Errno (\d+)\]")
_MOST_CAUSES: Final = 20


class Trouble(Enum):
    """Why a server could not be reached, by who must do something about it; its words hold for any server."""

    NOBODY_LISTENS = "nothing listens there"  # who runs it: it is down; or the port is wrong
    NO_WAY = "no way leads to that host"  # who runs the network between; or the address is wrong
    NO_ANSWER = "no answer in time"  # who runs the host, or a firewall that drops; or the address is wrong
    UNKNOWN_NAME = "this machine does not know that name"  # who runs the name service; or it is written wrong
    CERTIFICATE = "its certificate is not trusted"  # who made it, or who configures whom we trust
    TLS = "no TLS connection comes about there"  # one of the two speaks none
    NOT_LET_IN = "it does not let us in"  # who gives out keys and passwords
    OTHER = ""  # the error's own words are all that is known


_BY_ERRNO: Final = {
    errno.ECONNREFUSED: Trouble.NOBODY_LISTENS,
    errno.EHOSTUNREACH: Trouble.NO_WAY,
    errno.ENETUNREACH: Trouble.NO_WAY,
    errno.EHOSTDOWN: Trouble.NO_WAY,
    errno.ENETDOWN: Trouble.NO_WAY,
    errno.ETIMEDOUT: Trouble.NO_ANSWER,
}


def trouble(error: BaseException) -> Trouble:
    """Which of these it is. Libraries wrap the error that says it."""
    return _told(error)[0]


def what(error: BaseException) -> str:
    """What it is, of any server, and the words of the error that says so."""
    kind, cause = _told(error)
    if isinstance(within := getattr(cause, "reason", None), OSError):  # urllib's error only quotes it
        cause = within
    match cause:
        case ssl.SSLCertVerificationError():
            detail = str(getattr(cause, "verify_message", "") or cause.strerror)
        case ssl.SSLError():
            detail = str(getattr(cause, "reason", "") or cause.strerror or cause)
        case OSError():
            detail = str(cause.strerror or cause)
        case _:
            detail = str(cause)
    if kind is Trouble.NO_ANSWER:
        return str(kind.value)
    if kind is Trouble.OTHER:
        return str(detail or type(cause).__name__)
    return f"{kind.value} ({detail})" if detail else kind.value


def causes(error: BaseException) -> Iterator[BaseException]:
    """Yields an error, then those in it: libraries wrap them in arguments and attributes, or raise while they handle one."""
    todo, seen = [error], {id(error)}  # they may go round in a circle, and come by several ways
    while todo and len(seen) <= _MOST_CAUSES:
        one = todo.pop(0)
        yield one
        within = (getattr(one, name, None) for name in ("reason", "os_error", "certificate_error"))
        for each in (*one.args, *within, one.__cause__, one.__context__):
            if isinstance(each, BaseException) and id(each) not in seen:
                seen.add(id(each))
                todo.append(each)


def _told(error: BaseException) -> tuple[Trouble, BaseException]:
    """What it is, and which of its causes says so."""
    late = None
    for cause in causes(error):
        kind = _of_one(cause)
        if kind is Trouble.NO_ANSWER:
            late = late or cause  # a deadline that passed while another error came again and again says less
        elif kind is not Trouble.OTHER:
            return kind, cause
    return (Trouble.NO_ANSWER, late) if late else (Trouble.OTHER, error)


def _of_one(error: BaseException) -> Trouble:
    text = str(error)
    match error:
        case ssl.SSLCertVerificationError():
            return Trouble.CERTIFICATE
        case ssl.SSLError():
            return Trouble.TLS
        case socket.gaierror():
            return Trouble.UNKNOWN_NAME
        case OSError(errno=int(number)) if number in _BY_ERRNO:
            return _BY_ERRNO[number]
        case OSError() if several := {int(number) for number in _ERRNO.findall(text)} & _BY_ERRNO.keys():
            # A name with several addresses: one where at least the host answers tells most.
            return min((_BY_ERRNO[number] for number in several), key=list(Trouble).index)
        case TimeoutError():
            return Trouble.NO_ANSWER
        case ConnectionRefusedError():
            return Trouble.NOBODY_LISTENS
    return Trouble.NOT_LET_IN if any(denied in text.lower() for denied in _DENIED) else Trouble.OTHER


def is_of_time(error: ssl.SSLCertVerificationError) -> bool:
    """Is the certificate good at another time only?"""
    return error.verify_code in (_EXPIRED, _NOT_YET)


def of_certificate(error: ssl.SSLCertVerificationError) -> str:
    """What is wrong with the certificate that a server has shown."""
    clock = datetime.now(UTC).strftime(_CLOCK)
    match error.verify_code:
        case code if code == _EXPIRED:
            return (
                f"the server's certificate has expired by this machine's clock, which says {clock}. If that is right: `gpuward "
                "cell rotate server` on the brain's machine makes another (of servers of your own: renew theirs)"
            )
        case code if code == _NOT_YET:
            return f"the server's certificate is not yet valid by this machine's clock, which says {clock}: is it right?"
        case code if code in _OTHER_NAME:
            return (
                f"the server's certificate is for other names ({error.verify_message.rstrip('.')}): `gpuward cell rotate "
                "server --name NAME` on the brain's machine adds one"
            )
        case _:
            return (
                f"the authority that is trusted here does not vouch for the server's certificate ({error.verify_message}): "
                "is it another cell's, or was its authority exchanged? A node joins again (`gpuward-agent join`)"
            )


def of_connection(error: BaseException) -> str:
    """Why a connection to NATS was not made, or was lost, and what to do."""
    kind, cause = _told(error)
    text = str(cause)
    if isinstance(cause, ssl.SSLCertVerificationError):
        return of_certificate(cause)
    if kind is Trouble.NOT_LET_IN:
        return (
            f"the server does not let this key in ({text}): revoked, not let in yet, or another's; a node joins again with a "
            "new token (`gpuward-agent join`); of a brain look at nats.url and nats.seed_file, and at the servers' accounts"
        )
    if "permissions violation" in text.lower():
        return _not_allowed(text)
    if todo := _TODO.get(kind):
        return f"{what(error)}: {todo}"
    return f"{type(error).__name__}: {text or 'it says nothing more'}"


_TODO: Final = {
    Trouble.NOBODY_LISTENS: "is NATS running, and is this its port?",
    Trouble.NO_WAY: "is the address right, and do its network and the firewalls between let this machine through?",
    Trouble.NO_ANSWER: "is a NATS server running there, and reachable from this machine?",
    Trouble.UNKNOWN_NAME: "is it written right, and does the name service answer (/etc/hosts or DNS)?",
    Trouble.TLS: "do the servers speak TLS where the URL says tls://, and do both sides know a common version (1.3)?",
}


def _not_allowed(text: str) -> str:
    """The same for each subject of a node: its name and its key differ, or it is somebody else's key."""
    node = _OFFER.search(text)
    if node is None:
        return f"the server does not let this key do that ({text})"
    return (
        f"this node calls itself {node[1]}, and its key belongs to another name: nothing that it says is taken. If it was "
        "renamed: `gpuward-agent join --new-key` with a new token, then `gpuward cell revoke` its old name; else set `node` of "
        "its configuration back"
    )
