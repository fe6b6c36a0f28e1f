"""Wilson's bounds of a share: what few tries can say, and no more. Pure.

E. B. Wilson, Probable inference, the law of succession, and statistical inference, JASA 22 (1927), pages 209 to 212; without
correction for continuity.
"""

import math

Z = 1.959963984540054  # two-sided, 95 in 100


def bounds(hits: int, tries: int) -> tuple[float, float]:
    """Returns (lower, upper), each 0 to 1, between which the true share lies in 95 of 100 cases; of no tries (0, 1).

    >>> [round(bound, 4) for bound in bounds(3, 4)]
    [0.3006, 0.9544]
    """
    if tries <= 0:
        return 0.0, 1.0
    share, square = hits / tries, Z * Z / tries
    middle = share + square / 2
    half = Z * math.sqrt(share * (1 - share) / tries + square / (4 * tries))
    return max(0.0, (middle - half) / (1 + square)), min(1.0, (middle + half) / (1 + square))
