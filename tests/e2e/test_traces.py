"""The way of a fault, from a real kernel line to a page, as one OpenTelemetry trace, over a brain that is killed on the way."""

import json
from pathlib import Path

import pytest

from brain.traces.ids import trace_id
from tests.brain.traces.kit import look_over, outline, seen
from tests.e2e.stack import Stack
from tests.e2e.test_spine import address
from tests.real.collector_kit import Sink, sink
from tests.real.kernel_log import HEARD, write_kernel_line

pytestmark = [pytest.mark.root, pytest.mark.slow, pytest.mark.component("nats-server")]


def started(whole: Stack, collector: Sink) -> None:
    """With a standby; both would tell the collector, and append to one file."""
    whole.nats.start()
    whole.start_receiver()
    path = whole.write_brain_config(
        f'[traces]\notlp_url = "{collector.url}/v1/traces"\nfile = "{whole.folder}/traces.jsonl"\n'
    )
    path.write_text(f'log_format = "json"\n{path.read_text()}')
    whole.start_brain()
    whole.write_agent_config(HEARD)
    whole.start_agent()


def test_a_kernel_line_becomes_one_trace_whichever_brain_leads(tmp_path: Path) -> None:
    """The line is the first span; the page, `explain` and the log name the trace; after kill -9 another brain completes it."""
    whole = Stack(tmp_path)
    with sink() as collector:
        try:
            started(whole, collector)
            where = address()
            line = f"NVRM: Xid (PCI:{where}): 79, GPU has fallen off the bus."
            write_kernel_line(line)
            (incident,) = whole.wait_for(
                lambda: [i for i in whole.incidents("gpu-lost") if where in i["scope"] and i["runs"]],
                "an incident",
            )
            trace = trace_id(incident["id"])

            # Who is told, and who asks, gets the id of the trace.
            (page, *_) = whole.wait_for(
                lambda: [page for page in whole.pages() if page["dedup_key"] == incident["id"]], "a page"
            )
            assert page["trace_id"] == trace
            assert json.loads(whole.gpuward("explain", incident["id"], "--json"))["trace_id"] == trace
            assert trace in whole.gpuward("explain", incident["id"])
            logged = [json.loads(text) for text in whole.log("brain").splitlines() if text.startswith("{")]
            assert [
                one
                for one in logged
                if one.get("trace_id") == trace and one.get("incident") == incident["id"]
            ]

            # What has ended is told while the rest goes on.
            wanted = {"fact gpu.xid", "symptom gpu_off_bus", "decide", "hold-off", "page open"}
            whole.wait_for(
                lambda: {one.name for one in collector.of(trace)} >= wanted, f"{wanted} of {collector.spans}"
            )
            before = collector.of(trace)
            assert not [one for one in before if not one.parent], "the incident goes on"
            (fact,) = (one for one in before if one.name == "fact gpu.xid")
            assert fact.attributes["gpuward.event.text"] == line
            assert fact.attributes["host.name"] == whole.node
            assert (
                0 <= fact.end - fact.start == pytest.approx(fact.attributes["gpuward.event.age_s"], abs=0.01)
            )
            (told,) = (one for one in before if one.name == "page open")
            assert fact.end <= told.start < told.end
            assert told.attributes["gpuward.page.channel"] == "hook"

            # The leader dies; the other brain has read the same log.
            url = whole.start_standby()
            collector.spans.clear()
            whole.kill("brain")
            whole.wait_for(lambda: whole.get("/api/v1/status", url).get("leads"), "the standby leads")
            whole.gpuward("--url", url, "close", incident["id"], "--why", "the GPU was replaced")
            whole.wait_for(
                lambda: [one for one in collector.of(trace) if not one.parent], "the trace is complete"
            )
            after = collector.of(trace)
            root = look_over(after)
            by_id = {one.id: one for one in after}
            for span in before:
                same = by_id[span.id]
                assert (same.name, same.parent, same.start, same.end) == (
                    span.name,
                    span.parent,
                    span.start,
                    span.end,
                )
                assert same.resource["service.instance.id"] == "standby"
            assert root.start == fact.start
            assert root.attributes["gpuward.incident.state"] == "closed"
            assert root.attributes["error.type"] == "needs_human"
            print("\n".join(outline(after)))

            # The file holds the same, from both.
            lines = (tmp_path / "traces.jsonl").read_bytes().splitlines()
            in_file = {one.id: one for text in lines for one in seen(text) if one.trace == trace}
            assert set(in_file) == set(by_id)
            look_over(list(in_file.values()))
        finally:
            whole.end()
