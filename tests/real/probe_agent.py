"""The agent's source and collector of probes inside a network namespace (`ip netns exec`): events and rounds as JSON lines.

python -m tests.real.probe_agent NODE HOSTS KEY INTERVAL_S
"""

import asyncio
import json
import sys

from agent.collectors.base import CollectorSetup
from agent.collectors.probes import ProbeCollector
from agent.collectors.samples import Sample
from agent.collectors.samples_node import ProbeRound
from agent.host import Host
from agent.sources.probes import ProbeSource, ProbeSourceOptions


async def main(node: str, hosts: str, key: str, interval_s: float) -> None:
    """Until it is killed."""
    host = Host()
    # A busy machine answers late, too: what the test delays is more than that.
    collector = ProbeCollector.of(CollectorSetup(values={"probe_slow_us": 15_000.0}))
    options = ProbeSourceOptions(probe_hosts=hosts, probe_key_file=key, probe_interval_s=interval_s)

    def emit(sample: Sample) -> None:
        if isinstance(sample, ProbeRound):
            answered = {one.peer: sorted(one.times_us) for one in sample.peers}
            print(json.dumps({"link": sample.link, "answered": answered}), flush=True)
        for event in collector.feed(sample, host.mono_s()):
            told = {"kind": event.kind, "component": event.component, "text": event.evidence, **event.data}
            print(json.dumps(told), flush=True)

    await ProbeSource(host, node, options, wait_s=interval_s / 2).run(emit)


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], sys.argv[2], sys.argv[3], float(sys.argv[4])))
