"""What stands above the lists of `gpuward top`: who and how many, and what is wrong. Pure."""

from collections.abc import Iterator, Mapping

from rich.text import Text

from brain.cli.answers import MeJson, StatusJson
from brain.cli.deaf import nobody_leads
from brain.cli.queries import out_of_date
from brain.cli.top.rows import Tab, word
from brain.console.words import Words

SILENT_S = 20.0  # the brain says something each 15 s
_TITLES = {
    Tab.NOW: "nav-now",
    Tab.INCIDENTS: "nav-incidents",
    Tab.RUNS: "top-runs",
    Tab.NODES: "top-nodes",
    Tab.NOTES: "nav-audit",
}


def head(words: Words, status: StatusJson, me: MeJson | None, needing: int) -> str:
    """The first line: whose brain it is, how much there is to do, and who looks."""
    leader = words("top-leads", brain=status["brain"])
    if not status["leads"]:
        leader = words("top-follows", brain=status["brain"], leader=status["leader"] or "-")
    nodes = words("top-heard-nodes", n=status["nodes"])
    if unheard := status["nodes_unreachable"]:
        nodes = words("top-unheard-nodes", n=status["nodes"], unheard=unheard)
    who = words("top-reader")
    if me is not None and me["how"]:
        who = f"{me['name']}, {word(words, 'role', me['role'])}"
    open_ = words("top-open", n=status["incidents_open"])
    return " · ".join((f"{status['cell']}: {leader}", words("top-needing", n=needing), open_, nodes, who))


def tabs(words: Words, shown: Tab, counts: Mapping[Tab, int], found: str) -> Text:
    """The second line: the lists with their keys, and what the shown one is filtered by."""
    line = Text(no_wrap=True, overflow="ellipsis")
    for n, tab in enumerate(Tab, 1):
        count = f" {counts[tab]}" if tab in counts else ""
        line.append(f" {n} {words(_TITLES[tab])}{count} ", "reverse" if tab is shown else "")
        line.append(" ")
    return line.append(f" {found}", "bold") if found else line


def wrong(
    words: Words, status: StatusJson, *, cut: tuple[float, str] | None, silent_s: float, late: str, when: str
) -> list[str]:
    """What is wrong, the worst first; empty: nothing.

    `cut`: for how many seconds the connection is lost, and why; `silent_s`: since nothing was heard on it; `late`: why a list
    was not answered; `when`: of which time the list is.
    """
    return list(_wrong(words, status, cut, silent_s, late, when))


def _wrong(
    words: Words, status: StatusJson, cut: tuple[float, str] | None, silent_s: float, late: str, when: str
) -> Iterator[str]:
    if cut is not None:
        yield words("top-cut", span=words.span(cut[0]), why=cut[1], when=when)
    elif silent_s > SILENT_S:
        yield words("top-silent", span=words.span(silent_s), when=when)
    elif late:
        yield words("top-late", why=late, when=when)
    if status["stopped"]:
        yield words("top-stopped", why=status["stopped"])
    old = out_of_date(status)
    if old:
        yield words("top-outdated", why=old)
    for one in status["troubles"]:
        if not (old and nobody_leads({"troubles": [one]})):
            yield words("top-trouble", why=one["text"])
