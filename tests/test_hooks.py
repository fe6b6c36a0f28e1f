"""The checks before a commit are those of `make lint`: nobody learns in CI what the hook could have said."""

import re
from pathlib import Path

import yaml

ROOT = Path(__file__).resolve().parents[1]


def test_the_hooks_run_what_make_lint_runs() -> None:
    """One hook for each command of the target, in the same order."""
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    (recipe,) = re.findall(r"^lint: .*\n\t@(.*)$", makefile, re.MULTILINE)
    wanted = [command.split()[0].rpartition("/")[2] for command in recipe.split(" && ")]
    config = yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text(encoding="utf-8"))
    hooks = [hook["entry"].split()[0].rpartition("/")[2] for hook in config["repos"][0]["hooks"]]
    assert hooks == wanted
