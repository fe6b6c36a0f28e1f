"""What is to be told to NATS servers of a site's own, in the words for a person: where the brain does not do it itself."""

from brain.cell.registry import CellNode, CellRegistry
from brain.config import BrainConfig

_FILE = (
    "write the accounts again (`gpuward cell show --nats-accounts > gpuward-accounts.conf` on the brain's machine), give the "
    "file to each server and reload it twice (`nats-server --signal reload`)"
)


def todo(config: BrainConfig, node: str, *, joined: bool) -> str:
    """What somebody has to do now that this node has joined, or was revoked; empty: the brain does it."""
    operator = config.nats.operator
    if config.embedded or (operator and operator.seed_file and operator.system_creds_file):
        return ""
    jwt = f"`gpuward cell export --jwt FOLDER`, and give the servers accounts/N_{node}.jwt of it"
    how = jwt if operator else _FILE
    if joined:
        return f"the NATS servers do not let it in until you {how}"
    return f"the NATS servers let it in until you {how}; the brain takes nothing from it any more"


def states(registry: CellRegistry) -> dict[str, CellNode | float]:
    """Returns node -> its line, or when it was revoked. ConfigError: the registry cannot be read."""
    return {**{name: one.at for name, one in registry.revoked().items()}, **registry.nodes()}
