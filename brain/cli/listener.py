"""Who listens at a port of this machine: while no brain runs, every local user may, and would be shown tokens that go there in
clear. Standard library only: every command imports it.
"""

import http.client
import os
import pwd
import socket
import sys
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import click

from agent.shared.words import t

SERVICE = "gpuward"  # the user of the brain's unit
VARIABLE = "GPUWARD_BRAIN_USER"  # whoever else runs the brain, by name or number
_TABLES = ((socket.AF_INET, Path("/proc/net/tcp")), (socket.AF_INET6, Path("/proc/net/tcp6")))
_LISTENS = "0A"  # TCP_LISTEN of the kernel's include/net/tcp_states.h


def users(host: str, port: int) -> set[int]:
    """The users whose sockets take connections to this address of this machine; none where it cannot be seen, or nobody does."""
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except OSError:
        return set()
    wanted = {str(one[4][0]) for one in found}
    wanted |= {"0.0.0.0", "::", *(f"::ffff:{one}" for one in wanted if "." in one)}
    return {user for address, of_port, user in _listening() if of_port == port and address in wanted}


def check(host: str, port: int) -> None:
    """ClickException: who listens there is neither root, nor whoever types this, nor the brain's user."""
    good = {0, os.getuid(), os.geteuid(), *_named(SERVICE), *_named(os.environ.get(VARIABLE, ""))}
    if wrong := users(host, port) - good:
        who = ", ".join(sorted(_name(user) for user in wrong))
        raise click.ClickException(
            t(
                "{who} listens at port {port} of this machine, not {service}, root or you: no token is sent "
                "there. If that is the brain's user, say {variable}={who}; is the brain down, find out what "
                "that is (`ss -ltnp sport = :{port}`)",
                who=who,
                port=port,
                service=SERVICE,
                variable=VARIABLE,
            )
        )


class Connection(http.client.HTTPConnection):
    """To this machine in clear: who listens is looked at directly before it connects."""

    def connect(self) -> None:
        """ClickException as of `check`."""
        check(self.host, self.port)
        super().connect()


class Handler(urllib.request.HTTPHandler):
    """For an opener whose requests carry a token."""

    def http_open(self, req: urllib.request.Request) -> http.client.HTTPResponse:
        """See urllib."""
        answer: http.client.HTTPResponse = self.do_open(Connection, req)
        return answer


def _listening() -> Iterator[tuple[str, int, int]]:
    """(address, port, user) of each socket that listens: the columns local_address, st and uid (Linux, proc_net_tcp.rst)."""
    for family, table in _TABLES:
        try:
            lines = table.read_text(encoding="ascii").splitlines()[1:]
        except OSError:
            continue
        for line in lines:
            _, local, _, state, _, _, _, user, *_ = line.split()
            if state == _LISTENS:
                raw, _, port = local.partition(":")
                words = (int(raw[at : at + 8], 16).to_bytes(4, sys.byteorder) for at in range(0, len(raw), 8))
                yield socket.inet_ntop(family, b"".join(words)), int(port, 16), int(user)


def _named(user: str) -> list[int]:
    try:
        return [int(user) if user.isdecimal() else pwd.getpwnam(user).pw_uid] if user else []
    except KeyError:
        return []


def _name(user: int) -> str:
    try:
        return pwd.getpwuid(user).pw_name
    except KeyError:
        return str(user)
