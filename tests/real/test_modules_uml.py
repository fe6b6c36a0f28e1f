"""driver.reload and module.load with real kernel modules, in a User-mode Linux kernel."""

import shutil
from pathlib import Path

import pytest

from tests.real.test_bond_uml import run_guest

HERE = Path(__file__).resolve().parent
ALL = ["8021q", "garp", "llc", "mrp", "stp"]
RELOADED = "driver reloaded: llc, stp, mrp, garp, 8021q; 0 GPUs answer"


@pytest.mark.root
@pytest.mark.component("user-mode-linux")
@pytest.mark.slow
def test_modules_are_loaded_and_unloaded(tmp_path: Path) -> None:
    """In the order of the table, never under a user, and whatever goes wrong they are there again afterwards."""
    if shutil.which("linux.uml") is None or shutil.which("modprobe") is None:
        pytest.skip("needs apt-get install user-mode-linux kmod")
    said = {str(line["what"]): line["said"] for line in run_guest(HERE / "uml/modules_guest.py", tmp_path)}
    assert said["module.load"] == ["dummy loaded", []]
    assert said["module.load again"] == ["dummy was loaded already", []]
    refused = "Refused: sch_netem is not among this node's `loadable_modules` (dummy, no_such_module)"
    assert said["module.load of another"] == [refused, []]
    assert "no_such_module could not be loaded" in str(said["module.load of nothing"])

    assert said["a driver that is not loaded"] == [RELOADED, ALL]
    assert said["plan"] == [
        "pause the agent's own NVML source",
        *(f"unload {name}" for name in ("8021q", "garp", "mrp", "stp", "llc")),
        *(f"load {name}" for name in ("llc", "stp", "mrp", "garp", "8021q")),
    ]
    assert said["driver.reload"] == [RELOADED, ALL]
    assert said["calls"] == ["llc", "stp", "mrp", "garp", "8021q"]
    used = "Refused: the driver cannot be unloaded: llc is used by llc2"
    assert said["used by another module"] == [used, ALL]
    assert str(said["in use"]).startswith("llc2 is in use (")
    failed = "ActionError: 8021q could not be loaded: modprobe: ERROR: could not insert '8021q'"
    assert said["a load that fails once"] == [failed, ALL]
    assert said["half unloaded"] == ["llc", "mrp", "stp"]
    assert said["recovered"] == [ALL, False]
