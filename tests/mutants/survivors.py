"""The list of survivors: survivors.toml. An entry names a change by its function and its lines, not by line numbers."""

import tomllib
from dataclasses import dataclass
from pathlib import Path

from tests.mutants.modules import MODULES
from tests.mutants.workplace import Mutant

FILE = Path(__file__).with_name("survivors.toml")


@dataclass(frozen=True, slots=True, kw_only=True)
class Survivor:
    """A change that no test needs to notice, and why."""

    module: str
    function: str
    before: str
    after: str
    reason: str

    def names(self, mutant: Mutant) -> bool:
        """Is it this one?"""
        return (self.function, self.before, self.after) == (mutant.function, mutant.before, mutant.after)

    def __str__(self) -> str:
        return f"{self.module}: {self.function}: {self.before!r} -> {self.after!r}"


def load() -> list[Survivor]:
    """All that are listed."""
    listed = [Survivor(**raw) for raw in tomllib.loads(FILE.read_text()).get("survivor", [])]
    without = [one for one in listed if len(one.reason.split()) < 3]
    if without:
        raise SystemExit(f"survivors.toml: a survivor needs a reason: {without[0]}")
    return listed


def of_unknown_modules(listed: list[Survivor]) -> list[str]:
    """Entries of modules that are not mutated."""
    known = {module.name for module in MODULES}
    return [f"survivors.toml: no such module: {one}" for one in listed if one.module not in known]
