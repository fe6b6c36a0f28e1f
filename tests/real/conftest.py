"""What tests of a real Kubernetes control plane have in common; one that needs another has its own fixture of that name."""

from collections.abc import AsyncIterator, Iterator

import pytest

from brain.actions import kube as module
from brain.actions.kube import Kubernetes
from tests.real import kube_plane
from tests.real.kube_plane import Plane


@pytest.fixture(scope="module")
def control_plane() -> Iterator[Plane]:
    """One for all of a module."""
    with kube_plane.plane() as made:
        yield made


@pytest.fixture
def plane(control_plane: Plane) -> Plane:
    """Without pods, and with all nodes in service."""
    control_plane.clean()
    return control_plane


@pytest.fixture
async def kube(plane: Plane) -> AsyncIterator[Kubernetes]:
    """As `[schedulers.k8s]` would build it."""
    made = module.build("k8s", {"type": "kubernetes", "kubeconfig": plane.kubeconfig}, "schedulers.k8s")
    yield made
    await made.close()
