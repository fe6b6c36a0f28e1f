"""Whose lines are in a log: a log server's file, `pdsh ... dmesg` or a journal of several machines has those of many."""

import re
from collections import deque
from collections.abc import Sequence

from agent.contract.kernel_documents import unwrapped
from agent.contract.kernel_line import Line

_CLOCK = r"\d\d:\d\d:\d\d"
_TIMES = (
    rf"(?:[A-Z][a-z]{{2}}| ?1?\d[月월]) [ \d]\d {_CLOCK}(?:\.\d+)?",
    rf"\d{{4}}-\d\d-\d\d[T ]{_CLOCK}(?:[.,]\d+)?(?:Z|[+-]\d\d:?\d\d)?",
    rf"(?:[A-Z][a-z]{{2}}|\w) \d{{4}}-\d\d-\d\d {_CLOCK}(?:\.\d+)? [A-Z]{{1,5}}",  # journalctl -o short-full
    r"\d{9,11}\.\d{6}",  # -o short-unix
)
_TIME = f"(?:{'|'.join(_TIMES)})"
_HOST = r"(?P<host>\(none\)|[A-Za-z0-9][A-Za-z0-9._-]{0,62})"
_FOLDED = r"[A-Za-z0-9][A-Za-z0-9._-]{0,62}\[[0-9,-]{1,200}\][A-Za-z0-9._-]{0,62}"
_SET = re.compile(r"([^\[]*)\[([0-9,-]+)\](.*)")
_MOST_OF_A_SET = 4096  # nodes
_LATER = rf"\[ *\d+\.\d+\] |\[[A-Z][a-z]{{2}} [A-Z][a-z]{{2}} [ \d]\d {_CLOCK} \d{{4}}\] |{_TIME} "
_UNNAMED = ("localhost", "(none)")  # also `localhost.localdomain`; the kernel's own name for no name
_REMEMBERED = 64  # records; those of a message of several lines are read a few lines later
_FORMS = (
    # syslog: a time, the host, who spoke
    re.compile(rf"(?:<\d{{1,3}}>)?{_TIME} {_HOST} (?:kern\.\w+ )?(?:kernel|[\w./@-]{{1,100}}(?:\[\d+\])?): "),
    # journalctl -o short-monotonic
    re.compile(rf"\[ *\d+\.\d+\] {_HOST} kernel: "),
    # RFC 5424
    re.compile(rf"<\d{{1,3}}>1 \S+ {_HOST} kernel "),
    # pdsh and clush before dmesg's own time, or another; `clush -bL` folds nodes that say the same
    re.compile(rf"(?P<host>{_FOLDED}|[A-Za-z0-9][A-Za-z0-9._-]{{0,62}}): (?={_LATER})"),
    re.compile(r'.*"_HOSTNAME" ?: ?"(?P<host>[A-Za-z0-9][A-Za-z0-9._-]{0,62})"'),
)


def host_of(line: str) -> str:
    """The machine that a line names as its own; empty: none."""
    for form in _FORMS:
        if found := form.match(line):
            return found["host"]
    return ""


def nodes_of(host: str) -> list[str]:
    """The machines of a folded name, as clush writes it; of any other that name alone.

    >>> nodes_of("gpu[007-009,12]"), nodes_of("gpu007")
    (['gpu007', 'gpu008', 'gpu009', 'gpu12'], ['gpu007'])
    """
    folded = _SET.fullmatch(host)
    if folded is None:
        return [host]
    found: list[str] = []
    for part in folded[2].split(","):
        first, _, last = part.partition("-")
        last = last or first
        if not (first.isdecimal() and last.isdecimal()) or not 0 <= int(last) - int(first) < _MOST_OF_A_SET:
            return [host]
        found += [f"{folded[1]}{n:0{len(first)}}{folded[3]}" for n in range(int(first), int(last) + 1)]
    return found if len(found) <= _MOST_OF_A_SET else [host]


def _names(hosts: Sequence[str]) -> dict[str, str]:
    """Host → the name of its machine, where that has another one too: until it has read its name it is `localhost`, if no
    third one speaks here; and the network may tell it the rest of its name later, if that is of one domain.
    """
    names: dict[str, str] = {}
    whole = dict.fromkeys(host for host in hosts if host and host.partition(".")[0] not in _UNNAMED)
    for host in whole:
        longer = [one for one in whole if one.startswith(f"{host}.")]
        if len(longer) == 1 and not host.isdecimal():
            names[longer[0]] = host
    left = [host for host in whole if host not in names]
    if len(left) == 1:
        names |= {host: left[0] for host in hosts if host.partition(".")[0] in _UNNAMED}
    return names


def by_host(lines: Sequence[str]) -> dict[str, list[int]]:
    """The positions of the lines by the machines that they name, in the order of their first lines; empty when they name fewer
    than two. A line that names none belongs to the one before it; those of an object that is printed over many belong together.
    """
    hosts = [(number - 1, host_of(text)) for number, text in unwrapped(lines)]
    names = _names([host for _, host in hosts])
    hosts = [(at, names.get(host, host)) for at, host in hosts]
    named = {host for _, host in hosts} - {""}
    if len(named) < 2 and all(len(nodes_of(host)) < 2 for host in named):
        return {}
    found: dict[str, list[int]] = {}
    host = next(one for _, one in hosts if one)
    ends = [at for at, _ in hosts[1:]] + [len(lines)]
    begin = 0
    for (_, own), end in zip(hosts, ends, strict=True):
        host = own or host
        for one in nodes_of(host):
            found.setdefault(one, []).extend(range(begin, end))
        begin = end
    return found


class Hosts:
    """Which machine says a record: of the newest lines that were read."""

    def __init__(self) -> None:
        self._newest: deque[tuple[int, str]] = deque(maxlen=_REMEMBERED)

    def see(self, number: int, text: str, line: Line | None) -> None:
        """As kernel_text.Seen."""
        if line is not None:
            self._newest.append((number, host_of(text)))

    def of(self, number: int) -> str:
        """Of the record that begins in this line (1-based); empty: it names none."""
        return next((host for at, host in self._newest if at == number), "")
