"""durable_rules fails in the middle of an evaluation: the next one is right all the same."""

from typing import Any

import pytest

from tests.brain.test_rulebook import rule

pytestmark = pytest.mark.optional("durable_rules, which is not for Python 3.13 and newer")


@pytest.fixture
def matcher() -> Any:
    """The module that drives it."""
    return pytest.importorskip("brain.core.pack.matcher_durable", exc_type=ImportError)


class _Flaky:
    """The C module, failing once after `calls` evaluations."""

    def __init__(self, real: Any, calls: int, times: int = 1) -> None:
        self._real, self._calls, self._times = real, calls, times
        self.error = real.error

    def __getattr__(self, name: str) -> Any:
        return getattr(self._real, name)

    def assert_fact(self, handle: int, fact: str) -> Any:
        self._calls -= '"_e"' in fact
        if self._calls < 0 < self._times and '"_e"' in fact:
            self._times -= 1
            # The fact stays in the matcher: the handle is not safe to use
            self._real.assert_fact(handle, fact)
            raise self._real.error("out of luck")
        return self._real.assert_fact(handle, fact)


def test_a_failing_matcher_is_rebuilt(matcher: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """After an error a new handle matches the same situation, with the right result."""
    monkeypatch.setattr(matcher, "engine", _Flaky(matcher.engine, calls=3))
    book = matcher.DurableRulebook([rule("r", {"symptom": "u"})])
    assert [book.match("gpu", {"s_u": 1}) for _ in range(5)] == [["r"]] * 5
    book.close()


def test_an_interrupted_evaluation_does_no_harm(matcher: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """A signal between two calls of the C module leaves a fact behind; the next evaluation uses a new handle."""
    book = matcher.DurableRulebook([rule("r", {"symptom": "u"})])
    real = matcher._evaluate

    def interrupted(handle: int, fact: str) -> list[str]:
        matcher.engine.assert_fact(handle, fact)
        raise KeyboardInterrupt

    monkeypatch.setattr(matcher, "_evaluate", interrupted)
    with pytest.raises(KeyboardInterrupt):
        book.match("gpu", {"s_u": 1})
    monkeypatch.setattr(matcher, "_evaluate", real)
    assert book.match("gpu", {"s_u": 1}) == ["r"]
    book.close()
