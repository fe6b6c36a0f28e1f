"""The checks before a commit and those of CI are those of `make lint`: nobody learns later what the hook could have said."""

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[1]
# What a change of which must start a hook that does not look at every Python file.
TRIGGERS = {
    "lint-imports": ("agent/host.py", ".importlinter"),
    "gpuward": ("rules/bond.yaml", "rules/catalog/xid.yaml", "runbooks/drain-node.yaml", "brain/renamed.py"),
}


def hooks() -> list[dict[str, Any]]:
    """As pre-commit reads them."""
    config = yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text(encoding="utf-8"))
    return [hook for repo in config["repos"] for hook in repo["hooks"]]


def test_the_hooks_run_what_make_lint_runs() -> None:
    """One hook for each command of the target, in the same order, with the same arguments, on the files that change."""
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    (recipe,) = re.findall(r"^lint: .*\n\t@(.*)$", makefile, re.MULTILINE)
    wanted = [
        command.replace("$(BIN)", ".venv/bin").removesuffix(" .").strip() for command in recipe.split(" && ")
    ]
    assert [hook["entry"].removesuffix(" --force-exclude") for hook in hooks()] == wanted


def test_a_hook_runs_whenever_its_answer_may_change() -> None:
    """A hook that looks at fewer files would let through what `make lint` finds."""
    for hook in hooks():
        program = hook["entry"].split()[0].rpartition("/")[2]
        if hook.get("types") == ["python"]:
            assert not {"files", "exclude"} & set(hook), hook["id"]
        for file in TRIGGERS.get(program, ()):
            assert re.search(hook["files"], file), f"the hook {hook['id']} does not run when {file} changes"


# The second look fails unless each failed test passes alone.
TESTED = 'tests() { make "$1" || .venv/bin/python -m tests.second_look; }'


@pytest.mark.parametrize(
    "line",
    [
        "export GPUWARD_CI=1",
        "part make setup",
        "part make lint & beside=$!",
        'wait "$beside"',
        "part make docs",
        "part as_generated",
        "part packages",
        TESTED,
        "part tests test",
        "part tests test-real",
        "set -euo pipefail",
    ],
)
def test_ci_runs_everything(line: str) -> None:
    """Each of these lines stands in .ci/run, uncommented: without GPUWARD_CI a test could be left out unseen."""
    assert line in (ROOT / ".ci" / "run").read_text(encoding="utf-8").splitlines(), f".ci/run: add {line}"
