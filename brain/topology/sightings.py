"""What an importer finds out about nodes, bit by bit."""

from collections.abc import Iterable
from dataclasses import dataclass, field

from agent.contract import subjects
from agent.contract.errors import ConfigError
from agent.contract.inert import inert
from brain.core.pack.topology import WIDE
from brain.marked_yaml import Diagnostic
from brain.topology.site_map import UNNAMED, SiteMap, placed, wrong_name

_SHOWN = 40  # characters of a name that is no name


@dataclass(slots=True, kw_only=True)
class Sightings:
    """Facts of one source; `site` makes places of them."""

    # File, or files, that are read; the one that is being read
    source: str
    # node -> kind -> names
    kinds: dict[str, dict[str, list[str]]] = field(default_factory=dict)
    # node -> device -> leaf switch
    rails: dict[str, dict[str, str]] = field(default_factory=dict)
    # What was not taken, and why
    refused: list[Diagnostic] = field(default_factory=list)

    def refuse(self, line: int, key: str, why: str) -> None:
        """Tells of what is not taken."""
        self.refused.append(Diagnostic(file=self.source, line=line, key=inert(key[:_SHOWN]), text=inert(why)))

    def node(self, name: str, line: int = 0) -> str:
        """The name of a node here: the text before the first dot, as its agent calls it. Empty, with a warning: it is none."""
        try:
            short = subjects.token(name.partition(".")[0], "node")
        except ConfigError as error:
            self.refuse(line, name, f"not taken: {error}")
            return ""
        self.kinds.setdefault(short, {})
        return short

    def stands(self, node: str, kind: str, name: str, line: int = 0) -> None:
        """A node stands in a place."""
        if wrong := wrong_name(name):
            self.refuse(line, f"{node}.{kind}", f"not taken: the name {wrong}")
            return
        names = self.kinds.setdefault(node, {}).setdefault(kind, [])
        if name not in names:
            names.append(name)

    def connected(self, node: str, device: str, leaf: str, line: int = 0) -> None:
        """A device of a node is connected to a leaf switch. Empty: it is not known which device."""
        self.stands(node, "leaf", leaf, line)
        if device and device.isprintable() and not wrong_name(leaf):
            self.rails.setdefault(node, {}).setdefault(device, leaf)

    def site(self) -> SiteMap:
        """The places."""
        site = SiteMap(source=self.source)
        for node in sorted(self.kinds):
            kinds = {kind: tuple(names) for kind in WIDE if (names := self.kinds[node].get(kind))}
            if not kinds.get("fabric"):
                kinds["fabric"] = (UNNAMED,)
            site.places[node] = placed(kinds, dict(sorted(self.rails.get(node, {}).items())))
        site.warnings += self.refused
        return site


def lines(text: str) -> Iterable[tuple[int, str]]:
    """The lines of a text, from 1. Unlike `splitlines` it breaks at line feeds only."""
    return enumerate(text.replace("\r\n", "\n").split("\n"), 1)
