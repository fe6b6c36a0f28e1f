"""`gpuward-agent list`: what this agent can see, report and do."""

import json
from typing import Any, TextIO

from agent.collectors import every_collector
from agent.contract.actions import ACTIONS
from agent.contract.kinds import KINDS
from agent.sources import every_source


def main(*, as_json: bool, out: TextIO) -> int:
    """Prints the lists."""
    if as_json:
        out.write(json.dumps(everything(), ensure_ascii=False, indent=1) + "\n")
        return 0
    for title, rows in everything().items():
        out.write(f"{title}\n")
        width = max(len(row["name"]) for row in rows)
        for row in rows:
            out.write(f"  {row['name']:{width}}  {_summary(title, row)}\n")
        out.write("\n")
    return 0


def everything() -> dict[str, list[dict[str, Any]]]:
    """Collectors, sources, actions and kinds, each with what it needs."""
    return {
        "collectors": [
            {"name": one.name, "wants": [kind.__name__ for kind in one.wants], "kinds": list(one.kinds)}
            for one in every_collector()
        ],
        "sources": [{"name": one.name, "needs": one.needs} for one in every_source()],
        "actions": [
            {
                "name": spec.name,
                "summary": spec.summary,
                "disrupts": spec.disrupts.value,
                "repeat": spec.repeat.value,
                "timeout_s": spec.timeout_s,
                "needs": [right.value for right in spec.needs],
                "params": [
                    {"name": p.name, "type": p.type, "required": p.required, "summary": p.summary}
                    for p in spec.params
                ],
            }
            for spec in ACTIONS.values()
            if spec.where == "node"
        ],
        "kinds": [
            {
                "name": kind.name,
                "component": kind.component,
                "severity": kind.severity.value,
                "source": kind.source,
                "summary": kind.summary,
                "fields": [
                    {"name": f.name, "type": f.type, "unit": f.unit, "always": f.always, "summary": f.summary}
                    for f in kind.fields
                ],
            }
            for kind in KINDS.values()
        ],
    }


def _summary(title: str, row: dict[str, Any]) -> str:
    if title == "collectors":
        return f"{', '.join(row['wants'])} -> {', '.join(row['kinds'])}"
    if title == "sources":
        return str(row["needs"])
    if title == "actions":
        return f"disrupts {row['disrupts']}, repeat {row['repeat']}: {row['summary']}"
    return f"{row['component']}, {row['severity']}, from {row['source']}: {row['summary']}"
