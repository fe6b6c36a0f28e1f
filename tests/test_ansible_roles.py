"""What the roles of deploy/ansible know of gpuward is what gpuward itself says; without Ansible."""

import importlib.util
import inspect
import re
import tomllib
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import yaml

from agent.cli import join
from brain.cell.authority import Authority
from brain.cli import brain_toml_keys
from brain.config import parse

ROLES = Path(__file__).resolve().parents[1] / "deploy/ansible/roles"


def read(path: str) -> Any:
    return yaml.safe_load((ROLES / path).read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def filters() -> ModuleType:
    """The module with the roles' filters, which Ansible loads by its path."""
    path = ROLES / "gpuward_common/filter_plugins/gpuward.py"
    spec = importlib.util.spec_from_file_location("gpuward_filters", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize(
    "table",
    [
        {},
        {"a": 'x "y" \\ \n é 🙂', "b": 1.5, "c": True, "d": [1, 2], "e": []},
        {"nats": {"embedded": {"host": "0.0.0.0", "nodes": {"gpu 1": "UABC"}}}, "cell": "c"},
        {
            "modes": [{"mode": "auto", "nodes": "gpu0*"}, {"mode": "observe"}],
            "acceptance": {"all_reduce": {"argv": ["/x", "-b"], "floors": {"bus": 150}}},
        },
        {"settings": {"escalation": {"P1": [{"to": "oncall"}, {"to": "lead", "after_s": 60}]}}},
    ],
)
def test_what_is_written_as_toml_is_read_as_it_was(filters: ModuleType, table: dict[str, Any]) -> None:
    """Tables in tables, lists of tables, names and texts that need quotes."""
    assert tomllib.loads(filters.toml(table)) == table


def test_a_null_is_refused(filters: ModuleType) -> None:
    """An empty value in an inventory is a key that somebody has forgotten."""
    with pytest.raises(ValueError, match="leave the key out"):
        filters.toml({"a": None})


@pytest.mark.parametrize("own", [{}, {"nats": {"url": "tls://nats-1:4222"}}])
def test_a_brain_is_reachable_as_cell_init_makes_it(
    filters: ModuleType, own: dict[str, Any], tmp_path: Path
) -> None:
    """The role writes the keys that `gpuward cell init --write` would set."""
    names = ["brain.example.com", "10.0.0.3", "fd00::1"]
    config = parse(own | {"data_dir": str(tmp_path)}, "site.toml", tmp_path)
    keys = brain_toml_keys.reachable(config, Authority(config.cell_dir), names)
    assert filters.reach(names, own, tmp_path) == tomllib.loads(brain_toml_keys.shown(keys))
    assert filters.reach([], own, tmp_path) == {}


def test_the_role_keeps_what_join_writes() -> None:
    """Else the second run would take a node's membership away."""
    written = re.findall(r'(?m)^        "(\w+)": |values\["(\w+)"\]', inspect.getsource(join.main))
    kept = read("gpuward_agent/vars/main.yml")["gpuward_agent_joined_keys"]
    assert set(kept) == {key for pair in written for key in pair if key}


@pytest.mark.parametrize("role", ["gpuward_brain", "gpuward_agent"])
def test_every_variable_is_declared(role: str) -> None:
    """With a type, which Ansible checks, and a sentence; a default that it names is the one."""
    options = read(f"{role}/meta/argument_specs.yml")["argument_specs"]["main"]["options"]
    defaults = read(f"{role}/defaults/main.yml")
    assert options.keys() == defaults.keys()
    for name, option in options.items():
        assert option["description"]
        assert option.get("default", defaults[name]) == defaults[name], name
