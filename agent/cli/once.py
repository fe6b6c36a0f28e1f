"""`gpuward-agent once`: every source and collector once, on this or a recorded machine."""

import asyncio
import json
from pathlib import Path
from typing import Any, TextIO

from agent.collectors.samples import Sample, Tick
from agent.config import AgentConfig
from agent.contract import kernel_text
from agent.contract.components import NODE
from agent.contract.inert import inert_json
from agent.contract.messages import Severity, UnsentEvent, clip
from agent.sources import sources
from agent.sources.base import SourceSetup
from agent.wiring import collectors_for

_FLUSH_S = 60.0  # longer than any collector holds a fact back


def main(config: AgentConfig, *, kmsg: Path | None, out: TextIO) -> int:
    """Prints one JSON line for each event. `kmsg`: a kernel log in any encoding, not the machine's own."""
    for unsent in asyncio.run(once(config, kmsg=kmsg)):
        out.write(inert_json(json.dumps(as_json(unsent), ensure_ascii=False)) + "\n")
    return 0


async def once(config: AgentConfig, *, kmsg: Path | None = None) -> list[UnsentEvent]:
    """The facts, in the order in which the sources emitted them. A source that fails is a fact too."""
    host = config.host()
    out: list[UnsentEvent] = []
    found = collectors_for(host, config)
    last_s = 0.0

    def emit(sample: Sample, recorded: bool = False) -> None:
        nonlocal last_s
        # What is recorded has no age: "now" is not known.
        now_s = sample.mono_s if recorded or not host.live else host.mono_s()
        last_s = max(last_s, now_s)
        for collector in found:
            if isinstance(sample, collector.wants):
                out.extend(collector.feed(sample, now_s))

    if kmsg is not None:
        with kmsg.open(encoding="utf-8", errors="replace", newline="\n") as lines:
            for _, line in kernel_text.records(lines):
                emit(line, recorded=True)
    for source in sources(SourceSetup(host=host, config=config)):
        if source.name == "kmsg" and kmsg is not None:
            continue
        try:
            await source.once(emit)
        except OSError as error:
            out.append(_failed(source.name, str(error)))
    emit(Tick(mono_s=last_s + _FLUSH_S), recorded=True)
    return out


def as_json(unsent: UnsentEvent) -> dict[str, Any]:
    """An event's keys as on the wire, without those that only sending gives it (id, node, at, boot)."""
    return {
        "kind": unsent.kind,
        "component": unsent.component,
        "severity": unsent.severity.value,
        "age_s": round(unsent.age_s, 3),
        "count": unsent.count,
        "data": dict(unsent.data),
        "evidence": unsent.evidence,
    }


def _failed(source: str, reason: str) -> UnsentEvent:
    return UnsentEvent(
        kind="agent.source_failed",
        component=NODE,
        severity=Severity.ERROR,
        data={"source": source, "reason": clip(reason)},
        evidence=clip(reason),
    )
