"""Every action of a node is listed, and can be made from what an agent has."""

from pathlib import Path

import pytest

from agent.actions import CLASSES, Actions, action_class
from agent.actions.action_setup import ActionSetup
from agent.config import AgentConfig
from agent.contract.actions import ACTIONS
from agent.host import Host


@pytest.mark.parametrize("name", ACTIONS)
def test_a_declared_action_is_listed_and_can_be_made(tmp_path: Path, name: str) -> None:
    """Its class has its name, and can be made from what every agent has; that touches nothing."""
    setup = ActionSetup(host=Host(), config=AgentConfig(data_dir=tmp_path), peer=lambda: None)
    actions = Actions(setup)
    assert action_class(name).name == name
    assert isinstance(actions[name], action_class(name))
    assert actions[name] is actions[name], "it is made once"
    assert list(tmp_path.iterdir()) == []


def test_no_action_is_listed_that_is_not_declared() -> None:
    """Rules and gates would not know what it disrupts, and no command could name it."""
    if missing := [name for name in CLASSES if name not in ACTIONS]:
        texts = (
            f"{name} is not declared. In agent/contract/actions/, in the file of its area, add to ACTIONS\n"
            f'    ActionSpec(name="{name}", summary=..., disrupts=..., repeat=..., timeout_s=..., params=(...)),'
            for name in missing
        )
        pytest.fail("\n".join(texts), pytrace=False)


def test_a_recorded_machine_is_only_read(tmp_path: Path) -> None:
    """Of all actions it has the one that collects evidence."""
    setup = ActionSetup(host=Host(root=tmp_path), config=AgentConfig(data_dir=tmp_path), peer=lambda: None)
    assert list(Actions(setup)) == ["evidence.collect"]
    with pytest.raises(KeyError):
        Actions(setup)["node.reboot"]
