"""Is a folder of the brain's empty because its disk is not mounted? A brain that began anew there would be another cell: with a
key that no node obeys, and without its log (decision 97). It only reads.
"""

from collections.abc import Iterator
from pathlib import Path

from agent.contract.errors import ConfigError
from brain.adapters.mounts import unmounted_above
from brain.config import BrainConfig

_STREAMS = "js"  # in the store of an embedded server
_OF_A_BRAIN = ("history.sqlite", "state.snapshot")  # in the data folder of one that has run
_OF_A_CELL = (*_OF_A_BRAIN, "signing.key", "cell")


class FolderLost(ConfigError):
    """What was in a folder is not there: whoever waits for it begins nothing anew meanwhile."""


def check(config: BrainConfig) -> bool:
    """True. FolderLost: it says which folder, and what to do. OSError: one of them cannot be looked at."""
    for folder in _folders(config):
        if at := unmounted_above(folder):
            raise FolderLost(
                f"{folder} is below {at}, which /etc/fstab names, and nothing is mounted there: mount it (`mount {at}`), or take "
                "its line out of /etc/fstab where this brain is to begin without it"
            )
    store, data = config.nats.embedded.store, config.data_dir
    if not config.embedded or store is None or store.is_relative_to(data):
        return True
    streams = store / _STREAMS
    if _holds(data, _OF_A_BRAIN) and not streams.exists():
        raise FolderLost(
            f"{data} is that of a brain that has had a log, and {store} (nats.embedded.store) has none: mount its disk. If the "
            f"log is lost for good, make the folder {streams}, as the brain's user, and it begins a new one"
        )
    if streams.exists() and any(streams.iterdir()) and not _holds(data, _OF_A_CELL):
        raise FolderLost(
            f"{store} (nats.embedded.store) has the log of a cell, and {data} has nothing of one, not even its key: mount its "
            f"disk, or put it back from your backup. If it is lost for good, make the folder {data}/cell, as the brain's user: "
            "the brain makes another key, and every node joins again"
        )
    return True


def _folders(config: BrainConfig) -> Iterator[Path]:
    yield config.data_dir
    yield config.signing_key.parent
    if config.embedded and config.nats.embedded.store is not None:
        yield config.nats.embedded.store


def _holds(folder: Path, names: tuple[str, ...]) -> bool:
    return any((folder / name).exists() for name in names)
