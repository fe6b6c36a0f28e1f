"""What the brain tells of nodes that say too much, say what cannot be read, speak for others, or are two under one name.

Each becomes an input, and by the rules an incident about the node; at most one of a kind and node per EVERY_S.
"""

import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

from agent.contract.components import NODE
from agent.contract.messages import Beat, Severity, clip
from brain.core.inputs import Input, Malformed, Reported
from brain.core.pack import vocabulary

SLOWED_S = 5.0  # a node that offered too much for so long is noisy
QUIET_S = 60.0  # a noisy node that was within its limits for so long is no longer
EVERY_S = 30.0
_GAP_S = 2.0  # slowed again within this: it was slowed all the time
_SOURCE = "brain"
# A run of an agent that another has replaced speaks no more, but for one beat that was under way, after which the other is
# heard again. When it changes back so often within IN_TURN_S, nobody was replaced.
IN_TURN, IN_TURN_S = 3, 60.0
TOLD_AGAIN_S = 900.0
MOST_RUNS = 4  # of an agent that are remembered


@dataclass(slots=True)
class _Node:
    slowed_since_s: float | None = None
    slowed_s: float = 0.0  # last time
    left_out: int = 0  # since it was reported
    refused: int = 0  # messages that the server refused, since it was reported
    left_out_s: float = float("-inf")  # last time, or refused
    noisy: bool = False
    reported_s: dict[str, float] = field(default_factory=dict)
    unread: int = 0  # messages that could not be read, since they were reported


@dataclass(slots=True)
class _Runs:
    """The runs of an agent that have spoken in a node's name."""

    newest: Beat
    # Session → its last beat, of those that another one has replaced.
    replaced: dict[str, Beat] = field(default_factory=dict)
    # When one of them was heard again.
    again_s: list[float] = field(default_factory=list)
    told_s: float | None = None


class NodeReports:
    """Counts, and says by `sweep` and at once what has to be told. `put` appends an input to the log."""

    def __init__(
        self,
        put: Callable[[Input], None],
        clock: Callable[[], float] = time.monotonic,
        standing: Callable[[str], Iterable[str]] = lambda _: (),
    ) -> None:
        """`standing`: the nodes of which a report of this kind stands; whoever led before has told it."""
        self._put = put
        self._standing = standing
        self._clock = clock
        self._nodes: dict[str, _Node] = {}
        self._runs: dict[str, _Runs] = {}
        self._count = 0
        self._run = ""
        self._two_before: set[str] = set()  # of which it was told, and nobody has been heard since

    def begin(self, run: str) -> None:
        """A new leadership, by a text that no other has: what was counted before was another brain's to tell."""
        self._run = run
        self._nodes.clear()
        self._runs.clear()
        self._two_before = set(self._standing(vocabulary.TWO_AGENTS))

    def beat(self, beat: Beat) -> None:
        """A beat has come: of the run of an agent that is known, of one that replaces it, or of one of two in turn."""
        runs = self._runs.get(beat.node)
        if runs is None:
            runs = self._runs[beat.node] = _Runs(newest=beat)
            if beat.node in self._two_before:
                self._two_before.remove(beat.node)
                runs.told_s = self._clock()
                runs.again_s = [runs.told_s]  # over, if nobody speaks in turn from now on
            return
        if beat.session != runs.newest.session:
            if runs.replaced.pop(beat.session, None) is not None:
                runs.again_s = [*runs.again_s, self._clock()][-IN_TURN:]
            runs.replaced[runs.newest.session] = runs.newest
            if len(runs.replaced) > MOST_RUNS:
                del runs.replaced[next(iter(runs.replaced))]
        runs.newest = beat

    def slowed(self, node: str) -> None:
        """The node offers more than its limits allow, or more than any fault does."""
        found, now_s = self._node(node), self._clock()
        if found.slowed_since_s is None or now_s - found.slowed_s > _GAP_S:
            found.slowed_since_s = now_s
        found.slowed_s = now_s

    def left_out(self, node: str) -> None:
        """An event of the node was left out."""
        found = self._node(node)
        found.left_out += 1
        found.left_out_s = self._clock()

    def refused(self, node: str, count: int) -> None:
        """The server refused so many messages or subscriptions: they are not the node's to send. No agent does that."""
        found = self._node(node)
        found.refused += count
        found.left_out_s = self._clock()

    def unreadable(self, node: str, subject: str, why: str) -> None:
        """A message of the node cannot be read. At most one input per EVERY_S, which counts the others."""
        found = self._node(node)
        found.unread += 1
        if self._due(found, "unread"):
            more = f" ({found.unread - 1} others before it)" if found.unread > 1 else ""
            found.unread = 0
            self._put(
                Malformed(
                    id=self._id("m", node), subject=clip(subject, 200), node=node, why=clip(why, 250) + more
                )
            )

    def foreign_result(self, node: str, command: str) -> None:
        """The node reports a result of a command that was never sent to it."""
        if self._due(self._node(node), "foreign"):
            self._report(node, vocabulary.FOREIGN_RESULT, Severity.ERROR, {"command": clip(command, 120)})

    def foreign_word(self, node: str, kind: str) -> None:
        """The node reports a kind of fact that no agent tells."""
        if self._due(self._node(node), "word"):
            self._report(node, vocabulary.FOREIGN_WORD, Severity.ERROR, {"word": clip(kind, 120)})

    def sweep(self) -> None:
        """To be called each second or so."""
        now_s = self._clock()
        for name, runs in self._runs.items():
            if runs.again_s:
                self._in_turn(name, runs, now_s)
        for name, node in list(self._nodes.items()):
            since_s = node.slowed_since_s
            slowed = since_s is not None and now_s - node.slowed_s <= _GAP_S
            too_long = slowed and since_s is not None and now_s - since_s >= SLOWED_S
            if (too_long or node.left_out or node.refused) and self._due(node, "noisy"):
                node.noisy = True
                self._noisy(name, active=True, left_out=node.left_out, refused=node.refused)
                node.left_out = node.refused = 0
            elif node.noisy and now_s - max(node.slowed_s, node.left_out_s) > QUIET_S:
                node.noisy = False
                self._noisy(name, active=False, left_out=0, refused=0)
            elif not (slowed or node.noisy or node.unread or node.refused) and self._idle(node, now_s):
                del self._nodes[name]

    def _in_turn(self, node: str, runs: _Runs, now_s: float) -> None:
        if now_s - runs.again_s[-1] > IN_TURN_S:
            runs.again_s.clear()
            if runs.told_s is not None:
                runs.told_s = None
                self._two_agents(node, runs, Severity.INFO, active=False)
        elif (
            len(runs.again_s) == IN_TURN
            and runs.again_s[-1] - runs.again_s[0] <= IN_TURN_S
            and (runs.told_s is None or now_s - runs.told_s >= TOLD_AGAIN_S)
        ):
            runs.told_s = now_s
            self._two_agents(node, runs, Severity.ERROR, active=True)

    def _two_agents(self, node: str, runs: _Runs, severity: Severity, *, active: bool) -> None:
        both = (*list(runs.replaced.values())[-1:], runs.newest)
        data: dict[str, str | int] = {
            "active": active,
            "sessions": ", ".join(sorted(clip(beat.session, 40) for beat in both)),
            "boots": len({beat.boot for beat in both}),
        }
        self._report(node, vocabulary.TWO_AGENTS, severity, data)

    def _noisy(self, node: str, *, active: bool, left_out: int, refused: int) -> None:
        severity = Severity.WARNING if active else Severity.INFO
        data = {"active": active, "left_out": left_out} | ({"refused": refused} if refused else {})
        self._report(node, vocabulary.NODE_NOISY, severity, data)

    def _report(self, node: str, kind: str, severity: Severity, data: Mapping[str, str | int]) -> None:
        self._put(
            Reported(
                id=self._id("noise", node),
                source=_SOURCE,
                node=node,
                kind=kind,
                component=NODE,
                severity=severity,
                data=data,
            )
        )

    def _due(self, node: _Node, what: str) -> bool:
        now_s = self._clock()
        if now_s - node.reported_s.get(what, float("-inf")) < EVERY_S:
            return False
        node.reported_s[what] = now_s
        return True

    def _idle(self, node: _Node, now_s: float) -> bool:
        return all(now_s - at_s > EVERY_S for at_s in node.reported_s.values())

    def _id(self, what: str, node: str) -> str:
        self._count += 1
        return f"{what}:{node}:{self._run}.{self._count}"

    def _node(self, name: str) -> _Node:
        return self._nodes.setdefault(name, _Node())
