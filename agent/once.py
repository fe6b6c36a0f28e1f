"""`gpuward-agent once`: every source and collector once, on this or a recorded machine."""

import asyncio
import json
from pathlib import Path
from typing import Any, TextIO

from agent.collectors.readings import Reading, Tick
from agent.config import AgentConfig
from agent.contract import kernel_text
from agent.contract.components import NODE
from agent.contract.messages import Draft, Severity, clip
from agent.sources import sources
from agent.wiring import collectors_for

_FLUSH_S = 60.0  # longer than any collector holds a fact back


def main(config: AgentConfig, *, kmsg: Path | None, out: TextIO) -> int:
    """Prints one JSON line for each event. `kmsg`: a kernel log in any encoding, not the machine's own."""
    for draft in asyncio.run(once(config, kmsg=kmsg)):
        out.write(json.dumps(as_json(draft), ensure_ascii=False) + "\n")
    return 0


async def once(config: AgentConfig, *, kmsg: Path | None = None) -> list[Draft]:
    """The facts, in the order in which the sources said them. A source that fails is a fact too."""
    host = config.host()
    out: list[Draft] = []
    readers = collectors_for(host, config)
    last_s = 0.0

    def emit(reading: Reading, recorded: bool = False) -> None:
        nonlocal last_s
        # What is recorded has no age: nobody knows when "now" is.
        now_s = reading.mono_s if recorded or not host.live else host.mono_s()
        last_s = max(last_s, now_s)
        for reader in readers:
            if isinstance(reading, reader.wants):
                out.extend(reader.feed(reading, now_s))

    if kmsg is not None:
        with kmsg.open(encoding="utf-8", errors="replace", newline="\n") as lines:
            for _, line in kernel_text.records(lines):
                emit(line, recorded=True)
    for source in sources(host, config):
        if source.name == "kmsg" and kmsg is not None:
            continue
        try:
            await source.once(emit)
        except OSError as error:
            out.append(_failed(source.name, str(error)))
    emit(Tick(mono_s=last_s + _FLUSH_S), recorded=True)
    return out


def as_json(draft: Draft) -> dict[str, Any]:
    """An event's keys as on the wire, without those that only sending gives it (id, node, at, boot)."""
    return {
        "kind": draft.kind,
        "component": draft.component,
        "severity": draft.severity.value,
        "age_s": round(draft.age_s, 3),
        "count": draft.count,
        "data": dict(draft.data),
        "evidence": draft.evidence,
    }


def _failed(source: str, reason: str) -> Draft:
    return Draft(
        kind="agent.source_failed",
        component=NODE,
        severity=Severity.ERROR,
        data={"source": source, "reason": clip(reason)},
        evidence=clip(reason),
    )
