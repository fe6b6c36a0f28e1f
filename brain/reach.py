"""Can somebody be reached? Opens a connection and closes it: nothing is asked, and nobody is told anything."""

import asyncio
import contextlib
import ssl
from urllib.parse import urlsplit

from agent.contract.errors import Unreachable

_PORTS = {"https": 443, "http": 80}


async def connects(host: str, port: int, *, within_s: float, tls: ssl.SSLContext | None = None) -> None:
    """Returns when there is a connection, over TLS with `tls`. Unreachable: why there is none."""
    try:
        async with asyncio.timeout(within_s):
            _, writer = await asyncio.open_connection(
                host, port, ssl=tls, server_hostname=host if tls else None
            )
            writer.close()
            with contextlib.suppress(OSError):
                await writer.wait_closed()
    except TimeoutError as error:
        raise Unreachable(f"{host}:{port} did not answer within {within_s:g} s") from error
    except ssl.SSLCertVerificationError as error:
        raise Unreachable(f"{host}:{port}: its certificate is not trusted: {error.verify_message}") from error
    except OSError as error:
        raise Unreachable(f"{host}:{port}: {error.strerror or error}") from error


async def connects_to(url: str, *, within_s: float, tls: ssl.SSLContext | None = None) -> None:
    """The same for the receiver of an http:// or https:// URL, which was checked; `tls`: None: the system's CAs."""
    parts = urlsplit(url)
    context = (tls or ssl.create_default_context()) if parts.scheme == "https" else None
    port = parts.port or _PORTS[parts.scheme]
    await connects(parts.hostname or "", port, within_s=within_s, tls=context)
