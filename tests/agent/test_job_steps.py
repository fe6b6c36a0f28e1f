"""How long a job's steps take, of what its log says."""

import pytest

from agent.collectors.joblog import JobLogCollector, JobLogOptions
from agent.collectors.samples import JobLine
from agent.contract import kinds

MEGATRON = " iteration 120/ 5000 | consumed samples: 61440 | elapsed time per iteration (ms): {} | learning rate: 1.5E-04"
STEPS = JobLogOptions(job_step_text="elapsed time per iteration (ms)")


def steps_of(*lines: tuple[float, str], options: JobLogOptions = STEPS) -> list[tuple[float, float]]:
    """(second, median) of each event."""
    collector, found = JobLogCollector(options), []
    for at_s, text in lines:
        sample = JobLine(text=text, job="4711", file="/var/log/jobs/4711.log", mono_s=at_s)
        for unsent in collector.feed(sample, at_s):
            assert (kinds.check(unsent).component, unsent.kind) == ("job/4711", "job.steps")
            found.append((at_s, float(str(unsent.data["step_s"]))))
    return found


def test_how_long_steps_take_is_told_when_it_has_moved() -> None:
    """The median of a minute, after the first one, and again when it is 5 % longer or shorter, or after ten minutes."""
    even = [(1.0 + 5 * n, MEGATRON.format(5200.1 + n % 2)) for n in range(20)]
    slow = [(101.0 + 7 * n, MEGATRON.format(7150.0)) for n in range(120)]
    assert steps_of(*even, *slow) == [(61.0, 5.2001), (185.0, 7.15), (815.0, 7.15)]


def test_step_times_are_read_only_where_a_site_says_what_they_look_like() -> None:
    """Nothing else is taken for one, and a job whose steps take long is told when there are three of them."""
    lines = [(10.0 * n, MEGATRON.format(5200)) for n in range(20)]
    assert steps_of(*lines, options=JobLogOptions()) == []
    assert STEPS.markers[-1] == "elapsed time per iteration (ms)"
    assert steps_of(*((10.0 * n, "elapsed time per iteration (ms): soon") for n in range(20))) == []
    assert steps_of(*((90.0 * n, MEGATRON.format(90_000 + n)) for n in range(4))) == [(180.0, 90.001)]


@pytest.mark.parametrize(
    ("words", "line", "step_s"),
    [
        ("step time", "step time: 5.25 s, loss 2.1", 5.25),
        ("step time", "step time=5250 ms", 5.25),
        ("step_ms", "step_ms 5250", 5250.0),  # words of which ms is a part say no unit
        ("iter (ms)", "iter (ms)  5250.0", 5.25),
    ],
)
def test_the_unit_of_a_step(words: str, line: str, step_s: float) -> None:
    """Seconds, unless the words or what follows the number say ms."""
    lines = [(30.0 * n, line) for n in range(3)]
    assert steps_of(*lines, options=JobLogOptions(job_step_text=words)) == [(60.0, step_s)]
