"""How much ports and interfaces carry. Only with `traffic_interval_s`."""

from agent.contract.kinds.base import Field, Kind
from agent.contract.messages import Severity

KINDS: tuple[Kind, ...] = (
    Kind(
        name="link.busy",
        component="port,link",
        severity=Severity.WARNING,
        source="traffic counters",
        summary="A port (RDMA) or an interface (all else) has carried more than 80 or 90 % of its rate in each interval of five "
        "minutes; info when it no longer does. Only with `traffic_interval_s`.",
        fields=(
            Field(
                name="percent",
                type="int",
                summary="90 | 80: above so much of its rate; 0: no longer",
                unit="%",
            ),
            Field(name="direction", type="text", summary="received | sent: of which there was more"),
            Field(name="received_gbps", type="float", summary="mean of the five minutes", unit="Gb/s"),
            Field(name="sent_gbps", type="float", summary="mean of the five minutes", unit="Gb/s"),
            Field(name="rate_gbps", type="float", summary="what it can carry each way", unit="Gb/s"),
        ),
        example={
            "percent": 90,
            "direction": "sent",
            "received_gbps": 41.2,
            "sent_gbps": 380.5,
            "rate_gbps": 400.0,
        },
    ),
)
