"""What monitoring sees of NATS, whatever somebody has written into the configurations of its servers."""

from types import SimpleNamespace

from prometheus_client import CollectorRegistry
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.openmetrics import exposition, parser

from brain.console.nats_metrics import NATS_METRICS, SERVERS
from brain.console.nats_view import NatsSeen

NAMES = [
    *(f"{'long.' * 20}nats-{number}" for number in range(3)),
    'a"} 1\n# EOF\nup{x="',
    "back\\slash",
    "",
    *(f"s{number}" for number in range(1000)),
]


class OfNats:
    """The metrics of one look at it, as prometheus-client wants them."""

    def __init__(self, seen: NatsSeen) -> None:
        self._brain = SimpleNamespace(nats_seen=lambda: seen)

    def collect(self) -> list[GaugeMetricFamily]:
        """As prometheus-client has it."""
        found = []
        for one in NATS_METRICS:
            family = GaugeMetricFamily(one.name, one.help, labels=one.labels)
            for labels, value in one.samples(self._brain):
                family.add_metric(labels, value)
            found.append(family)
        return found


def test_names_of_servers_leave_the_exposition_valid_and_bounded() -> None:
    """Each sample once, by the strict parser's own reading, however many servers there are and whatever their names."""
    counts = dict.fromkeys(NAMES, 1)
    seen = NatsSeen(
        server=NAMES[3],
        version="2.12.0",
        rtt_s=0.1,
        wanted=3,
        streams={},
        leaderless=0,
        leads=counts,
        behind=counts,
        stores={},
    )
    registry = CollectorRegistry()
    registry.register(OfNats(seen))
    text = exposition.generate_latest(registry).decode()  # type: ignore[no-untyped-call]  # the library has no types
    samples = [
        (sample.name, *sorted(sample.labels.items()))
        for family in parser.text_string_to_metric_families(text)  # type: ignore[no-untyped-call]
        for sample in family.samples
    ]
    assert len(samples) == len(set(samples))
    assert sum(name == "gpuward_nats_server_leads" for name, *_ in samples) == SERVERS
    assert "up" not in {name for name, *_ in samples}
