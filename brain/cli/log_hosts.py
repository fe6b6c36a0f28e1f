"""Whose lines are in a log: a log server's file, `pdsh ... dmesg` or a journal of several machines has those of many."""

import re
from collections.abc import Sequence

_CLOCK = r"\d\d:\d\d:\d\d"
_TIMES = (
    rf"[A-Z][a-z]{{2}} [ \d]\d {_CLOCK}(?:\.\d+)?",
    rf"\d{{4}}-\d\d-\d\d[T ]{_CLOCK}(?:[.,]\d+)?(?:Z|[+-]\d\d:?\d\d)?",
    rf"[A-Z][a-z]{{2}} \d{{4}}-\d\d-\d\d {_CLOCK}(?:\.\d+)? [A-Z]{{1,5}}",  # journalctl -o short-full
    r"\d{9,11}\.\d{6}",  # -o short-unix
)
_TIME = f"(?:{'|'.join(_TIMES)})"
_HOST = r"(?P<host>[A-Za-z0-9][A-Za-z0-9._-]{0,62})"
_FORMS = (
    # syslog: a time, the host, who spoke
    re.compile(rf"(?:<\d{{1,3}}>)?{_TIME} {_HOST} (?:kern\.\w+ )?(?:kernel|[\w./@-]{{1,100}}(?:\[\d+\])?): "),
    # journalctl -o short-monotonic
    re.compile(rf"\[ *\d+\.\d+\] {_HOST} kernel: "),
    # RFC 5424
    re.compile(rf"<\d{{1,3}}>1 \S+ {_HOST} kernel "),
    # pdsh and clush before dmesg's own time
    re.compile(rf"{_HOST}: (?=\[ *\d+\.\d+\])"),
    re.compile(r'.*"_HOSTNAME" ?: ?"(?P<host>[A-Za-z0-9][A-Za-z0-9._-]{0,62})"'),
)


def host_of(line: str) -> str:
    """The machine that a line names as its own; empty: none."""
    for form in _FORMS:
        if found := form.match(line):
            return found["host"]
    return ""


def by_host(lines: Sequence[str]) -> dict[str, list[int]]:
    """The positions of the lines by the machines that they name, in the order of their first lines; empty when they name fewer
    than two. A line that names none belongs to the one before it.
    """
    hosts = [host_of(line) for line in lines]
    if len(set(hosts) - {""}) < 2:
        return {}
    found: dict[str, list[int]] = {}
    host = next(filter(None, hosts))
    for position, named in enumerate(hosts):
        host = named or host
        found.setdefault(host, []).append(position)
    return found
