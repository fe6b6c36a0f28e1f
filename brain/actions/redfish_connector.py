"""The HTTP connector under sushy, made safe: one attempt, one host, bounded answers, and a record of what was sent.

After a timeout sushy repeats any request up to three times, even a power cycle. Here only a read after a lost session is
repeated, an answer never leads to another host, proxies and .netrc of the environment are not used, and an answer is
limited to `MAX_ANSWER` bytes and `answer_s` seconds.
"""

import asyncio
import io
import ssl
import time
from collections.abc import Callable
from typing import Any
from urllib.parse import urlsplit

import requests
from requests.adapters import HTTPAdapter
from sushy import exceptions as says
from sushy.connector import Connector
from urllib3 import exceptions as wire
from urllib3.connection import HTTPConnection, HTTPSConnection
from urllib3.connectionpool import HTTPConnectionPool, HTTPSConnectionPool

from agent.contract.errors import ActionError, Refused, TimedOut, Unreachable
from agent.contract.messages import clip
from agent.shared import reasons
from brain import fence
from brain.fence import Fence

MAX_ANSWER = 4 << 20  # bytes; the longest event logs of BMCs are about 2 MB
_PIECE = 1 << 16
_REDIRECTS = 3  # of one GET, on the same host: /redfish/v1 -> /redfish/v1/
_MAX_QUOTE = 300  # characters of a BMC's message that we quote
_LATER = (408, 425, 429, 502, 503, 504)  # busy: nothing was done
_NOT_SENT = (wire.NewConnectionError, wire.ConnectTimeoutError)


class Abandoned(Exception):
    """The caller no longer waits for this request: it is not sent."""


class BoundedConnector(Connector):  # type: ignore[misc]  # sushy ships no types
    """One BMC. Used by one thread at a time."""

    def __init__(self, url: str, *, verify: bool | str, connect_s: float, answer_s: float) -> None:
        super().__init__(
            url,
            verify=verify,
            server_side_retries=1,  # to sushy: one try (0 would be three)
            default_request_timeout=answer_s,
            connect_timeout=connect_s,
        )
        self.job = 0  # number of the job that the thread does now
        # Set by the event loop: what this job and earlier ones have not sent must not be sent any more
        self.abandoned = 0
        self._log_in_again = True  # once: a BMC that restarted has lost our session
        self.sent = ""  # method of the job's last request; read after setting `abandoned`
        self._session.trust_env = False
        # Of the job: who is asked before a request leaves that changes something, and the loop in which that is done.
        self.fence: Fence = fence.outside
        self.loop: asyncio.AbstractEventLoop | None = None
        for scheme in ("https://", "http://"):
            self._session.mount(scheme, _Bounded(answer_s, self._before_change))

    def _before_change(self) -> None:
        assert self.loop is not None  # noqa: S101  # each job brings it
        fence.passed_in_thread(self.fence, self.loop)
        if self.job <= self.abandoned:
            raise Abandoned

    def check_retry_on_exception(self, exception_msg: object) -> bool:  # noqa: ARG002  # sushy's signature
        """Never retries. sushy would do so for two BMCs that answer "not ready"; our caller does, within its deadline."""
        return False

    def _op(self, method: str, path: str = "", *args: Any, **kwargs: Any) -> Any:
        """As in Connector. The host of an absolute URL is ignored."""
        self.sent = method  # before the check, so that a caller that abandons the job afterwards sees it
        if self.job <= self.abandoned:
            raise Abandoned
        kwargs |= {"allow_redirects": False, "server_side_retries_left": 0}
        kwargs["allow_reauth"] = method == "GET" and self._log_in_again
        try:
            response = super()._op(method, local(path), *args, **kwargs)
        except says.AccessError:
            self._log_in_again = False
            raise
        for _ in range(_REDIRECTS):
            if not response.is_redirect or method != "GET":
                break
            response = super()._op(method, local(response.headers["Location"]), allow_redirects=False)
        if 300 <= response.status_code < 400:
            raise says.HTTPError(method, path, response)
        return response


def _changes(method: str, path: str) -> bool:
    """Does a request change more than our own login?"""
    return method not in fence.SAFE and "/Sessions" not in path


def _pools(before_change: Callable[[], None]) -> dict[str, type[HTTPConnectionPool]]:
    """Connections that ask `before_change` when they stand, and directly before such a request is written."""

    class Plain(HTTPConnection):
        def request(self, method: str, url: str, *args: Any, **kwargs: Any) -> None:
            """As in HTTPConnection."""
            if _changes(method, url):
                if self.sock is None:
                    self.connect()
                before_change()
            super().request(method, url, *args, **kwargs)

    class Tls(HTTPSConnection):
        def request(self, method: str, url: str, *args: Any, **kwargs: Any) -> None:
            """As in HTTPSConnection."""
            if _changes(method, url):
                if self.sock is None:
                    self.connect()
                before_change()
            super().request(method, url, *args, **kwargs)

    class PlainPool(HTTPConnectionPool):
        ConnectionCls = Plain

    class TlsPool(HTTPSConnectionPool):
        ConnectionCls = Tls

    return {"http": PlainPool, "https": TlsPool}


class _Bounded(HTTPAdapter):
    """Reads an answer completely, within the limits of size and time. What changes something asks before it leaves."""

    def __init__(self, answer_s: float, before_change: Callable[[], None]) -> None:
        self._answer_s = answer_s
        self._before_change = before_change
        super().__init__(max_retries=0)

    def init_poolmanager(self, *args: Any, **kwargs: Any) -> None:
        """As in HTTPAdapter."""
        super().init_poolmanager(*args, **kwargs)
        self.poolmanager.pool_classes_by_scheme = _pools(self._before_change)

    def send(
        self,
        request: requests.PreparedRequest,
        stream: bool = False,  # noqa: ARG002  # HTTPAdapter's signature; answers are always streamed and read here
        timeout: Any = None,
        verify: bool | str = True,
        cert: Any = None,
        proxies: Any = None,
    ) -> requests.Response:
        """As in HTTPAdapter."""
        ends = time.monotonic() + self._answer_s
        response = super().send(request, True, timeout, verify, cert, proxies)
        body = io.BytesIO()
        with response.raw as raw:
            for piece in raw.stream(_PIECE, decode_content=True):
                body.write(piece)
                if body.tell() > MAX_ANSWER or time.monotonic() > ends:
                    raise requests.exceptions.ReadTimeout(
                        f"an answer of more than {MAX_ANSWER} bytes or {self._answer_s:g} s", request=request
                    )
        body.seek(0)
        response.raw = body
        return response


def meaning(
    error: says.SushyError | Abandoned | wire.HTTPError | OSError, where: str, *, asking: bool
) -> ActionError:
    """Converts an error to one by who must act. `asking`: the failed request would have changed something."""
    text = f"{where}: {clip(' '.join(str(error).split()), _MAX_QUOTE)}"
    if isinstance(error, says.AccessError):
        return Refused(f"{where} refuses our user or password, or its rights ({error.status_code})")
    if isinstance(error, says.HTTPError):
        code = error.status_code
        text = f"{where} refused it ({code}): {clip(' '.join(str(error.detail or 'without a reason').split()), _MAX_QUOTE)}"
        if code in _LATER:
            return Unreachable(f"{where} is busy ({code})")
        if code >= 500 and code != 501:
            return TimedOut(f"{text}: it may or may not have been done") if asking else Unreachable(text)
        return Refused(text)
    causes = list(reasons.causes(error))
    if any(isinstance(cause, ssl.SSLCertVerificationError) for cause in causes):
        return Refused(
            f"{where}: its certificate is not trusted: set ca_file, or insecure = true to go without ({causes[-1]})"
        )
    if isinstance(error, says.ConnectionError | wire.HTTPError | OSError):
        if asking and not any(isinstance(cause, _NOT_SENT) for cause in causes):
            return TimedOut(f"{where} did not answer the request: it may or may not have been done")
        return Unreachable(f"{where} does not answer: {clip(reasons.what(error), _MAX_QUOTE)}")
    return Refused(text)  # an answer that is not Redfish, or an action or attribute that the BMC lacks


def local(path: str) -> str:
    """The path of an address, on this BMC whatever host it names."""
    parts = urlsplit(path)
    return path if not parts.netloc else parts.path + (f"?{parts.query}" if parts.query else "")
