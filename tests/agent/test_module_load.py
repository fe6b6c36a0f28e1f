"""module.load on a recorded machine, with a modprobe of our own: all that are missing, whatever becomes of one of them."""

from pathlib import Path

import pytest

from agent.actions.module_load import ModuleLoad
from agent.actions.modules import Modules
from agent.contract.errors import ActionError, Refused
from agent.host import Host

ALLOWED = ("nvidia_peermem", "gdrdrv", "broken")


@pytest.fixture
def load(tmp_path: Path) -> ModuleLoad:
    """A machine with mlx5_core, on which `broken` cannot be loaded."""
    (tmp_path / "proc").mkdir()
    (tmp_path / "proc/modules").write_text("mlx5_core 1 0 - Live 0x0\n")
    modprobe = tmp_path / "modprobe"
    modprobe.write_text(
        f'#!/bin/sh\n[ "$1" = broken ] && {{ echo "could not insert" >&2; exit 1; }}\nmkdir -p {tmp_path}/sys/module/$1\n'
    )
    modprobe.chmod(0o755)
    return ModuleLoad(
        Modules(Host(root=tmp_path), modprobe=str(modprobe), rmmod="/x"), (*ALLOWED, "mlx5-core")
    )


@pytest.mark.parametrize(
    ("asked", "plan", "said"),
    [
        pytest.param("gdrdrv", ["load gdrdrv"], "gdrdrv loaded", id="one"),
        pytest.param(
            "nvidia-peermem gdrdrv gdrdrv",
            ["load nvidia_peermem", "load gdrdrv"],
            "nvidia_peermem loaded; gdrdrv loaded",
            id="both that are missing",
        ),
        pytest.param(
            "mlx5_core gdrdrv",
            ["nothing: mlx5_core is loaded", "load gdrdrv"],
            "mlx5_core was loaded already; gdrdrv loaded",
            id="one is there",
        ),
    ],
)
async def test_all_that_are_asked_for_are_loaded(
    load: ModuleLoad, asked: str, plan: list[str], said: str
) -> None:
    """Each once, and the result names each."""
    assert await load.plan({"module": asked}) == plan
    assert (await load.run({"module": asked})).text == said
    assert all(line.startswith("nothing") for line in await load.plan({"module": asked}))


@pytest.mark.parametrize(
    ("asked", "says"),
    [
        pytest.param(
            "broken gdrdrv", "broken could not be loaded: could not insert; gdrdrv loaded", id="it fails"
        ),
        pytest.param(
            "sch_netem gdrdrv",
            "sch_netem is not among this node's `loadable_modules` (.*); gdrdrv loaded",
            id="it may not",
        ),
    ],
)
async def test_one_that_cannot_be_loaded_keeps_the_others_not_out(
    load: ModuleLoad, asked: str, says: str
) -> None:
    """The step has failed, and says what was done."""
    with pytest.raises(ActionError, match=says):
        await load.run({"module": asked})
    assert await load.plan({"module": "gdrdrv"}) == ["nothing: gdrdrv is loaded"]


@pytest.mark.parametrize("asked", ["sch_netem", "sch_netem zram", "", "gdrdrv;reboot", "-r gdrdrv"])
async def test_nothing_is_done_where_none_may_be_loaded(load: ModuleLoad, asked: str) -> None:
    """Refused: the next rung, and no second attempt."""
    with pytest.raises(Refused):
        await load.run({"module": asked})
    assert await load.plan({"module": "gdrdrv"}) == ["load gdrdrv"]
