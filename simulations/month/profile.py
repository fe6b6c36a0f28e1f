"""A profile: what fleet, which faults how often, which jobs, which people. One YAML file; errors name file, line and key."""

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from agent.contract.errors import ConfigError
from brain import marked_yaml
from brain.marked_yaml import Document
from simulations.faults import Fix
from simulations.month import (
    kinds_bmc,
    kinds_gpu,
    kinds_gpu_more,
    kinds_host,
    kinds_jobs,
    kinds_network,
    kinds_shared,
    kinds_storage,
    kinds_system,
    kinds_watched,
)
from simulations.month.kinds import FaultKind

FOLDER = Path(__file__).resolve().parents[1] / "profiles"
_AREAS = (
    kinds_gpu, kinds_gpu_more, kinds_jobs, kinds_host, kinds_network, kinds_shared, kinds_storage, kinds_system, kinds_bmc,
    kinds_watched,
)  # fmt: skip
KINDS: Mapping[str, FaultKind] = {kind.name: kind for area in _AREAS for kind in area.KINDS}

Positive = Annotated[float, Field(gt=0)]
NotNegative = Annotated[float, Field(ge=0)]
Share = Annotated[float, Field(ge=0, le=1)]
Count = Annotated[int, Field(ge=1, le=100_000)]
Remedy = Literal[
    "reset_gpu", "reset_all_gpus", "reload_driver", "limit_power", "restart_fabric_manager", "reset_port", "reset_nic",
    "set_mtu", "restart_service", "load_module", "persistence", "replace_master", "reboot", "cycle_power",
]  # fmt: skip


class _Part(BaseModel):
    """A part of a profile."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class Fleet(_Part):
    """The nodes, and where they stand."""

    nodes: Count
    days: Positive
    nodes_per_leaf: Count = 16
    nodes_per_rack: Count = 8


class HazardTail(_Part):
    """How unequal nodes are: this share of them has that share of the faults (lognormal hazards)."""

    share_of_nodes: Annotated[float, Field(gt=0, lt=1)] = 0.05
    share_of_faults: Annotated[float, Field(gt=0, lt=1)] = 0.5


class Cause(_Part):
    """What the source counts, and which kinds of faults it is made of."""

    # as printed; only the ratios count
    count: Positive
    # kind -> its share; only the ratios count
    kinds: Annotated[Mapping[str, Positive], Field(min_length=1)]


class JobMix(_Part):
    """Jobs of one size."""

    # of the nodes that are no spares
    share: Annotated[float, Field(gt=0, le=1)]
    # of one job; 0: one job on all of the share
    nodes: Annotated[int, Field(ge=0)] = 0
    # median of its run time (lognormal, sigma 0.8); 0: it runs all the time
    hours: NotNegative = 0


class JobProfile(_Part):
    """What runs on the fleet."""

    mix: tuple[JobMix, ...] = (JobMix(share=1.0),)
    spare_share: Annotated[float, Field(ge=0, lt=1)] = 0.02
    checkpoint_minutes: Positive = 30
    # from the start of a job to its first step: loading, compiling, reading the checkpoint
    start_minutes: NotNegative = 10
    # from the end of a job to its next start
    requeue_minutes: NotNegative = 1
    # how much slower a gang is with one slow node
    slower_by: Share = 0.1


class Lognormal(_Part):
    """A lognormal distribution."""

    median: Positive
    sigma: NotNegative
    most: Positive = 1e9


class PeopleProfile(_Part):
    """The people of the site; the same for every policy."""

    # from a job's failure until somebody without alerts notices
    notice_minutes: Lognormal = Lognormal(median=30, sigma=0.8)
    # until somebody without alerts notices what harms no job
    notice_quiet_hours: Lognormal = Lognormal(median=48, sigma=1.0)
    # from a page until somebody knows what is wrong and begins
    look_minutes: Lognormal = Lognormal(median=20, sigma=0.9, most=480)
    # from the ticket until the part is reseated or replaced; begun in the hours of `shift` only
    hands_hours: Lognormal = Lognormal(median=10.45, sigma=2.74, most=336)
    # UTC hours of Monday to Friday
    shift: tuple[int, int] = (8, 18)


class HoldProfile(_Part):
    """Holds that people put on a rack while they work there: nobody else is to touch its nodes."""

    per_1000_node_days: NotNegative = 0.5
    hours: Positive = 4


class TimesProfile(_Part):
    """How long remedies take."""

    boot_minutes: Positive = 12
    reset_seconds: Positive = 100
    test_seconds: Positive = 180


class Profile(_Part):
    """All that a month is drawn from."""

    title: str
    source: str
    fleet: Fleet
    # of the causes together
    faults_per_1000_node_days: Positive
    causes: Annotated[Mapping[str, Cause], Field(min_length=1)]
    tail: HazardTail = HazardTail()
    # kind -> how often in 1000 node-days; needs nothing to be done
    noise_per_1000_node_days: Mapping[str, NotNegative] = {}
    # kind -> remedy -> the share of these faults that it ends, in place of gpuward's assumption
    cures: Mapping[str, Mapping[Remedy, Share]] = {}
    jobs: JobProfile = JobProfile()
    people: PeopleProfile = PeopleProfile()
    holds: HoldProfile = HoldProfile()
    times: TimesProfile = TimesProfile()

    def cures_of(self, kind: FaultKind) -> Mapping[Fix, float]:
        """Remedy -> the share of the faults of a kind that it ends, at least; from the gentlest."""
        own = {Fix[name.upper()]: share for name, share in self.cures.get(kind.name, {}).items()}
        return {fix: own[fix] for fix in Fix if fix in own} if kind.name in self.cures else kind.cures


def shipped() -> list[str]:
    """The names of the profiles that gpuward comes with."""
    return sorted(path.stem for path in FOLDER.glob("*.yaml"))


def load(name: str) -> Profile:
    """A shipped profile by its name, or a site's own by its path. ConfigError: what is wrong where."""
    path = Path(name)
    if path.suffix not in (".yaml", ".yml"):
        path = FOLDER / f"{name}.yaml"
        if not path.is_file():
            raise ConfigError(
                f"there is no profile {name!r} (have: {', '.join(shipped())}); name a file of your own by its path, *.yaml"
            )
        document = marked_yaml.read(path, path.name)
    else:
        document = marked_yaml.read(path, name)
    profile = _parsed(document)
    if document.errors or profile is None:
        raise ConfigError("\n".join(map(str, document.errors)))
    return profile


def _parsed(document: Document) -> Profile | None:
    if document.errors:
        return None
    if not isinstance(document.value, dict):
        document.error((), "want a mapping: title, source, fleet, faults_per_1000_node_days, causes")
        return None
    try:
        profile = Profile.model_validate(document.value)
    except ValidationError as error:
        for one in error.errors():
            key = tuple(part for part in one["loc"] if part != "[key]")
            document.error(key, one["msg"])
        return None
    _check_kinds(document, profile)
    return profile


def _check_kinds(document: Document, profile: Profile) -> None:
    named: list[tuple[str, ...]] = [
        ("causes", cause, "kinds", kind) for cause, one in profile.causes.items() for kind in one.kinds
    ]
    named += [("noise_per_1000_node_days", kind) for kind in profile.noise_per_1000_node_days]
    named += [("cures", kind) for kind in profile.cures]
    for key in named:
        kind = KINDS.get(key[-1])
        if kind is None:
            document.error(key, f"is no kind of fault (have: {', '.join(KINDS)})")
        elif key[0] == "noise_per_1000_node_days" and not kind.benign:
            document.error(
                key, "is a fault, not noise: something must be done about it; name it under a cause"
            )
    if math.fsum(mix.share for mix in profile.jobs.mix) > 1 + 1e-9:
        document.error(("jobs", "mix"), "has shares of more than all nodes")
    first, last = profile.people.shift
    if not 0 <= first < last <= 24:
        document.error(("people", "shift"), "want two hours of a day, the first one earlier: [8, 18]")
