"""gpu.diagnose: what `dcgmi diag -j` says, in the formats of DCGM 3 and 4."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from agent.actions.gpu_diagnose import GpuDiagnose
from agent.contract.errors import ActionError, Refused, Unreachable
from tests.agent.gpu_kit import SERVICES, GpuNode
from tests.fixtures import nvml_fake

LEVEL = {"level": 2}


@pytest.fixture
def node(tmp_path: Path) -> GpuNode:
    return GpuNode(tmp_path, nvml_fake.build(tmp_path / "lib"))


def dcgm3(memory: str, warning: str = "") -> str:
    """As DCGM 3.3 prints it, a line of text first."""
    results: list[dict[str, Any]] = [{"gpu_id": "0", "status": "Pass"}, {"gpu_id": "1", "status": memory}]
    if warning:
        results[1]["warnings"] = [{"warning": warning, "error_id": 38}]
    categories = [
        {
            "category": "Deployment",
            "tests": [{"name": "Denylist", "results": [{"gpu_id": "0,1", "status": "PASS"}]}],
        },
        {"category": "Hardware", "tests": [{"name": "GPU Memory", "results": results}]},
        {
            "category": "Stress",
            "tests": [{"name": "Targeted Power", "results": [{"gpu_id": "0", "status": "Skip"}]}],
        },
    ]
    return "Running diagnostics\n" + json.dumps(
        {"DCGM GPU Diagnostic": {"test_categories": categories}, "version": "3.3.9"}
    )


def dcgm4(status: str) -> str:
    """As DCGM 4 prints it: results by entity, and a summary."""
    entity = {"entity_group": "GPU", "entity_group_id": 1, "entity_id": 1, "status": status}
    if status in ("Fail", "Warn"):
        entity |= {"warnings": [{"warning": "clocks are throttled", "error_category": 10, "error_id": 60}]}
    category = {
        "category": "Integration",
        "tests": [{"name": "pcie", "results": [entity], "test_summary": {"status": status}}],
    }
    software = {"category": "Deployment", "tests": [{"name": "software", "test_summary": {"status": "Pass"}}]}
    return json.dumps({"DCGM Diagnostic": {"test_categories": [software, category]}})


async def test_all_pass(node: GpuNode) -> None:
    """The level is passed on; the number of results that passed is told."""
    node.dcgmi.does(f"cat <<'X'\n{dcgm3('Pass')}\nX")
    assert await GpuDiagnose(node.kit).plan(LEVEL) == ["run dcgmi diag -r 2, at most 900 s"]
    assert (await GpuDiagnose(node.kit).run(LEVEL)).text == "diagnostics of level 2: 3 passed"
    assert node.dcgmi.calls == ["diag -r 2 -j"]
    assert node.units.calls == [], "DCGM itself is needed"


@pytest.mark.parametrize(
    ("text", "status", "says"),
    [
        (dcgm3("Fail", "bad row"), 226, r"level 2 failed: GPU Memory on GPU 1: bad row$"),
        (dcgm4("Fail"), 226, r"failed: pcie on GPU 1: clocks are throttled$"),
        (dcgm4("Fail"), 0, "failed: pcie on GPU 1"),
        (dcgm3("Pass"), 1, "ended with status 1 though no test failed"),
        ('{"DCGM Diagnostic": {"runtime_error": "nvvs crashed"}}', 1, "nvvs crashed"),
        ('{"DCGM Diagnostic": {"test_categories": []}}', 0, "no test of level 2 was run"),
        ("[]", 0, "dcgmi printed no result"),
        ('{"DCGM Diagnostic": [1]}', 0, "dcgmi printed no result"),
        ("", 127, "dcgmi printed no result: exit status 127"),
    ],
)
async def test_what_is_a_failure(node: GpuNode, text: str, status: int, says: str) -> None:
    """A failed test is named with its GPU and warning; no test that passed is no success either."""
    node.dcgmi.does(f"cat <<'X'\n{text}\nX\nexit {status}")
    with pytest.raises(ActionError, match=says) as caught:
        await GpuDiagnose(node.kit).run(LEVEL)
    assert type(caught.value) is ActionError


async def test_a_warning_is_told(node: GpuNode) -> None:
    """It is no failure."""
    node.dcgmi.does(f"cat <<'X'\n{dcgm4('Warn')}\nX")
    done = await GpuDiagnose(node.kit).run(LEVEL)
    assert done.text == "diagnostics of level 2: 1 passed, with warnings: pcie on GPU 1: clocks are throttled"


async def test_no_host_engine(node: GpuNode) -> None:
    """Nothing was done; when DCGM runs again it may be asked again."""
    node.dcgmi.does(
        "echo 'Error: unable to establish a connection to the specified host: localhost' >&2; exit 1"
    )
    with pytest.raises(Unreachable, match="host engine does not answer"):
        await GpuDiagnose(node.kit).run(LEVEL)


async def test_a_host_engine_that_is_just_starting(node: GpuNode) -> None:
    """After a reset its service was started a moment ago: it is asked again for a while."""
    node.kit = replace(node.kit, settle_s=60)
    again = node.dcgmi.path.with_suffix(".again")
    node.dcgmi.does(
        f"[ -e {again} ] || {{ touch {again}; echo 'unable to establish a connection' >&2; exit 1; }}\n"
        f"cat <<'X'\n{dcgm3('Pass')}\nX"
    )
    assert (await GpuDiagnose(node.kit).run(LEVEL)).text == "diagnostics of level 2: 3 passed"
    assert len(node.dcgmi.calls) == 2


async def test_only_on_an_idle_node(node: GpuNode) -> None:
    """A process on a GPU stops it, for now; those of NVIDIA's services do not. Levels are 1 to 3."""
    node.dcgmi.does(f"cat <<'X'\n{dcgm3('Pass')}\nX")
    with node.held("/dev/nvidia0"), pytest.raises(Unreachable, match="in use by python"):
        await GpuDiagnose(node.kit).run(LEVEL)
    with node.held("/dev/nvidia0", cgroup=f"0::/system.slice/{SERVICES[0]}"):
        await GpuDiagnose(node.kit).run(LEVEL)
    with pytest.raises(Refused, match="level must be 1 to 3"):
        await GpuDiagnose(node.kit).run({"level": 4})
    assert len(node.dcgmi.calls) == 1


async def test_the_first_named_of_many(node: GpuNode) -> None:
    """A node whose every test fails still gives a short text."""
    many = [{"gpu_id": str(n), "status": "Fail"} for n in range(50)]
    tests = [{"tests": [{"name": "x", "results": many}]}]
    node.dcgmi.does(f"echo '{json.dumps({'DCGM GPU Diagnostic': {'test_categories': tests}})}'")
    with pytest.raises(ActionError, match=r"x on GPU 9; and 40 more$"):
        await GpuDiagnose(node.kit).run(LEVEL)


async def test_without_dcgm_nothing_is_tested_and_the_result_says_so(node: GpuNode) -> None:
    """A tool that is not installed is no fault of the node."""
    node.dcgmi.path.unlink()
    done = await GpuDiagnose(node.kit).run(LEVEL)
    assert done.text == "no diagnostics were run"
    assert done.untested == (
        f"GPU diagnostics: {node.dcgmi.path} cannot be started: No such file or directory",
    )
