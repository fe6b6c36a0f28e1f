"""How much one node may use of something, over time. Pure: times are given, in seconds of any clock that only grows."""

from dataclasses import dataclass, field


@dataclass(slots=True)
class Allowance:
    """How much may happen at once, which grows back with time (a token bucket)."""

    burst: float
    per_s: float
    left: float = field(init=False)
    at_s: float = 0.0

    def __post_init__(self) -> None:
        self.left = self.burst

    def spend(self, now_s: float, amount: float = 1.0) -> bool:
        """Takes one, or `amount`; False: so much is not left."""
        self.left = min(self.burst, self.left + max(0.0, now_s - self.at_s) * self.per_s)
        self.at_s = now_s
        if self.left < amount:
            return False
        self.left -= amount
        return True

    def ready_s(self) -> float:
        """In how many seconds after the last `spend` the next one succeeds; 0: at once."""
        return max(0.0, (1 - self.left) / self.per_s)
