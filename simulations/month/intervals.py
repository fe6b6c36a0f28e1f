"""Means over seeds with 95 % intervals (Student's t), and of differences on the same seeds. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import fsum, sqrt
from statistics import NormalDist

# Two-sided 95 % quantiles of Student's t for 1 to 30 degrees of freedom; beyond, the normal one's expansion is exact to 0.001.
_T95 = (
    12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160, 2.145, 2.131,
    2.120, 2.110, 2.101, 2.093, 2.086, 2.080, 2.074, 2.069, 2.064, 2.060, 2.056, 2.052, 2.048, 2.045, 2.042,
)  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimate:
    """A mean, and where it lies with 95 % confidence."""

    mean: float
    low: float
    high: float
    # How many seeds have a value.
    seeds: int

    @property
    def sure(self) -> bool:
        """Whether it is not zero."""
        return self.low > 0 or self.high < 0


def t95(freedom: int) -> float:
    """The two-sided 95 % quantile of Student's t; `freedom`: at least 1."""
    if freedom <= len(_T95):
        return _T95[freedom - 1]
    z = NormalDist().inv_cdf(0.975)
    return z + (z**3 + z) / (4 * freedom) + (5 * z**5 + 16 * z**3 + 3 * z) / (96 * freedom**2)


def estimate(values: Sequence[float | None]) -> Estimate | None:
    """Of one value for each seed; those without one do not count. None: fewer than two have one."""
    known = [value for value in values if value is not None]
    if len(known) < 2:
        return None
    mean = fsum(known) / len(known)
    spread = sqrt(fsum((value - mean) ** 2 for value in known) / (len(known) - 1))
    half = t95(len(known) - 1) * spread / sqrt(len(known))
    return Estimate(mean=mean, low=mean - half, high=mean + half, seeds=len(known))


def difference(values: Sequence[float | None], before: Sequence[float | None]) -> Estimate | None:
    """How much more, seed by seed: what both have in common, the faults, is left out."""
    pairs = zip(values, before, strict=True)
    return estimate([None if one is None or other is None else one - other for one, other in pairs])
