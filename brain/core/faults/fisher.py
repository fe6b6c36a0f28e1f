"""Fisher's exact test, one-sided. Pure: only numbers go in and come out."""

from math import exp, lgamma


def p_at_least(ill_with: int, with_it: int, ill_without: int, without: int) -> float:
    """How likely it is by chance that `ill_with` or more of the `with_it` nodes are ill, given how many are ill in all.

    The tail of the hypergeometric distribution: 0 to 1. Counts are not negative, and no more are ill than there are.
    """
    ill, nodes = ill_with + ill_without, with_it + without
    every = _log_choose(nodes, ill)
    most = min(ill, with_it)
    terms = (
        exp(_log_choose(with_it, k) + _log_choose(without, ill - k) - every)
        for k in range(ill_with, most + 1)
        if ill - k <= without
    )
    return min(1.0, sum(terms))


def _log_choose(n: int, k: int) -> float:
    return lgamma(n + 1) - lgamma(k + 1) - lgamma(n - k + 1)
