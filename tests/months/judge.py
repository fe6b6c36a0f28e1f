"""A month of gpuward's that every safety law watches: the month's own watcher, and the oracles of the random stories."""

from collections.abc import Sequence

from brain.core.effects import Effect
from brain.core.engine import Engine
from brain.core.inputs import Input
from brain.core.pack.actions import ACTIONS
from brain.core.pack.spec import Pack
from simulations.month.draw import Month
from simulations.month.engine_fleet import EngineFleet, pack_of
from simulations.month.laws import LawBrokenError
from simulations.month.terms import AS_SHIPPED, Terms
from tests.laws import oracles
from tests.laws.cell import Cell, NodeTruth
from tests.laws.moment import moment
from tests.laws.truth import observed, shown


class Overheard(Engine):
    """An engine that the oracles of the random stories listen to."""

    def __init__(self, cell: Cell) -> None:
        super().__init__(actions=ACTIONS)
        self.cell = cell
        self.judges = oracles.all_of_them()
        self.found: list[str] = []

    def handle(self, given: Input, now: float) -> list[Effect]:
        """As the engine; then every oracle that is concerned."""
        effects = super().handle(given, now)
        self.cell.now = now
        made = moment(given, now, effects)
        shown(self.cell, made)
        for number in oracles.concerned(frozenset(map(type, (given, *effects)))):
            self.found += [
                f"law {self.judges[number].law}: {one}" for one in self.judges[number].see(self.cell, made)
            ]
        observed(self.cell, made)
        return effects


def overheard(month: Month, pack: Pack, terms: Terms = AS_SHIPPED) -> Overheard:
    """The engine of a month."""
    nodes = {name: NodeTruth(name=name) for name in month.nodes}
    return Overheard(Cell(pack=pack_of(pack, month, terms), actions=ACTIONS, nodes=nodes, epoch=1))


def broken_laws(month: Month, pack: Pack, terms: Terms = AS_SHIPPED) -> Sequence[str]:
    """What was found, in the order of time, the watcher's with the story of the node; none: all laws held."""
    engine = overheard(month, pack, terms)
    fleet = EngineFleet(pack, month, engine, terms=terms)
    try:
        fleet.run(month.days * 86400)
    except LawBrokenError as error:
        return [*engine.found, str(error)]
    finally:
        engine.close()
    tally = fleet.world.close()
    under_hold = [
        f"law 2: {act.action} on {act.node} under the hold on {act.hold}" for act in tally.acts if act.hold
    ]
    broken = ["law 8: a node was given back with a fault that ends jobs"] if tally.returned_broken else []
    return [*engine.found, *under_hold, *broken]
