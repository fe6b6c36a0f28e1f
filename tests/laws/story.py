"""One random story: facts, operators, results, leaders, reloads, restarts; and what the engine made of it.

All chance comes from the seed. Facts may come late, twice and out of order; nodes fall silent and lie.
"""

import random
from itertools import accumulate

from agent.contract.commands import Outcome
from agent.contract.kinds import KINDS
from agent.contract.messages import Scalar, Severity
from brain.core.inputs import (
    Leader,
    Malformed,
    NodeState,
    OperatorCommand,
    PackLoaded,
    Reported,
)
from brain.core.pack.compiled import CompiledCache
from brain.core.pack.spec import Match, Mode, Symptom
from tests.laws import fleet, words
from tests.laws.unsent import Unsent
from tests.laws.values import any_value, data_of
from tests.laws.world import See, Story, World

UNKNOWN_XID = 4242  # no catalogue has it
QUIET_END_S = (
    1.2 * 86400.0
)  # how long a story goes on after its last move: all that waits must have ended or told

HEARD_AT_FIRST = 8  # so many nodes have been heard before the first move
ACK_AFTER_S = 2 * 3600.0  # when people acknowledge what they were paged for, in the quiet end


class Teller(World):
    """Tells one story."""

    def __init__(self, seed: int, moves: int, cache: CompiledCache, see: See) -> None:
        """`see`: as of the world."""
        chance = random.Random(seed)
        self._size = chance.choice(fleet.SIZES)
        self._modes = chance.choice(((Mode.AUTO,), (Mode.AUTO,), (Mode.AUTO, Mode.APPROVE), tuple(Mode)))
        self._careful = chance.random() < 0.5
        pack = fleet.pack(self._size, self._modes[0], careful=self._careful)
        super().__init__(seed, chance, pack, cache, see)
        self._moves = moves
        self._favourites = chance.sample(pack.symptoms, 6)  # a story is about few faults, not about all
        self._sick = chance.sample(self.names, min(self._size, chance.choice((1, 2, 5, 20))))

    def play(self) -> Story:
        """The whole story."""
        self._put(PackLoaded(id="pack-0", pack=self.story.cell.pack))
        self._lead()
        for name in self._chance.sample(self.names, min(len(self.names), HEARD_AT_FIRST)):
            self._put(self._event(name, "agent.started", "node", {}))
        for _ in range(self._moves):
            self._move()
            self._pass(self._chance.choice((0.0, 0.0, 0.3, 1.0, 3.0, 10.0, 60.0, 400.0, 4000.0)))
        self._settle()
        self.engine.close()
        return self.story

    def _settle(self) -> None:
        """From here on the world does what it is told, nobody says anything any more, and days pass."""
        self._obedient = True
        self.story.end_at = self.now
        for step, at_work in list(self.story.cell.under_way.items()):
            self._later(5.0, self._result(at_work.step, Outcome.OK, step))
        for name, node in self.story.cell.nodes.items():
            if not node.alive:
                self._put(NodeState(id=self._id("n"), node=name, alive=True))
        self._pass(ACK_AFTER_S)
        state = self.engine.state
        for about in [*state.incidents, *state.alert_groups]:
            self._put(OperatorCommand(id=self._id("o"), who="ann", verb="ack", args={"id": about}))
        self._at_rest = True
        self._pass(QUIET_END_S - ACK_AFTER_S)

    def _lead(self) -> None:
        self.story.cell.epoch += 1
        epoch = self.story.cell.epoch
        self._put(Leader(id=f"leader-{epoch}", epoch=epoch, brain=f"b{epoch % 2}"))

    def _fact(self, node: str, symptom: Symptom, match: Match) -> Unsent:
        wanted = match.where.get("component_type", symptom.scope)
        kind = wanted if isinstance(wanted, str) and wanted in fleet.COMPONENTS else "node"
        age_s = self._chance.choices((0.0, 3.0, 200.0, 9000.0), (10, 2, 1, 1))[0]
        return self._event(
            node, match.kind, self._chance.choice(fleet.COMPONENTS[kind]), data_of(match), age_s
        )

    def _move(self) -> None:
        chance = self._chance
        what = chance.choices(_MOVE_NAMES, cum_weights=_MOVE_WEIGHTS)[0]
        node = chance.choice(self._sick if chance.random() < 0.8 else self.names)
        if what in ("fact", "storm", "creep", "cleared"):
            self._facts(what, node)
        elif what == "silent":
            self._put(NodeState(id=self._id("n"), node=node, alive=False, silent_s=20.0))
        elif what == "heard":
            self._put(NodeState(id=self._id("n"), node=node, alive=True))
        elif what == "reboot":
            self._boots[node] = self._boots.get(node, 0) + 1
            self._put(self._event(node, "agent.started", "node", {}))
        elif what == "any":
            self._any_kind(node)
        elif what == "unknown":
            data: dict[str, Scalar] = {
                "code": UNKNOWN_XID + chance.randint(0, 3),
                "name": "unknown",
                "action": "UNKNOWN",
            }
            self._put(self._event(node, "gpu.xid", "gpu/0000:3b:00", data))
        elif what == "leader":
            self._lead()
        elif what == "reload":
            pack = fleet.pack(self._size, chance.choice(self._modes), careful=self._careful)
            self.story.cell.pack = pack
            self._put(PackLoaded(id=self._id("p"), pack=pack))
        elif what == "forged":
            self._forge(node)
        elif what == "garbage":
            self._put(Malformed(id=self._id("m"), subject="x", node=node, why="not JSON"))
        elif what == "reported":
            self._put(
                Reported(
                    id=self._id("ufm"),
                    source="ufm",
                    node=node,
                    kind="ib.cable",
                    component="port/mlx5_0.1",
                    severity=Severity.WARNING,
                    data={"what": "hot"},
                )
            )
        else:
            self._command(node)

    def _forge(self, node: str) -> None:
        """A node reports how another one's step has ended, or the brain's own."""
        at_work = [one.step for one in self.story.cell.under_way.values()]
        foreign = [step for step in at_work if step.node != node or step.where == "brain"]
        if foreign:
            step = self._chance.choice(foreign)
            outcome = self._chance.choice(list(Outcome)).value
            data = {"command": step.id, "outcome": outcome, "why": "so it says"}
            self._put(self._event(node, "command.result", "node", data))

    def _facts(self, what: str, node: str) -> None:
        chance = self._chance
        symptom = chance.choice(self._favourites)
        matches = symptom.clear if what == "cleared" else symptom.on
        if not matches:
            return
        match = chance.choice(matches)
        if what in ("fact", "cleared"):
            for _ in range(chance.choice((1, 1, 3))):
                self._later(chance.uniform(0, 5), self._fact(node, symptom, match))
            return
        count = min(len(self.names), chance.choice((3, 6, 9, 24, 60)))
        pause_s = 0.1 if what == "storm" else chance.choice((10.0, 20.0, 60.0))
        first = chance.randrange(len(self.names))  # neighbours, as a leaf's are
        for number in range(count):
            name = self.names[(first + number) % len(self.names)]
            self._later(number * pause_s, self._fact(name, symptom, match))

    def _any_kind(self, node: str) -> None:
        """A well-formed event of any kind that is declared, with any values."""
        kind = self._chance.choice(list(KINDS.values()))
        types = [one for one in kind.component.replace(" ", "").split(",") if one in fleet.COMPONENTS] or [
            "node"
        ]
        component = self._chance.choice(fleet.COMPONENTS[self._chance.choice(types)])
        data = {
            one.name: any_value(self._chance, one.type) for one in kind.fields if self._chance.random() < 0.9
        }
        if kind.name not in ("command.result", "command.progress"):
            self._put(self._event(node, kind.name, component, data))

    def _command(self, node: str) -> None:
        """What an operator says, sense or nonsense."""
        verb, args = words.said(self._chance, self.engine.state, self.story.cell.pack, node)
        who = self._chance.choice(("ann", "bob"))
        self._put(OperatorCommand(id=self._id("o"), who=who, verb=verb, args=args))


_MOVES = {
    "fact": 40,
    "storm": 2,
    "creep": 3,
    "cleared": 8,
    "silent": 4,
    "heard": 4,
    "reboot": 2,
    "any": 12,
    "unknown": 2,
    "command": 16,
    "leader": 1,
    "reload": 1,
    "garbage": 1,
    "forged": 2,
    "reported": 1,
}
_MOVE_NAMES, _MOVE_WEIGHTS = list(_MOVES), list(accumulate(_MOVES.values()))
