"""What each package may import, where `.importlinter` can only list what it may not."""

import configparser
import tomllib
from pathlib import Path

import pytest

from tests import imports
from tests.imports import DYNAMIC, IMPURE, ROOT, Rule, below, broken, installed, used

PURE = ("agent.contract", "agent.collectors", "brain.core")
VALUES = frozenset({"collections", "dataclasses", "enum", "re", "typing"})
# What sushy and pydantic are made of: the errors that come out of them, the session that goes into sushy.
MADE_OF = frozenset({"pydantic_core", "requests", "urllib3"})
DURABLE = ("brain.core.pack.matcher_durable", "durable_rules_engine")  # decisions 3 and 34
RULES = {
    "the contract: values and texts": Rule(
        of=("agent.contract",),
        only=VALUES
        | {"agent.contract", "base64", "binascii.crc32", "datetime.UTC", "datetime.datetime", "json"}
        | {"functools.lru_cache"},  # of what is asked again and again, and has one answer
    ),
    "collectors: the contract, their options, no I/O": Rule(
        of=("agent.collectors",),
        only=VALUES
        | {
            "agent.collectors",
            "agent.contract",
            "agent.options",
            "hashlib",
            "importlib.import_module",
            "math.log10",
        },
    ),
    "the core: itself and the contract, no I/O": Rule(
        of=("brain.core",),
        only=VALUES
        | {"agent.contract", "brain.core"}
        | {
            "base64",
            "bisect",
            "copy",
            "itertools",
            "difflib.get_close_matches",
            "fnmatch",
            "functools",
            "hashlib",
            "heapq",
            "json",
            "math",
            "operator",
            "statistics.median",
        },
        exempt=frozenset({DURABLE}),
    ),
    "the agent: what is installed on a node": Rule(of=("agent",), only=installed() | {"agent"}),
    "the brain: what is installed with it": Rule(
        of=("brain",),
        only=installed("brain")
        | installed("archive")
        | MADE_OF
        | {"agent.__version__", "agent.contract", "agent.shared", "brain"},
        # The command line, as in .importlinter; durable_rules, which newer Pythons have not.
        exempt=frozenset(
            {("brain.__main__", "simulations.cli"), ("brain.__main__", "simulations.simulate"), DURABLE}
        ),
    ),
    "simulations: what is installed with the brain": Rule(
        of=("simulations",), only=installed("brain") | installed("report") | {"agent", "brain", "simulations"}
    ),
    # Law 9: of what acts they may know the shapes, and the commander, which gets simulated actions.
    "simulations: no real actuator": Rule(
        of=("simulations",),
        among=(
            "agent.actions",
            "brain.actions",
            "brain.leader",
            "brain.notify",
            "brain.ufm",
            "brain.adapters.nodes",
        ),
        only=frozenset(
            {
                "agent.actions.base",
                "brain.actions.base",
                "brain.actions.marks",  # texts of drains: pure
                "brain.actions.Request",
                "brain.actions.SiteActions",
            }
        ),
    ),
}
# Plug-ins whose names are texts in a table, and libraries that are large and seldom needed.
LOADERS = {
    "agent/actions/__init__.py", "agent/lean.py", "brain/options.py", "brain/cli/lazy.py", "brain/notify/apprise.py",
    "brain/actions/kube_api.py", "agent/collectors/__init__.py", "agent/sources/__init__.py",
}  # fmt: skip


@pytest.mark.parametrize("rule", RULES.values(), ids=list(RULES))
def test_only_what_is_named_is_imported(rule: Rule) -> None:
    """Nor does an exemption outlive its import."""
    assert broken(rule) == []
    for module, what in rule.exempt:
        assert any(
            below(name, (what,))
            for own, path in imports.files((module,))
            if own == module
            for name, _ in imports.imported(own, path)
        ), f"{module} imports no {what}: take the exemption out"


def test_the_pure_packages_use_nothing_impure() -> None:
    """Nor `hash`: the hash of a text differs from process to process."""
    assert used(PURE, IMPURE) == []


def test_modules_are_loaded_by_name_in_few_places() -> None:
    """No import rule sees what such a place loads."""
    found = used(("agent", "brain", "simulations"), DYNAMIC)
    assert {message.partition(":")[0] for message in found} == LOADERS, "\n".join(found)


def test_every_package_is_under_the_import_rules() -> None:
    """A new one beside them would be under none, mypy would not see it, and nobody would get it."""
    config = configparser.ConfigParser()
    config.read(ROOT / ".importlinter")
    assert imports.packages() == {*config["importlinter"]["root_packages"].split(), "docs", "tests"}
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    filters = "deploy/ansible"  # what Ansible loads is in no package
    assert set(project["tool"]["mypy"]["files"]) == {*imports.packages(), filters}, (
        "pyproject.toml: mypy: files"
    )
    installed_with_us = project["tool"]["hatch"]["build"]["targets"]["wheel"]["packages"]
    assert set(installed_with_us) == (imports.packages() - {"docs", "tests"}) | {"rules", "runbooks"}


@pytest.mark.parametrize(
    ("rule", "text"),
    [
        ("the core", "import secrets\n"),
        ("the core", "def f():\n    from agent.shared import tool\n"),
        ("the core", "from ..leader import steps\n"),
        ("the contract", "if TYPE_CHECKING:\n    import datetime\n"),
        ("collectors", "from agent import process_owner\n"),
        ("the agent", "import sushy\n"),
        ("the agent", "from tests import yardstick\n"),
        ("the brain", "from agent import supervisor\n"),
        ("the brain", "import docs.field_comments\n"),
        ("simulations: no", "from brain.actions import build_real\n"),
        ("simulations: no", "from agent import actions\n"),
    ],
)
def test_a_forbidden_import_is_named(tmp_path: Path, rule: str, text: str) -> None:
    """With its file and line."""
    (found,) = [one for name, one in RULES.items() if name.startswith(rule)]
    path = tmp_path / found.of[0].replace(".", "/") / "made_up.py"
    path.parent.mkdir(parents=True)
    path.write_text("import dataclasses\n")
    assert broken(found, tmp_path) == []
    path.write_text(text)
    line = text.count("\n")
    (message,) = broken(found, tmp_path)
    assert message.startswith(f"{path.relative_to(tmp_path)}:{line}: {found.of[0]}.made_up may not import ")


@pytest.mark.parametrize(
    "line",
    [
        "datetime.now(UTC)", "datetime.datetime.now()", "open('x')", "x.sort(key=hash)", "__import__('time')",
        "importlib.import_module('time')", "exec('import time')",
    ],
)  # fmt: skip
def test_an_impure_call_is_named(tmp_path: Path, line: str) -> None:
    """Also where it is only passed on."""
    (tmp_path / "core.py").write_text(f"import importlib\n{line}\n" if "importlib" in line else f"\n{line}\n")
    messages = used(["core"], IMPURE | DYNAMIC, tmp_path)
    assert messages
    assert all(message.startswith(("core.py:1:", "core.py:2:")) for message in messages)
    (tmp_path / "core.py").write_text("datetime.fromisoformat(now.text)\nself.open = opened\n")
    assert used(["core"], IMPURE | DYNAMIC, tmp_path) == []
