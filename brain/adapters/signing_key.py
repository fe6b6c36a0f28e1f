"""The key that signs commands is made once: where nodes obey one already, another would leave them obeying nobody."""

from agent.contract.counted import counted
from agent.contract.errors import ConfigError
from brain.cell.confirmations import read_confirmed
from brain.cell.registry import BY_HAND, CellRegistry
from brain.cell.trust import TrustFile
from brain.config import BrainConfig


def check(config: BrainConfig) -> None:
    """ConfigError: the key is gone, and nodes trust it; it says what to do. Also when a file of the cell cannot be read."""
    key = config.signing_key
    if key.exists():
        return
    trust = TrustFile(config.cell_dir)
    # Who was let in by hand, or stands in brain.toml, may never have heard of a key: nodes come before the brain's first start.
    joined = {name for name, node in CellRegistry(config.registry_file).nodes().items() if node.by != BY_HAND}
    nodes = {*joined, *read_confirmed(trust.confirmed_file)}
    public = key.with_name(f"{key.name}.pub")
    if not (nodes or trust.state().serial or public.exists()):
        return
    who = counted(len(nodes), "node") if nodes else "the nodes that were told of it"
    raise ConfigError(
        f"{key} is gone, and {who} would obey no other: put it back from your backup (mode 0600, the brain's user). If it is "
        "lost, `gpuward cell rotate signing --compromised` makes another, and every node joins again"
    )
