"""Can somebody be reached? Opens a connection and closes it: nothing is asked, and nobody is told anything."""

import asyncio
import contextlib
import ssl
from urllib.parse import urlsplit

from agent.contract.errors import Unreachable
from agent.shared import reasons
from brain.outgoing import DIRECT, Outgoing

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
    except OSError as error:
        raise Unreachable(f"{host}:{port}: {reasons.what(error)}") from error


async def connects_to(
    url: str, *, within_s: float, tls: ssl.SSLContext | None = None, way: Outgoing = DIRECT
) -> None:
    """The same for the receiver of an http:// or https:// URL, which was checked; `tls`: None: the system's CAs.

    By a proxy: the whole way over TLS. To an http:// receiver only the proxy itself: what is behind it would be asked something.
    """
    parts = urlsplit(url)
    context = (tls or ssl.create_default_context()) if parts.scheme == "https" else None
    port = parts.port or _PORTS[parts.scheme]
    if way.proxy_of(url) is None:
        await connects(parts.hostname or "", port, within_s=within_s, tls=context)
    else:
        await _through(way, url, f"{parts.hostname}:{port}", within_s, context)


async def _through(
    way: Outgoing, url: str, host_port: str, within_s: float, tls: ssl.SSLContext | None
) -> None:
    try:
        async with asyncio.timeout(within_s):
            try:
                reader, writer = await asyncio.open_connection(*way.address())
            except OSError as error:
                raise Unreachable(
                    f"the proxy {way.proxy} cannot be reached: {reasons.what(error)}"
                ) from error
            try:
                if tls is not None:
                    await _connect(reader, writer, way, url, host_port)
                    await writer.start_tls(tls, server_hostname=host_port.rpartition(":")[0])
            finally:
                writer.close()
    except TimeoutError as error:
        raise Unreachable(
            f"{host_port} did not answer within {within_s:g} s by the proxy {way.proxy}"
        ) from error
    except (OSError, EOFError, ValueError) as error:
        raise Unreachable(f"{host_port} by the proxy {way.proxy}: {reasons.what(error)}") from error


async def _connect(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, way: Outgoing, url: str, host_port: str
) -> None:
    headers = {"Host": host_port, **(way.headers_of(url) or {})}
    lines = [f"CONNECT {host_port} HTTP/1.1", *(f"{name}: {value}" for name, value in headers.items())]
    writer.write("\r\n".join([*lines, "", ""]).encode())
    answer = (await reader.readuntil(b"\r\n\r\n")).split(None, 2)
    status = int(answer[1]) if len(answer) > 1 and answer[1].isdigit() else 0
    if not 200 <= status < 300:
        raise Unreachable(f"{host_port}: {way.refusal(status)}")
