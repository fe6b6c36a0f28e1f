"""The rulebook: situations -> matching rules. The port behind which a matcher stands, and which one stands there here.

brain/core/pack/conditions.py defines what a condition means. Both matchers are held to it, and to each other, on random
rules and situations, on every example of the shipped rules, and on the recorded logs.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Protocol

from brain.core.pack.matcher_plain import PlainRulebook
from brain.core.pack.spec import Rule, Scalar

try:
    from brain.core.pack.matcher_durable import DurableRulebook
except ImportError as error:  # not installed (Python 3.13 and newer), or built for another Python
    _missing = str(error)
else:
    _missing = ""


class Rulebook(Protocol):
    """Compiled rules."""

    def match(self, scope: str, situation: Mapping[str, Scalar]) -> list[str]:
        """Names of the rules of scope type `scope` whose `when` is true of the situation, in the rules' order.

        A field that is NaN counts as missing. BugError: the matcher fails.
        """
        ...

    def close(self) -> None:
        """Frees what the matcher holds; afterwards `match` finds nothing. May be called again."""
        ...


BuildRulebook = Callable[[Sequence[Rule]], Rulebook]  # ConfigError: a rule is malformed or breaks a limit


@dataclass(frozen=True, slots=True, kw_only=True)
class Matcher:
    """A matcher, as people and the compiled pack know it."""

    name: str
    build: BuildRulebook
    # why it is this one; empty: it is the first choice
    why: str = ""

    def __str__(self) -> str:
        return f"{self.name} ({self.why})" if self.why else self.name


PLAIN: Final = Matcher(name="plain Python", build=PlainRulebook)
# The matcher of this process, chosen when it starts and never again.
MATCHER: Final = (
    Matcher(name=PLAIN.name, build=PlainRulebook, why=f"durable_rules cannot be had: {_missing}")
    if _missing
    else Matcher(name="durable_rules", build=DurableRulebook)
)
