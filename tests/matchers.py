"""The matchers that there are here: that of this process, and the plain one, which may be the same."""

import pytest

from brain.core.pack.rulebook import MATCHER, PLAIN

MATCHERS = {matcher.name: matcher for matcher in (MATCHER, PLAIN)}
each_matcher = pytest.mark.parametrize("matcher", MATCHERS.values(), ids=list(MATCHERS))
