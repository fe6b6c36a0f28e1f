"""What is installed on a newer Python, which has no durable_rules: the wheel of this tree, with the pinned dependencies."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from brain.core.pack.rulebook import MATCHER
from tests.e2e.stack import ROOT, stack
from tests.e2e.test_spine import address
from tests.nightly import first
from tests.real.kernel_log import HEARD, write_kernel_line

pytestmark = pytest.mark.optional("a newer Python")
VERSIONS = ("3.13", "3.14")
PLAIN = "plain Python (durable_rules cannot be had: No module named 'durable_rules_engine')"


def run(*argv: str | Path, given: str = "") -> str:
    """What a program prints when it reads `given`; the test fails when it fails."""
    done = subprocess.run(
        argv, cwd=ROOT, capture_output=True, text=True, timeout=100, check=False, input=given
    )
    assert done.returncode == 0, f"{argv}: {done.stdout[-2000:]}{done.stderr[-2000:]}"
    return done.stdout


@pytest.fixture(
    name="programs",
    scope="module",
    params=first(1, "both lack durable_rules, and do the same without it", VERSIONS),
)
def _programs(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder with `gpuward` and `gpuward-agent`, of an environment with the wheel. The dependencies are those that
    deploy/dev/components.sh has installed: where it found such a Python it ends with an error unless they are there.
    """
    there = Path(f"/var/cache/gpuward-python{request.param}")
    if not (there / "installed.txt").exists():
        pytest.skip(f"needs Python {request.param}: deploy/dev/components.sh looks for it")
    lock = (ROOT / "deploy" / "release" / "brain.lock").read_text()
    assert (there / "installed.txt").read_text() == lock, (
        "the pinned versions have changed: deploy/dev/components.sh"
    )
    folder = tmp_path_factory.mktemp("newer")
    run(sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", folder)
    (wheel,) = folder.glob("*.whl")
    run(there / "bin" / "python", "-m", "venv", "--without-pip", folder / "venv")
    library = f"lib/python{request.param}/site-packages"
    (folder / "venv" / library / "dependencies.pth").write_text(f"{there / library}\n")
    python = folder / "venv" / "bin" / "python"
    run(there / "bin" / "pip", "--python", python, "install", "-q", "--no-deps", "--no-index", wheel)
    return python.parent


def test_the_rules_hold_with_the_plain_matcher(programs: Path) -> None:
    """`gpuward check` plays every example, and says by what they were matched."""
    checked = json.loads(run(programs / "gpuward", "check", "--json"))
    assert checked["matcher"] == PLAIN
    assert checked["ok"] is True
    assert checked["examples_passed"] == checked["examples"] > 250


def test_the_agent_reads_what_it_reads_elsewhere(programs: Path) -> None:
    """A kernel line, and a recorded machine: the same words as from this Python."""
    here = Path(sys.executable).parent
    line = "NVRM: Xid (PCI:0000:3b:00): 79, GPU has fallen off the bus.\n"
    decode = ("gpuward-agent", "decode")
    assert "gpu.xid" in run(programs / decode[0], decode[1], given=line)
    assert run(programs / decode[0], decode[1], given=line) == run(here / decode[0], decode[1], given=line)
    assert run(programs / "gpuward-agent", "list") == run(here / "gpuward-agent", "list")


@pytest.mark.root
@pytest.mark.slow
def test_a_fault_on_a_newer_python_and_a_standby_on_this_one(programs: Path, tmp_path: Path) -> None:
    """Agent and brain without durable_rules: the line becomes an incident with its plan. A standby that may have another
    matcher reads the same log, and shows the same incident.
    """
    with stack(tmp_path, agent=HEARD, programs=programs) as whole:
        status = " ".join(whole.gpuward("status").split())
        assert f"; matched by {PLAIN}" in status
        assert f"rules are matched by {PLAIN}" in whole.log("brain")
        where = address()
        write_kernel_line(f"NVRM: Xid (PCI:{where}): 79, GPU has fallen off the bus.")
        (incident,) = whole.wait_for(
            lambda: [i for i in whole.incidents("gpu-lost") if where in i["scope"] and i["runs"]],
            "there is an incident",
        )
        assert (incident["severity"], incident["state"]) == ("P1", "needs_human")
        standby = whole.start_standby()
        assert whole.get("/api/v1/status", standby)["matcher"] == str(MATCHER)
        path = f"/api/v1/explain/{incident['id']}"

        def told(url: str) -> tuple[object, ...]:
            """What was decided, and why."""
            found = whole.get(path, url)
            runs = [(one["id"], one["runbook"], one["why"], one["plan"]) for one in found.get("runs", ())]
            return (
                found.get("incident", {}).get("rule"),
                runs,
                [one["text"] for one in found.get("notes", ())],
            )

        whole.wait_for(lambda: told(standby) == told(whole.url), "both brains tell the same")
        assert told(standby)[0]
