"""What is plotted of a node and of its GPUs, and how Prometheus is asked for it. Pure.

The series are those of dcgm-exporter and node_exporter as they come; what an exporter does not have is not shown.
"""

from dataclasses import dataclass
from enum import StrEnum

POINTS = 120  # of a line at most
LEAST_STEP_S = 120.0  # several scrapes lie within


class PanelKind(StrEnum):
    """Whose series they are."""

    GPU = "gpu"  # dcgm-exporter's
    NODE = "node"  # node_exporter's


class _Way(StrEnum):
    """How what lies within a step becomes one point."""

    MOST = "max_over_time"
    MEAN = "avg_over_time"
    MORE = "increase"
    RATE = "rate"


@dataclass(frozen=True, slots=True, kw_only=True)
class Panel:
    """One plot."""

    # its word in the catalogue: plot-<name>
    name: str
    kind: PanelKind
    unit: str
    # its name
    series: str
    way: _Way
    # what a value of the series is multiplied with
    factor: str = ""
    # further label matchers
    only: str = ""
    # the label that tells lines of a node apart; empty: there is one
    by: str = ""

    def query(self, selector: str, step_s: float) -> str:
        """PromQL for its points. `selector`: the matcher of the node."""
        matchers = ", ".join(filter(None, (selector, self.only)))
        found = f"{self.way}({self.series}{{{matchers}}}[{step_s:.0f}s])"
        return f"{found} * {self.factor}" if self.factor else found


_WIRED = 'device!~"lo|veth.*|cali.*|docker.*|br-.*"'  # Ethernet that leaves the node


def _gpu(name: str, unit: str, series: str, way: _Way, factor: str = "") -> Panel:
    return Panel(
        name=name, kind=PanelKind.GPU, unit=unit, series=f"DCGM_FI_DEV_{series}", way=way, factor=factor
    )


def _node(
    name: str, unit: str, series: str, way: _Way, factor: str = "", only: str = "", by: str = ""
) -> Panel:
    return Panel(
        name=name,
        kind=PanelKind.NODE,
        unit=unit,
        series=f"node_{series}",
        way=way,
        factor=factor,
        only=only,
        by=by,
    )


_BITS = "(8 / 1e9)"
PANELS: tuple[Panel, ...] = (
    _gpu("gpu-temperature", "°C", "GPU_TEMP", _Way.MOST),
    _gpu("gpu-memory-temperature", "°C", "MEMORY_TEMP", _Way.MOST),
    _gpu("gpu-power", "W", "POWER_USAGE", _Way.MEAN),
    _gpu("gpu-use", "%", "GPU_UTIL", _Way.MEAN),
    _gpu("gpu-memory", "GiB", "FB_USED", _Way.MOST, "(1 / 1024)"),
    _gpu("gpu-xid", "", "XID_ERRORS", _Way.MOST),
    _gpu("gpu-corrected", "", "ECC_SBE_VOL_TOTAL", _Way.MORE),
    _gpu("gpu-uncorrected", "", "ECC_DBE_VOL_TOTAL", _Way.MORE),
    _gpu("gpu-remapped", "", "UNCORRECTABLE_REMAPPED_ROWS", _Way.MOST),
    _gpu("gpu-replays", "", "PCIE_REPLAY_COUNTER", _Way.MORE),
    _gpu("gpu-energy", "kWh", "TOTAL_ENERGY_CONSUMPTION", _Way.MORE, "(1 / 3.6e9)"),
    _node("node-load", "", "load1", _Way.MEAN),
    _node("node-memory", "GiB", "memory_MemAvailable_bytes", _Way.MEAN, "(1 / 2^30)"),
    _node(
        "ib-received", "Gbit/s", "infiniband_port_data_received_bytes_total", _Way.RATE, _BITS, by="device"
    ),
    _node("ib-errors", "", "infiniband_port_errors_received_total", _Way.MORE, by="device"),
    _node("ib-downs", "", "infiniband_link_downed_total", _Way.MORE, by="device"),
    _node("net-received", "Gbit/s", "network_receive_bytes_total", _Way.RATE, _BITS, _WIRED, "device"),
    _node("net-errors", "", "network_receive_errs_total", _Way.MORE, only=_WIRED, by="device"),
)


def step_of(hours: float) -> float:
    """How far the points of so many hours lie apart, in seconds."""
    return max(LEAST_STEP_S, hours * 3600 / POINTS)


def selector(label: str, node: str) -> str:
    """The matcher of a node: its name, with or without a domain or a port behind it. `node`: a token of subjects."""
    return f'{label}=~"{node}([.:].*)?"'
