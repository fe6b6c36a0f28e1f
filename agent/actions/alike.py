"""What a node is made of, as one text: nodes with equal texts are peers, whose figures may be compared."""

from collections import Counter
from collections.abc import Iterable

from agent.contract.figures import MAX_ALIKE
from agent.contract.messages import clip
from agent.host import Host

_GPUS = "/proc/driver/nvidia/gpus"


def alike(host: Host, ib_root: str) -> str:
    """Product, GPU models and models of the InfiniBand cards: `HGX H100; 8 NVIDIA H100 80GB HBM3; 8 MT4129`."""
    models = (_model(host.read(f"{_GPUS}/{name}/information")) for name in host.listdir(_GPUS))
    cards = (host.read(f"{ib_root}/{name}/hca_type") for name in host.listdir(ib_root))
    product = host.read("/sys/class/dmi/id/product_name")
    return clip("; ".join(text for text in (product, _counted(models), _counted(cards)) if text), MAX_ALIKE)


def _model(information: str) -> str:
    for line in information.splitlines():
        name, _, value = line.partition(":")
        if name.strip() == "Model":
            return value.strip()
    return "unknown"


def _counted(names: Iterable[str]) -> str:
    return ", ".join(f"{number} {name or 'unknown'}" for name, number in sorted(Counter(names).items()))
