"""Kinds about networks besides errors and states: rates, congestion, bonds, interface counters."""

from agent.contract.kinds.base import Field, Kind
from agent.contract.messages import Severity

_PROBED = (
    Field(name="active", type="bool", summary="false: all paths of the interface are well again"),
    Field(name="near", type="int", summary="peers of the same leaf switch that it probes"),
    Field(name="far", type="int", summary="peers behind other leaf switches that it probes"),
    Field(
        name="near_ill", type="text", summary="those of the same leaf switch that show it, comma separated"
    ),
    Field(name="far_ill", type="text", summary="those behind others that show it, comma separated"),
)
_LAID = "each node knows one end of a path: the brain lays both beside each other, and tells fleet.path."
_ON_NEWS = "when it changes which, and every ten minutes while there are any. Only with `probe_hosts`."

KINDS: tuple[Kind, ...] = (
    Kind(
        name="ib.degraded",
        component="port",
        severity=Severity.WARNING,
        source="/sys/class/infiniband",
        summary="A port is slower, narrower or in a lower state than configured or than its peers; severity info when over.",
        fields=(
            Field(name="what", type="text", summary="rate | width | state"),
            Field(name="degraded", type="bool", summary="false: it is as expected again"),
            Field(name="value", type="text", summary="what it is, e.g. 200 (Gb/s), 1X, DOWN"),
            Field(name="expected", type="text", summary="what is expected, in the same form"),
            Field(
                name="by",
                type="text",
                summary="config | peers (similar cards of this node) | before (what it was)",
            ),
        ),
        example={"what": "rate", "degraded": True, "value": "200", "expected": "400", "by": "peers"},
    ),
    Kind(
        name="ib.sm_sl",
        component="port",
        severity=Severity.INFO,
        source="/sys/class/infiniband",
        summary="The service level to the subnet manager changed.",
        fields=(
            Field(name="sm_sl", type="int", summary="service level now"),
            Field(name="before", type="int", summary="service level before"),
        ),
        example={"sm_sl": 2, "before": 0},
        no_rule="a change that a subnet manager makes on purpose; it is evidence of sm-failover.",
    ),
    Kind(
        name="ib.congestion",
        component="port",
        severity=Severity.INFO,
        source="/sys/class/infiniband",
        summary="A congestion counter (CNP, ECN, waiting) grew faster than `congestion_per_s` over a minute. By itself no error.",
        fields=(
            Field(name="counter", type="text", summary="file name, e.g. np_cnp_sent"),
            Field(name="delta", type="int", summary="growth"),
            Field(name="per_s", type="float", summary="growth per second", unit="1/s"),
            Field(name="interval_s", type="float", summary="time between the readings", unit="s"),
        ),
        example={"counter": "rp_cnp_handled", "delta": 300000, "per_s": 5000.0, "interval_s": 60.0},
    ),
    Kind(
        name="link.errors",
        component="link",
        severity=Severity.WARNING,
        source="ethtool counters",
        summary="A counter of lost or damaged packets, or of a pause storm, has grown since the last reading.",
        fields=(
            Field(name="counter", type="text", summary="the driver's name, e.g. rx_prio3_discards"),
            Field(name="delta", type="int", summary="growth"),
            Field(name="value", type="int", summary="value now"),
            Field(name="interval_s", type="float", summary="time between the readings", unit="s"),
            Field(name="priority", type="int", summary="0 to 7, that the counter is about", always=False),
            Field(
                name="lossless",
                type="bool",
                summary="that priority has flow control (PFC); where the driver does not tell: it was paused before",
                always=False,
            ),
        ),
        example={"counter": "rx_prio3_discards", "delta": 120, "value": 120, "interval_s": 10.0},
    ),
    Kind(
        name="link.congestion",
        component="link",
        severity=Severity.INFO,
        source="ethtool counters",
        summary="A pause, PFC or ECN counter grew faster than `congestion_per_s` over a minute. By itself no error.",
        fields=(
            Field(name="counter", type="text", summary="the driver's name, e.g. rx_prio3_pause"),
            Field(name="delta", type="int", summary="growth"),
            Field(name="per_s", type="float", summary="growth per second", unit="1/s"),
            Field(name="interval_s", type="float", summary="time between the readings", unit="s"),
        ),
        example={"counter": "rx_prio3_pause", "delta": 120000, "per_s": 2000.0, "interval_s": 60.0},
        no_rule="congestion is no fault of an interface; a pause storm is link.errors.",
    ),
    Kind(
        name="link.pfc",
        component="link",
        severity=Severity.WARNING,
        source="ethtool counters",
        summary="The priorities of an interface that have flow control (PFC) changed, as its driver tells. Severity info when "
        "none that it has had is missing.",
        fields=(
            Field(
                name="priorities", type="text", summary="those that have it now, comma separated; empty: none"
            ),
            Field(name="before", type="text", summary="those that had it before"),
            Field(name="lost", type="bool", summary="one that had it since the agent's start has it no more"),
        ),
        example={"priorities": "", "before": "3", "lost": True},
    ),
    Kind(
        name="link.carrier_changes",
        component="link",
        severity=Severity.WARNING,
        source="rtnetlink",
        summary="The carrier changed more often than the agent saw: the link went down and up in between.",
        fields=(
            Field(name="unseen", type="int", summary="changes without a link.state"),
            Field(name="value", type="int", summary="the kernel's counter now"),
        ),
        example={"unseen": 4, "value": 18},
    ),
    Kind(
        name="link.mtu",
        component="link",
        severity=Severity.INFO,
        source="rtnetlink",
        summary="The MTU of an interface changed.",
        fields=(
            Field(name="mtu", type="int", summary="MTU now", unit="bytes"),
            Field(name="before", type="int", summary="MTU before", unit="bytes"),
        ),
        example={"mtu": 1500, "before": 9000},
    ),
    Kind(
        name="bond.active_slave",
        component="bond",
        severity=Severity.WARNING,
        source="/proc/net/bonding",
        summary="Another slave of a bond carries the traffic now.",
        fields=(
            Field(name="active", type="text", summary="active slave; empty: none"),
            Field(name="before", type="text", summary="active slave before; empty: none"),
        ),
        example={"active": "eth3", "before": "eth2"},
    ),
    Kind(
        name="bond.slaves",
        component="bond",
        severity=Severity.WARNING,
        source="/proc/net/bonding",
        summary="The slaves that are up changed, or some are down at start. Severity info when all are up, error when none is.",
        fields=(
            Field(name="up", type="int", summary="slaves that are up"),
            Field(name="slaves", type="int", summary="slaves"),
            Field(name="down", type="text", summary="those that are down or were removed, comma separated"),
            Field(name="degraded", type="bool", summary="some are missing"),
        ),
        example={"up": 1, "slaves": 2, "down": "eth2", "degraded": True},
    ),
    Kind(
        name="bond.lacp",
        component="bond",
        severity=Severity.WARNING,
        source="/proc/net/bonding",
        summary="The LACP partner of a bond changed, vanished or does not answer at start. Severity info when there is one.",
        fields=(
            Field(name="partner", type="text", summary="MAC address; all zeros: no partner answers"),
            Field(name="answers", type="bool", summary="there is a partner"),
            Field(name="apart", type="int", summary="slaves that are not in the active aggregator"),
        ),
        example={"partner": "00:00:00:00:00:00", "answers": False, "apart": 0},
    ),
    Kind(
        name="bond.removed",
        component="bond",
        severity=Severity.ERROR,
        source="/proc/net/bonding",
        summary="A bond vanished.",
        example={},
    ),
    Kind(
        name="probe.loss",
        no_rule=_LAID,
        component="link",
        severity=Severity.WARNING,
        source="probes",
        summary="Probes of peers over the data network are lost (`probe_loss_percent` over five minutes) or not answered at all "
        f"for a minute, {_ON_NEWS}",
        fields=(
            *_PROBED,
            Field(
                name="silent",
                type="text",
                summary="those of both that do not answer at all: the path is cut, or the peer or its agent is down",
            ),
            Field(name="lost_percent", type="float", summary="of the worst path that answers", unit="%"),
        ),
        example={
            "active": True,
            "near": 2,
            "far": 2,
            "near_ill": "gpu-0018",
            "far_ill": "gpu-0113",
            "silent": "",
            "lost_percent": 12.7,
        },
    ),
    Kind(
        name="probe.slow",
        no_rule=_LAID,
        component="link",
        severity=Severity.WARNING,
        source="probes",
        summary="Probes of peers take far longer than was usual on the same path (`probe_slow_percent`, `probe_slow_us`), "
        f"{_ON_NEWS}",
        fields=(
            *_PROBED,
            Field(
                name="median_us",
                type="float",
                summary="median round trip of the slowest of them",
                unit="µs",
                always=False,
            ),
            Field(
                name="usual_us", type="float", summary="what was usual on that path", unit="µs", always=False
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
            "active": True,
            "near": 2,
            "far": 2,
            "near_ill": "",
            "far_ill": "gpu-0113",
            "median_us": 2310.0,
            "usual_us": 31.0,
            "p99_us": 4120.0,
        },
    ),
)
