"""A working folder for each module (.mutants/<module>): links to the sources, and mutmut's configuration."""

import json
import os
import shutil
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

from tests.mutants.modules import Module

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / ".mutants"
WORKERS = os.environ.get("WORKERS", "2")
# mypy refuses many mutants before any test runs, as it would in `make lint`: those do not count. To judge the rest of
# the module as ever, it must see the type of mutmut's decorator, which `make lint` never looks at; and mutmut's copies of
# `__init__` declare the attributes again.
CONFIGURATION = """
[[tool.mypy.overrides]]
module = ["mutmut.mutation.trampoline"]
follow_imports = "normal"

[tool.mutmut]
source_paths = ["agent", "brain", "simulations"]
only_mutate = ["{path}"]
pytest_add_cli_args = ["-p", "tests.mutants.plugin", "-p", "no:cacheprovider", "-p", "no:xdist", "-p", "no:hypothesispytest",
    "--timeout", "60"]
pytest_add_cli_args_test_selection = {tests}
do_not_mutate_patterns = ['_log\\.']
type_check_command = ["{python}", "-m", "mypy", "{path}", "--output", "json", "--cache-dir", "{cache}",
    "--no-warn-unused-ignores", "--no-warn-unreachable", "--allow-untyped-decorators", "--no-warn-return-any",
    "--disable-error-code", "no-redef"]
timeout_constant = 6
use_git_change_detection = false
track_dependencies = false
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Mutant:
    """One small change, and what became of it."""

    mutant: str  # mutmut's name for it: `mutmut show NAME` in the working folder shows it whole
    function: str
    status: str
    error: str  # what mypy says against it
    before: str  # the changed lines, with single blanks
    after: str

    @property
    def refused(self) -> bool:
        """Is it no program that `make lint` would let through?"""
        return self.status == "caught by type check"

    @property
    def killed(self) -> bool:
        """Did a test notice?"""
        return self.status in ("killed", "timeout", "segfault")


def tried(module: Module) -> tuple[list[Mutant], float]:
    """The module's mutants, each tried by its tests, and how long that took."""
    folder = FOLDER / module.name
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    for name in ("agent", "brain", "simulations", "tests"):
        (folder / name).symlink_to(ROOT / name)
    configuration = CONFIGURATION.format(
        path=module.path,
        tests=json.dumps(module.tests),
        python=sys.executable,
        cache=FOLDER / "mypy",
    )
    (folder / "pyproject.toml").write_text((ROOT / "pyproject.toml").read_text() + configuration)
    began = time.monotonic()
    with (folder / "log").open("wb") as log:
        ended = subprocess.run(
            [sys.executable, str(ROOT / "tests/mutants/mutate.py"), module.path, WORKERS],
            cwd=folder,
            stdout=log,
            stderr=subprocess.STDOUT,
            env=os.environ | {"PYTHONHASHSEED": "0"},
            check=False,
        )
    if ended.returncode:
        text = (folder / "log").read_text(errors="replace").replace("\r", "\n")
        raise SystemExit(f"{module.name}: mutmut failed\n" + "\n".join(text.splitlines()[-60:]))
    raw = json.loads((folder / "results.json").read_text())
    return [Mutant(**entry) for entry in raw], time.monotonic() - began
