"""Kinds of facts that the brain tells, or UFM through it. Rules name them like the agents' kinds; no node may say them."""

from agent.contract.kinds import Field, Kind
from agent.contract.messages import Scalar, Severity
from brain.core.pack import bmc_kinds, scheduler_kinds, ufm_kinds

NODE_UNREACHABLE = "node.unreachable"
NODE_RETURNED = "node.returned"
CONTRACT_BROKEN = "node.contract_broken"
NODE_NOISY = "node.noisy"
NODE_CROWDED = "node.crowded"
FOREIGN_RESULT = "node.foreign_result"
FOREIGN_WORD = "node.foreign_word"
TWO_AGENTS = "node.two_agents"
NODE_CONDITION = "node.condition"
ALERT_FIRING = "alert.firing"
FLEET_RELEASE = "fleet.release"
NODE_LEMON = "node.lemon"
FLEET_RACK = "fleet.rack"
FLEET_JOB = "fleet.job"
FLEET_SPREE = "fleet.spree"
FLEET_PATH = "fleet.path"
GPU_STRAGGLER = "gpu.straggler"
NODE_STRAGGLER = "node.straggler"
# What the brain finds in figures that nodes tell until they move.
COMPARED = (GPU_STRAGGLER, NODE_STRAGGLER)

_SLOW = (
    Field(name="active", type="bool", summary="false: it is as its peers are, or the job is over"),
    Field(name="job", type="text", summary="which"),
    Field(name="what", type="text", always=False, summary="what is low: clock | waits (utilisation)"),
    Field(
        name="value",
        type="float",
        always=False,
        summary="SM clock in MHz, or utilisation in %, of the slowest",
    ),
    Field(name="median", type="float", always=False, summary="the same of all GPUs of the job and model"),
    Field(name="limit", type="float", always=False, summary="below which it counts"),
    Field(name="peers", type="int", always=False, summary="other nodes that it is compared with"),
    Field(
        name="from_start",
        type="bool",
        always=False,
        summary="it was never as its peers in this job, so it may have other work by design",
    ),
)
_SLOWER: dict[str, Scalar] = {
    "active": True, "job": "4711", "what": "clock", "value": 1410.0, "median": 1980.0, "limit": 1881.0, "peers": 63,
    "from_start": False,
}  # fmt: skip

KINDS: dict[str, Kind] = {
    kind.name: kind
    for kind in (
        *bmc_kinds.KINDS,
        *scheduler_kinds.KINDS,
        Kind(
            name=NODE_UNREACHABLE,
            component="node",
            severity=Severity.ERROR,
            source="brain",
            summary="A node's agent has sent no beat for a while.",
            fields=(Field(name="silent_s", type="float", summary="since its last beat", unit="s"),),
            example={"silent_s": 16.0},
        ),
        Kind(
            name=NODE_RETURNED,
            component="node",
            severity=Severity.INFO,
            source="brain",
            summary="A silent node is heard again.",
            example={},
        ),
        Kind(
            name=NODE_CONDITION,
            component="node",
            severity=Severity.ERROR,
            source="Kubernetes",
            summary="Conditions of the Node object that another watcher has set, of those that the site has named, have changed.",
            fields=(
                Field(name="active", type="bool", summary="false: none of them is True any more"),
                Field(name="conditions", type="text", summary="those that are True"),
                Field(name="text", type="text", summary="each with the reason and message of who set it"),
            ),
            example={
                "active": True,
                "conditions": "KernelDeadlock",
                "text": "KernelDeadlock: DockerHung: task docker:7 blocked for more than 300 seconds.",
            },
        ),
        Kind(
            name=CONTRACT_BROKEN,
            component="node",
            severity=Severity.WARNING,
            source="brain",
            summary="A node published something that this brain cannot read: version skew or damage.",
            fields=(Field(name="why", type="text", summary="what does not fit"),),
            example={"why": "event has version '2', this brain reads 1: update the older side"},
        ),
        Kind(
            name=NODE_NOISY,
            component="node",
            severity=Severity.WARNING,
            source="brain",
            summary="A node says more than its limits allow, or what is not its to say: it is slowed, or messages are left out.",
            fields=(
                Field(
                    name="active", type="bool", summary="false: it has been within its limits for a minute"
                ),
                Field(
                    name="left_out",
                    type="int",
                    summary="events left out since the last report; 0: it was only slowed, or refused",
                ),
                Field(
                    name="refused",
                    type="int",
                    always=False,
                    summary="messages and subscriptions that the embedded NATS server refused it since the last report",
                ),
            ),
            example={"active": True, "left_out": 1200, "refused": 0},
        ),
        Kind(
            name=NODE_CROWDED,
            component="node",
            severity=Severity.WARNING,
            source="brain",
            summary="So many faults of a node's parts are open that further ones are left out.",
            fields=(
                Field(
                    name="symptoms", type="int", summary="symptoms of its parts, active or on the way to it"
                ),
                Field(name="incidents", type="int", summary="its incidents that are not over"),
            ),
            example={"symptoms": 200, "incidents": 140},
        ),
        Kind(
            name=FOREIGN_RESULT,
            component="node",
            severity=Severity.ERROR,
            source="brain",
            summary="A node reported the result of a step that was not sent to it. The result did not count.",
            fields=(Field(name="command", type="text", summary="the step's id"),),
            example={"command": "inc-7k2m.r1.s1.a1"},
        ),
        Kind(
            name=FOREIGN_WORD,
            component="node",
            severity=Severity.ERROR,
            source="brain",
            summary="A node reported a kind of fact that only the brain or UFM tells. It did not count.",
            fields=(Field(name="word", type="text", summary="the kind"),),
            example={"word": "ufm.sm_changed"},
        ),
        Kind(
            name=TWO_AGENTS,
            component="node",
            severity=Severity.ERROR,
            source="brain",
            summary="Beats of two runs of an agent come in turn under one node's name: one did not follow the other.",
            fields=(
                Field(name="active", type="bool", summary="false: for a minute only one has been heard"),
                Field(name="sessions", type="text", summary="both; each agent logs its own at its start"),
                Field(name="boots", type="int", summary="2: two machines; 1: two agents on one machine"),
            ),
            example={"active": True, "sessions": "5f0c2a91be77, 93d1c04e8a26", "boots": 2},
        ),
        *ufm_kinds.KINDS,
        Kind(
            name=ALERT_FIRING,
            component="node",
            severity=Severity.WARNING,
            source="Alertmanager",
            summary="An alert of the site's Alertmanager about a node; severity info when it is over. Told again hourly at most.",
            fields=(
                Field(name="alert", type="text", summary="its name (the label alertname)"),
                Field(name="firing", type="bool", summary="false: it is over"),
                Field(name="level", type="text", summary="its label severity; empty: it has none"),
                Field(name="labels", type="text", summary="all labels: name=value, sorted, by commas apart"),
                Field(name="text", type="text", summary="its annotation summary, or else description"),
            ),
            example={
                "alert": "NodeFilesystemAlmostFull",
                "firing": True,
                "level": "critical",
                "labels": "alertname=NodeFilesystemAlmostFull, instance=n1:9100, severity=critical",
                "text": "2 % is left on /scratch",
            },
            no_rule="what a site's alerts mean is the site's to say: docs/examples/rules/alertmanager.yaml",
        ),
        Kind(
            name=NODE_LEMON,
            component="node",
            severity=Severity.ERROR,
            source="brain",
            summary="A node needed so many remedies on different days of the last 28 that it is hardly chance.",
            fields=(
                Field(name="remedies", type="int", summary="days on which it needed one"),
                Field(name="causes", type="text", summary="for what, as in 3 × gpu-lost, nic-broken"),
                Field(name="others_ill", type="int", summary="other nodes that needed any"),
                Field(name="others", type="int", summary="other nodes"),
            ),
            example={
                "remedies": 5,
                "causes": "3 × gpu-lost, nic-broken, gpu-fatal-xid",
                "others_ill": 4,
                "others": 127,
            },
        ),
        Kind(
            name=GPU_STRAGGLER,
            component="gpu",
            severity=Severity.WARNING,
            source="brain",
            summary="A GPU is far slower than the others of its job and model, or stands idle while they compute.",
            fields=_SLOW,
            example=_SLOWER,
        ),
        Kind(
            name=NODE_STRAGGLER,
            component="node",
            severity=Severity.WARNING,
            source="brain",
            summary="Half of a node's GPUs or more are so slow: it is the node.",
            fields=_SLOW,
            example=_SLOWER,
        ),
        Kind(
            name=FLEET_PATH,
            component="link",
            severity=Severity.WARNING,
            source="brain",
            summary="Where bad paths of the data network have their fault, by what the nodes at both ends tell (probe.loss, "
            "probe.slow).",
            fields=(
                Field(name="what", type="text", summary="loss | slow"),
                Field(
                    name="place",
                    type="text",
                    summary="link (this interface: nearly all of its peers show it) | across (all behind other leaf switches, "
                    "none of its own) | path (only some, and their own nodes do not explain it) | none (over, or explained)",
                ),
                Field(name="peers", type="text", summary="the peers that show it, comma separated"),
                Field(name="near", type="int", summary="peers of its own leaf switch that it probes"),
                Field(name="far", type="int", summary="peers behind others that it probes"),
                Field(
                    name="lost_percent",
                    type="float",
                    summary="of the worst path that answers",
                    unit="%",
                    always=False,
                ),
                Field(
                    name="median_us",
                    type="float",
                    summary="median round trip of the slowest",
                    unit="µs",
                    always=False,
                ),
                Field(
                    name="usual_us",
                    type="float",
                    summary="what was usual on that path",
                    unit="µs",
                    always=False,
                ),
                Field(
                    name="p99_us",
                    type="float",
                    summary="99 of 100 of its packets were faster",
                    unit="µs",
                    always=False,
                ),
            ),
            example={
                "what": "loss",
                "place": "link",
                "peers": "n2, n3",
                "near": 1,
                "far": 1,
                "lost_percent": 12.7,
            },
        ),
        Kind(
            name=FLEET_RACK,
            component="node",
            severity=Severity.ERROR,
            source="brain",
            summary="So many nodes of one rack needed one remedy within 28 days, and so few others, that it is hardly chance.",
            fields=(
                Field(name="cause", type="text", summary="for what"),
                Field(name="nodes", type="int", summary="nodes of the rack that did, on different days"),
                Field(name="of", type="int", summary="nodes of the rack"),
                Field(name="others", type="int", summary="nodes elsewhere that did"),
                Field(name="of_others", type="int", summary="nodes elsewhere"),
                Field(
                    name="p",
                    type="float",
                    summary="Fisher's exact test, one-sided: how likely that is by chance",
                ),
            ),
            example={"cause": "gpu-lost", "nodes": 5, "of": 16, "others": 2, "of_others": 240, "p": 9.7e-06},
        ),
        Kind(
            name=FLEET_JOB,
            component="job",
            severity=Severity.ERROR,
            source="brain",
            summary="One fault was treated on several nodes within a day, one job ran on each of them, and the next one waits.",
            fields=(
                Field(name="cause", type="text", summary="the fault"),
                Field(name="job", type="text", summary="as the scheduler names it"),
                Field(name="nodes", type="int", summary="nodes that had it, the one that waits among them"),
            ),
            example={"cause": "gpu-lost", "job": "666", "nodes": 6},
        ),
        Kind(
            name=FLEET_SPREE,
            component="node",
            severity=Severity.ERROR,
            source="brain",
            summary="One fault came to so many nodes or places, one after the other, that the next ones wait for people.",
            fields=(
                Field(name="active", type="bool", summary="false: no node has the fault any more"),
                Field(name="cause", type="text", summary="the fault"),
                Field(name="nodes", type="int", summary="nodes that had it"),
                Field(name="waiting", type="int", summary="of these, nodes where nothing more is done"),
            ),
            example={"active": True, "cause": "gpu-lost", "nodes": 11, "waiting": 6},
        ),
        Kind(
            name=FLEET_RELEASE,
            component="release",
            severity=Severity.ERROR,
            source="brain",
            summary="One symptom on so many nodes that share a version, and on so few others, that it is hardly chance.",
            fields=(
                Field(name="active", type="bool", summary="false: no node has this version any more"),
                Field(
                    name="symptom",
                    type="text",
                    summary="which; of an XID with its code, as in gpu_fatal_xid/119",
                ),
                Field(name="trait", type="text", summary="the field of node.inventory that the nodes share"),
                Field(name="version", type="text", summary="its value"),
                Field(name="nodes", type="int", summary="nodes with it that fell ill, apart from each other"),
                Field(name="of", type="int", summary="nodes with it"),
                Field(name="others", type="int", summary="nodes with other versions that fell ill"),
                Field(name="of_others", type="int", summary="nodes with other versions"),
                Field(
                    name="p",
                    type="float",
                    summary="Fisher's exact test, one-sided: how likely that is by chance",
                ),
            ),
            example={
                "active": True,
                "symptom": "gpu_fatal_xid/119",
                "trait": "driver",
                "version": "580.82.07",
                "nodes": 7,
                "of": 40,
                "others": 0,
                "of_others": 160,
                "p": 8e-06,
            },
        ),
    )
}
