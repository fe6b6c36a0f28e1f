"""The rules of a backtest: those of folders, or those that a recorded log itself carries."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from agent.contract.errors import ConfigError
from agent.shared.words import later, t
from brain.adapters import pack as packs
from brain.core.pack.spec import Pack, Place, Settings

_BESIDE = Path(__file__).resolve().parents[3]  # rules/ and runbooks/ are installed beside this package
SHIPPED = later("gpuward's own")
OF_THE_LOG = later("those of the log")


@dataclass(frozen=True, slots=True, kw_only=True)
class RuleSet:
    """Rules and runbooks, and where they are from. `read` None: those that the log carries."""

    source: str
    read: Pack | None = None

    @property
    def version(self) -> str:
        """Of the rules as they stand in their files."""
        return self.read.version if self.read is not None else ""

    def pack(self, *, places: Mapping[str, Place], settings: Settings | None = None) -> Pack:
        """The rules for a site, without what a schedule begins: that is not what the recording is asked about."""
        if self.read is None:
            raise ConfigError(t("these kernel logs carry no rules: name a folder with --rules"))
        runbooks = tuple(replace(one, every_s=0) if one.every_s else one for one in self.read.runbooks)
        return replace(
            self.read, runbooks=runbooks, places=dict(places), settings=settings or self.read.settings
        )


def shipped() -> RuleSet:
    """What gpuward comes with."""
    return RuleSet(source=t(SHIPPED), read=packs.load(_BESIDE / "rules", _BESIDE / "runbooks"))


def of_folder(folder: Path, runbooks: Path | None = None) -> RuleSet:
    """The rules of a folder: `rules/` and `runbooks/` in it, or a folder of rules itself, with the runbooks beside it.

    Runbooks that are not there are gpuward's own. ConfigError: names file, line and key of whatever is wrong.
    """
    rules = folder / "rules" if (folder / "rules").is_dir() else folder
    beside = rules.parent / "runbooks"
    chosen = runbooks or (beside if beside.is_dir() else _BESIDE / "runbooks")
    return RuleSet(source=str(folder), read=packs.load(rules, chosen))
