"""`gpuward diagnose` counts what comes back at one place of a GPU, as an agent does."""

import pytest

from tests.brain.diagnose_kit import BOOT, ask_json

_CLUSTER = "Graphics SM Warp Exception on (GPC {gpc}, TPC 1, SM 0): Out Of Range Address"


@pytest.mark.parametrize(
    ("clusters", "causes"),
    [((2, 2, 2), ["gpu-suspected"]), ((2, 2), []), ((2, 3, 2), [])],
)
def test_programs_that_fail_on_one_cluster_of_a_gpu(clusters: tuple[int, ...], causes: list[str]) -> None:
    """Three programs at one GPC and TPC are the GPU, as the agent counts them; elsewhere, or fewer, they are programs."""
    log = "".join(
        f"[{100 + 3000 * n}.5] NVRM: Xid (PCI:0000:3b:00): 13, pid={41 + n}, name=p{n}, {_CLUSTER.format(gpc=gpc)}\n"
        for n, gpc in enumerate(clusters)
    )
    assert [one["cause"] for one in ask_json(BOOT + log)["incidents"]] == causes
