"""How much of one node's events goes onto the log. Pure: times are given, in seconds of any clock that only grows.

What is told, and two limits. Told is who offers more, for some seconds, than any fault does, however fast the brain takes it;
what an agent kept while it was not connected does not count. The pace: above PACE_PER_S a node's events wait, in its own
lane and then in its own spool; nothing is lost, and nobody else waits. The volume: what a node may add to the log beyond
what faults ever gave (docs/decisions/0027). Above it an event is left out, and acknowledged, so that what comes behind it
gets its turn: the mild ones first, the worst last.
"""

from agent.contract.messages import Event, Severity
from brain.allowance import Allowance

FAULTS_BURST, FAULTS_PER_S = 500.0, 50.0  # bursts of one source are folded by the agent: 23 events per second
KEPT_S = 30.0  # an event that is older when it is offered was kept
PACE_PER_S = 1000.0
PACE_BURST = 2000.0
# Events that a node may add at once, and how many more per second afterwards.
MILD_BURST, MILD_PER_S = 20_000.0, 2.0
WORST_BURST, WORST_PER_S = 5_000.0, 1.0
# The same in bytes: in the 30 days that the default log of 8 GiB keeps, a liar adds 1 GiB; eight of them fill it.
MILD_BURST_BYTES, MILD_BYTES_PER_S = 24.0 * 1024**2, 256.0
WORST_BURST_BYTES, WORST_BYTES_PER_S = 8.0 * 1024**2, 128.0
BESIDE_BODY = 300  # bytes on the log beside an event's body: subject, headers, the server's record
_WORST = frozenset((Severity.ERROR, Severity.FATAL, Severity.UNKNOWN))


class NodeQuota:
    """What one node has used of its limits."""

    def __init__(self) -> None:
        self.pace = Allowance(PACE_BURST, PACE_PER_S)
        self._faults = Allowance(FAULTS_BURST, FAULTS_PER_S)
        self._mild = Allowance(MILD_BURST, MILD_PER_S), Allowance(MILD_BURST_BYTES, MILD_BYTES_PER_S)
        self._worst = Allowance(WORST_BURST, WORST_PER_S), Allowance(WORST_BURST_BYTES, WORST_BYTES_PER_S)

    def ordinary(self, event: Event, now_s: float) -> bool:
        """Could a fault give so many events? False: somebody is noisy."""
        return event.age_s > KEPT_S or self._faults.spend(now_s)

    def takes(self, event: Event, size: int, now_s: float) -> bool:
        """Does this event of `size` bytes go onto the log? False: it is left out."""
        worst = event.severity in _WORST or event.kind.startswith("command.")
        events, volume = self._worst if worst else self._mild
        return events.spend(now_s) and volume.spend(now_s, size)
