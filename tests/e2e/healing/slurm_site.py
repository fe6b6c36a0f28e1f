"""A brain with a real Slurm, in a network namespace: other tests' links are none of theirs."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from tests.e2e.healing.kit import AUTO
from tests.e2e.stack import Stack
from tests.real import nspawn, slurm_cluster
from tests.real.netns import missing, namespace
from tests.real.slurm_cluster import Cluster

# Of tests with such a site and nodes in containers.
MARKS = [
    pytest.mark.root,
    pytest.mark.slow,
    pytest.mark.component("systemd-nspawn slurm iproute2"),
    *(
        pytest.mark.skipif(bool(why), reason=why)
        for why in (nspawn.missing(), slurm_cluster.missing(), missing())
    ),
    pytest.mark.timeout(400),
]


@contextmanager
def slurm_site(folder: Path, more: str = "") -> Iterator[tuple[Stack, Cluster]]:
    """Broker, receiver of pages and brain, which heals by itself, and the cluster of gpu1 to gpu4. `more`: as of Cluster."""
    with ExitStack() as undo:
        lab = undo.enter_context(namespace())
        undo.enter_context(lab.inside())
        lab.ip("link", "set", "lo", "up")
        # Slurm wants an address that is not lo's (AI_ADDRCONFIG).
        lab.ip("link", "add", "va", "type", "veth", "peer", "name", "vb")
        lab.ip("address", "add", "192.0.2.1/24", "dev", "va")
        for link in ("va", "vb"):
            lab.ip("link", "set", link, "up")
        slurm = undo.enter_context(slurm_cluster.cluster(more))
        whole = Stack(folder)
        undo.callback(whole.end)
        whole.nats.start()
        whole.start_receiver()
        whole.write_brain_config(
            f'{AUTO}[settings]\ndisruptive_runs = 4\n[schedulers.slurm]\ntype = "slurm"\nnodes = "gpu*"\n'
            f'conf = "{slurm.conf}"\n'
        )
        whole.start_brain()
        yield whole, slurm
