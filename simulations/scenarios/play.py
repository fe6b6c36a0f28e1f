"""The cell in which a story is played: a scene with places of its own, and facts that come late."""

from dataclasses import replace

from agent.contract.messages import UnsentEvent
from brain.core.pack.spec import Mode, ModeSetting, Pack, Window
from simulations.scenarios.ending import SceneEnd
from simulations.scenarios.moves import Moves
from simulations.scenarios.names import places
from simulations.scenarios.scene import Scene
from simulations.scenarios.spec import Tale
from simulations.scenarios.timeline import moves
from simulations.virtual_fleet import START


class Cell(Scene):
    """A scene whose nodes stand where the story says."""

    def __init__(self, tale: Tale, pack: Pack | None = None) -> None:
        """`pack`: the rules; None: gpuward's own."""
        windows = tuple(
            Window(scope=one.scope, since=START + one.since, until=START + one.until, why=one.why)
            for one in tale.maintenance
        )
        super().__init__(
            tale.site.nodes,
            pack=pack,
            places=places(tale.site),
            modes=(ModeSetting(mode=Mode(tale.mode)),),
            maintenance=windows,
        )

    def told_late(self, node: str, unsent: UnsentEvent, *, age_s: float, count: int) -> None:
        """A fact arrives `age_s` after it occurred, for so many equal ones."""
        now = self.start + self.at_s
        self.said(node, replace(unsent, count=count), now - age_s, now)


def play(tale: Tale, pack: Pack | None = None) -> SceneEnd:
    """Plays a story to its end. `pack`: the rules; None: gpuward's own."""
    cell = Cell(tale, pack)
    told: Moves = tuple(move for line in tale.timeline for move in moves(line))
    for move in sorted(told, key=lambda move: move.at_s):
        cell.run(move.at_s)
        move.do(cell)
    cell.run(tale.until)
    return SceneEnd(scene=cell)
