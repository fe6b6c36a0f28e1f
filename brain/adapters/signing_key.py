"""The key that signs commands is made once: where nodes obey one already, another would leave them obeying nobody."""

import base64
from pathlib import Path

from agent.contract.counted import counted
from agent.contract.errors import ConfigError
from agent.shared import files
from brain.adapters import keys
from brain.cell.confirmations import read_confirmed
from brain.cell.registry import BY_HAND, CellRegistry
from brain.cell.trust import TrustFile
from brain.config import BrainConfig


def check(config: BrainConfig) -> bool:
    """True. ConfigError: the key is gone, and nodes trust it, or it is another one than its public half says; it says what to do.
    Also when a file of the cell cannot be read.
    """
    key = config.signing_key
    if key.exists():
        _check_half(key)
        return True
    trust = TrustFile(config.cell_dir)
    # Who was let in by hand, or stands in brain.toml, may never have heard of a key: nodes come before the brain's first start.
    joined = {name for name, node in CellRegistry(config.registry_file).nodes().items() if node.by != BY_HAND}
    nodes = {*joined, *read_confirmed(trust.confirmed_file)}
    public = key.with_name(f"{key.name}.pub")
    if not (nodes or trust.state().serial or public.exists()):
        return True
    who = counted(len(nodes), "node") if nodes else "the nodes that were told of it"
    raise ConfigError(
        f"{key} is gone, and {who} would obey no other: put it back from your backup (mode 0600, the brain's user). If it is "
        "lost, `gpuward cell rotate signing --compromised` makes another, and every node joins again"
    )


def _check_half(key: Path) -> None:
    """ConfigError: a bit of the key is another one, say: that is a key as good as any, which no node obeys. Where a rotation was
    cut short, the public half of the key that came next is still beside it.
    """
    told = [public_half(keys.beside(key, what)) for what in ("pub", "next.pub", "fresh.pub")]
    if told[0] and keys.read_signer(key).public not in told:
        raise ConfigError(
            f"{key} is another key than {key.name}.pub says, and nodes obey that one: it is damaged, or one of the two is of "
            f"another time. Put both back from your backup. If {key.name} is the right one, remove {key.name}.pub, which is "
            "written again; if there is no backup: `gpuward cell rotate signing --compromised`, and every node joins again"
        )


def public_half(file: Path) -> str:
    """The key in base64 that this file names; empty: there is none, or it is damaged, and is written again."""
    try:
        key_id, equals, public = files.read(file).decode("ascii").strip().partition(" = ")
        key = base64.b64decode(public, validate=True)
    except (OSError, ValueError):
        return ""
    return base64.b64encode(key).decode() if equals and key_id == keys.key_id_of(key) else ""
