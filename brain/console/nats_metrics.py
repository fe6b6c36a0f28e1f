"""What monitoring systems see of NATS, as far as a brain knows it: by its own connection, and for its own cell."""

from collections import Counter
from collections.abc import Callable, Mapping

from brain.console.brain_view import BrainView
from brain.console.metric import Metric, Samples
from brain.console.nats_view import NatsSeen, StoreSeen, StreamSeen

SERVERS = 16  # of NATS, with samples of their own
NAME_LENGTH = 64


def _nats(samples: Callable[[NatsSeen], Samples]) -> Callable[[BrainView], Samples]:
    """Of what the servers have said; none where they have not."""
    return lambda brain: samples(seen) if (seen := brain.nats_seen()) else []


def _stream(value: Callable[[StreamSeen], float | None], *, log: bool) -> Callable[[BrainView], Samples]:
    """Of each thing that is kept there, or (`log`) of the log alone, without a label."""
    return _nats(
        lambda seen: [
            (() if log else (what,), float(found))
            for what, one in seen.streams.items()
            if (found := value(one)) is not None and (what == "log" or not log)
        ]
    )


def _servers(counts: Mapping[str, int]) -> Samples:
    """Of so many servers at most; a name is what somebody has written into a server's configuration. Those that are the same as
    far as they are told count together: two samples of one name are no valid exposition.
    """
    told: Counter[str] = Counter()
    for name, count in sorted(counts.items()):
        told[name[:NAME_LENGTH]] += count
    return [((name,), count) for name, count in list(told.items())[:SERVERS]]


def _stores(value: Callable[[StoreSeen], float | None]) -> Callable[[BrainView], Samples]:
    return _nats(
        lambda seen: [
            ((store,), found) for store, one in seen.stores.items() if (found := value(one)) is not None
        ]
    )


NATS_METRICS: tuple[Metric, ...] = (
    Metric(
        name="gpuward_log_bytes",
        help="What the log takes on NATS; absent while that is not known.",
        samples=_stream(lambda one: one.bytes, log=True),
    ),
    Metric(
        name="gpuward_log_max_bytes",
        help="What it may take; beyond it the oldest inputs go.",
        samples=_stream(lambda one: one.max_bytes, log=True),
    ),
    Metric(
        name="gpuward_nats_server",
        help="1; the NATS server that this brain is connected to. Absent, as all of NATS, while nothing is known.",
        labels=("server", "version"),
        samples=_nats(lambda seen: [((seen.server[:NAME_LENGTH], seen.version), 1)]),
    ),
    Metric(
        name="gpuward_nats_rtt_seconds",
        help="How long that server took to answer.",
        samples=_nats(lambda seen: [((), seen.rtt_s)]),
    ),
    Metric(
        name="gpuward_nats_stream_bytes",
        help="What the brain keeps on NATS takes there: log, lease, state, evidence, and all lanes together.",
        labels=("stream",),
        samples=_stream(lambda one: one.bytes, log=False),
    ),
    Metric(
        name="gpuward_nats_stream_max_bytes",
        help="What it may take; absent where there is no limit.",
        labels=("stream",),
        samples=_stream(lambda one: one.max_bytes, log=False),
    ),
    Metric(
        name="gpuward_nats_stream_messages",
        help="Messages in it.",
        labels=("stream",),
        samples=_stream(lambda one: one.messages, log=False),
    ),
    Metric(
        name="gpuward_nats_copies_wanted",
        help="On how many servers all of it is to be: nats.replicas.",
        samples=_nats(lambda seen: [((), seen.wanted)]),
    ),
    Metric(
        name="gpuward_nats_copies",
        help="On how many it is to be by the servers' own configuration; of the lanes the fewest.",
        labels=("stream",),
        samples=_stream(lambda one: one.copies, log=False),
    ),
    Metric(
        name="gpuward_nats_copies_current",
        help="On how many all of it is now; of the lanes the fewest.",
        labels=("stream",),
        samples=_stream(lambda one: one.current, log=False),
    ),
    Metric(
        name="gpuward_nats_leaderless_streams",
        help="Streams of the cell that no server leads, or of which none says anything.",
        samples=_nats(lambda seen: [((), seen.leaderless)]),
    ),
    Metric(
        name="gpuward_nats_server_leads",
        help=f"Streams of the cell that each server leads; {SERVERS} servers at most.",
        labels=("server",),
        samples=_nats(lambda seen: _servers(seen.leads)),
    ),
    Metric(
        name="gpuward_nats_server_behind",
        help="Streams of the cell of which this server lacks something, or is away.",
        labels=("server",),
        samples=_nats(lambda seen: _servers(seen.behind)),
    ),
    Metric(
        name="gpuward_nats_account_bytes",
        help="What the brains' account takes of the servers' disk (`file`) and memory.",
        labels=("store",),
        samples=_stores(lambda one: one.bytes),
    ),
    Metric(
        name="gpuward_nats_account_max_bytes",
        help="What it may take; absent where the account has no limit.",
        labels=("store",),
        samples=_stores(lambda one: one.max_bytes),
    ),
)
