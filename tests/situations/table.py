"""All situations, and their outcomes."""

import functools

from tests.situations import brains, control, network, night, odd, oncall, one_node, remedies, wide
from tests.situations.situation import Judged, Situation, judge

THEMES: dict[str, tuple[Situation, ...]] = {
    "Switches, cables and subnet managers": network.SITUATIONS,
    "Many nodes, one cause": wide.SITUATIONS,
    "GPUs and cards of one node": remedies.SITUATIONS,
    "Parts of one node, and one fault that leads to others": one_node.SITUATIONS,
    "The brain, schedulers and operators": control.SITUATIONS,
    "The brain in the middle of a run": brains.SITUATIONS,
    "People beside the machine": oncall.SITUATIONS,
    "Three in the morning": night.SITUATIONS,
    "Adversaries and bad luck": odd.SITUATIONS,
}
ALL: dict[str, Situation] = {one.what: one for theme in THEMES.values() for one in theme}


@functools.cache
def judged(what: str) -> Judged:
    """The outcome of a situation, which is played once."""
    return judge(ALL[what])
