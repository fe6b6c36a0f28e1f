"""Kinds about the agent itself and its commands."""

from agent.contract.kinds.base import ERROR, INFO, WARNING, Kind, field

KINDS: tuple[Kind, ...] = (
    Kind(
        name="agent.started",
        component="node",
        severity=INFO,
        source="agent",
        summary="The agent started on this node.",
        fields=(
            field("version", "text", "agent version"),
            field("kernel", "text", "kernel release"),
            field("gpus", "int", "GPUs on the PCI bus"),
            field(
                "booted", "bool", "true: the machine was booted since the agent's last start", always=False
            ),
            field(
                "in_order",
                "bool",
                "true: before, the agent was stopped in order, as by a reboot or shutdown that somebody asked for; not killed, "
                "and its machine lost no power",
                always=False,
            ),
            field(
                "renamed",
                "bool",
                "true: the machine has another host name than when it joined as this node",
                always=False,
            ),
            field("host", "text", "its host name", always=False),
        ),
        example={"version": "0.1.0", "kernel": "6.1.0", "gpus": 8, "booted": False},
    ),
    Kind(
        name="agent.kmsg_overrun",
        component="node",
        severity=WARNING,
        source="kernel log",
        summary="The kernel overwrote log records before the agent could read them.",
        fields=(field("lost", "int", "records lost"),),
        example={"lost": 15904},
    ),
    Kind(
        name="agent.dropped",
        component="node",
        severity=WARNING,
        source="uplink",
        summary="Events were dropped because the spool was full (mildest and oldest first).",
        fields=(field("dropped", "int", "events dropped since the last report"),),
        example={"dropped": 120},
    ),
    Kind(
        name="agent.source_failed",
        component="node",
        severity=ERROR,
        source="agent",
        summary="A source could not be opened or broke; it is tried again with growing pauses.",
        fields=(field("source", "text", "its name"), field("reason", "text", "what went wrong")),
        example={
            "source": "kmsg",
            "reason": "Permission denied: run the agent as root or give it CAP_SYSLOG",
        },
    ),
    Kind(
        name="agent.sources_run",
        component="node",
        severity=INFO,
        source="agent",
        summary="All sources have run for a minute: told once after the agent's start, and after what had failed.",
        fields=(field("sources", "int", "how many"),),
        example={"sources": 12},
    ),
    Kind(
        name="agent.bad_command",
        component="node",
        severity=WARNING,
        source="commands",
        summary="A command was refused (signature, epoch, expiry, allow-list, parameters).",
        fields=(
            field("command", "text", "command id; empty when it could not be read"),
            field("why", "text", "the reason"),
        ),
        example={"command": "", "why": "signature does not fit"},
        no_rule="the refusal is also the result of its step, and the run goes on from there.",
    ),
    Kind(
        name="command.progress",
        component="node",
        severity=INFO,
        source="commands",
        summary="A command is still running; reported every 10 s.",
        fields=(
            field("command", "text", "command id"),
            field("elapsed_s", "float", "since it began, or since the agent's start", "s"),
            field("text", "text", "what it is doing; empty: not reported"),
        ),
        example={"command": "inc-7k2m.r1.s2.a1", "elapsed_s": 20.0, "text": "starting slurmd.service"},
        no_rule="it belongs to a step.",
    ),
    Kind(
        name="command.result",
        component="node",
        severity=INFO,
        source="commands",
        summary="How a command ended. Sent again when the brain repeats the command.",
        fields=(
            field("command", "text", "command id"),
            field("outcome", "text", "ok | failed | refused | unreachable | unknown"),
            field("why", "text", "what was done or what went wrong"),
            field("took_s", "float", "duration", "s"),
            field("evidence", "text", "name of the evidence bundle: `<node>/<command>`", always=False),
            field("evidence_bytes", "int", "its size", "bytes", always=False),
            field(
                "blind",
                "text",
                "agent.look: sources (as of kinds, comma separated) that could not look; left out when all of them did",
                always=False,
            ),
            field("figures", "text", "measured figures, as JSON (agent/contract/figures.py)", always=False),
            field("alike", "text", "equal on nodes whose figures may be compared", always=False),
            field("untested", "text", "what could not be tested, and why", always=False),
        ),
        example={
            "command": "inc-7k2m.r1.s1.a1",
            "outcome": "ok",
            "why": "nvidia-persistenced.service active for 2 s",
            "took_s": 2.3,
        },
        no_rule="it belongs to a step.",
    ),
)
