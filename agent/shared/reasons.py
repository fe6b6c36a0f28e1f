"""Why a server could not be reached, in words, and who must do what: error texts of libraries name neither."""

import re
import socket
import ssl
from datetime import UTC, datetime
from typing import Final

_EXPIRED, _NOT_YET = 10, 9  # X509_V_ERR_*
_OTHER_NAME = (62, 64)  # host name, address
_CLOCK = "%Y-%m-%d"  # no time: the same text for a day
_OFFER = re.compile(r"\.offer\.([A-Za-z0-9_-]+)\.")
_DENIED: Final = ("authorization violation", "authentication")


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
    """Why a connection to NATS was not made, or was lost."""
    if isinstance(error, ssl.SSLCertVerificationError):
        return of_certificate(error)
    text = str(error)
    if any(denied in text.lower() for denied in _DENIED):
        return (
            f"the server does not let this key in ({text}): revoked, not let in yet, or another's; a node joins again with a "
            "new token (`gpuward-agent join`); of a brain look at nats.url and nats.seed_file, and at the servers' accounts"
        )
    if "permissions violation" in text.lower():
        return _not_allowed(text)
    if isinstance(error, TimeoutError) and text in ("", "nats: timeout"):
        return "no answer in time: is a NATS server running there, and reachable from this machine?"
    if isinstance(error, socket.gaierror):
        return (
            f"this machine does not know that name ({error.strerror}): is it written right, and does the name service answer "
            "(/etc/hosts or DNS)?"
        )
    if isinstance(error, ConnectionRefusedError):
        return (
            f"nothing listens there ({type(error).__name__}: {text}): is NATS running, and is this its port?"
        )
    return f"{type(error).__name__}: {text or 'it says nothing more'}"


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
