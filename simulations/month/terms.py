"""What a sweep can set: the site's settings, the profile's numbers, the mode of runbooks, and the safety gates. Pure.

A key that would change which faults come (the causes, the tail, the fleet) is none of them: what a setting is worth shows only
on the same faults.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, fields, replace
from math import isfinite
from typing import Any

from pydantic import BaseModel, ValidationError

from agent.contract.errors import ConfigError
from agent.shared.words import t
from brain.core.pack.spec import Mode, Pack, Settings
from brain.setting_ranges import RANGES
from simulations.month.profile import HoldProfile, JobProfile, Lognormal, PeopleProfile, Profile, TimesProfile

_NEVER = 10**9
_PARTS: Mapping[str, type[BaseModel]] = {
    "jobs": JobProfile,
    "people": PeopleProfile,
    "holds": HoldProfile,
    "times": TimesProfile,
}
# What people say for them.
SHORT: Mapping[str, str] = {
    "budget": "disruptive_runs",
    "hold-off": "hold_off_s",
    "checkpoint": "jobs.checkpoint_minutes",
    "spares": "jobs.spare_share",
}
# Safety gate -> the settings with which it objects to nothing. Those that meet nothing in a month are not here (maintenance,
# protected jobs), nor what would be no remedy at all: two runs on one node, a node of which nothing is heard.
_OPEN: Mapping[str, Mapping[str, float]] = {
    "hold": {},
    "approval": {},
    "tries": {},
    "shared": {
        "shared_nodes": _NEVER, "shared_leaf_nodes": _NEVER, "shared_small_share": _NEVER, "shared_at_once_s": 0,
    },
    "budget": {
        "disruptive_runs": _NEVER, "disruptive_runs_per_leaf": _NEVER, "disruptive_runs_per_runbook": _NEVER,
        "disruptive_runs_per_job": _NEVER,
    },
    "breaker": {"breaker_runs": _NEVER},
    "related": {"same_cause_nodes": _NEVER, "same_cause_nodes_per_day": _NEVER},
    "offender": {"remedies_per_day": _NEVER, "remedies_per_week": _NEVER, "remedies_per_month": _NEVER},
    "settling": {"hold_off_s": 0},
    "stale": {"stale_s": _NEVER},
    "harm": {"harm_nodes": 0},
}  # fmt: skip
GATES = tuple(_OPEN)


@dataclass(frozen=True, slots=True, kw_only=True)
class Terms:
    """How gpuward is set in a month."""

    # of the site's settings, those that are not the default
    settings: Mapping[str, float | int] | None = None
    mode: Mode = Mode.AUTO
    # gates that let everything through
    open_gates: tuple[str, ...] = ()

    @property
    def strict(self) -> bool:
        """Whether the safety laws are to hold: with a gate open, what they would have forbidden is counted."""
        return not self.open_gates

    def of_site(self, modes: Settings) -> Settings:
        """The site's settings."""
        changed: dict[str, Any] = dict(self.settings or {})
        for gate in self.open_gates:
            changed |= _OPEN[gate]
        return replace(modes, **changed)

    def of_pack(self, pack: Pack) -> Pack:
        """The rules and runbooks."""
        if "tries" in self.open_gates:
            pack = replace(pack, runbooks=tuple(replace(one, tries=_NEVER) for one in pack.runbooks))
        if "approval" in self.open_gates:
            pack = replace(pack, runbooks=tuple(replace(one, at_most=Mode.AUTO) for one in pack.runbooks))
        return pack


AS_SHIPPED = Terms()


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """One value of the setting that is swept."""

    key: str
    # as it was written
    value: str
    terms: Terms
    profile: Profile


def all_keys() -> list[str]:
    """All that can be swept, the short names first."""
    return [*SHORT, "mode", "gates", *_of_settings(), *_of_profile()]


def _of_settings() -> list[str]:
    """Settings that are one number, and do something in a month."""
    silent = ("group_", "shared_share", "disruptive_runs_per_job", "page_repeat_s")
    names = {field.name for field in fields(Settings)}
    return [name for name in RANGES if name in names and not name.startswith(silent)]


def _of_profile() -> list[str]:
    """Dotted names of the profile's numbers."""
    return [f"{part}.{key}" for part, model in _PARTS.items() for key in _numbers(model)]


def _numbers(model: type[BaseModel]) -> Iterable[str]:
    for name, field in model.model_fields.items():
        if field.annotation is Lognormal:
            yield from (f"{name}.{part}" for part in Lognormal.model_fields)
        elif field.annotation in (float, int):
            yield name


def parsed(text: str, profile: Profile) -> list[Setting]:
    """`KEY=V1,V2,...`: a setting for each value. ConfigError: what is wrong, and what could stand there."""
    key, sign, rest = text.partition("=")
    values = [value.strip() for value in rest.split(",") if value.strip()]
    if not sign or not values:
        raise ConfigError(t("--sweep wants KEY=V1,V2,...: {text} is none", text=repr(text)))
    if len(set(values)) < len(values):
        raise ConfigError(t("--sweep {key}: a value stands there twice", key=key))
    name = SHORT.get(key, key)
    if name not in all_keys():
        raise ConfigError(
            t("--sweep: there is no key {key} (have: {keys})", key=repr(key), keys=", ".join(all_keys()))
        )
    make = _maker(name)
    return [make(key, name, value, profile) for value in values]


_Make = Callable[[str, str, str, Profile], Setting]


def _maker(name: str) -> _Make:
    return {"mode": _mode, "gates": _gates}.get(name, _of_part if "." in name else _of_site)


def _mode(key: str, _name: str, value: str, profile: Profile) -> Setting:
    if value not in list(Mode):
        raise _wrong(key, value, ", ".join(Mode))
    return Setting(key=key, value=value, terms=Terms(mode=Mode(value)), profile=profile)


def _gates(key: str, _name: str, value: str, profile: Profile) -> Setting:
    """`on`, `off`, or all but one: `no-shared`."""
    if value not in ("on", "off") and value.removeprefix("no-") not in GATES:
        raise _wrong(key, value, ", ".join(("on", "off", *(f"no-{gate}" for gate in GATES))))
    gates = {"on": (), "off": GATES}.get(value, (value.removeprefix("no-"),))
    return Setting(key=key, value=value, terms=Terms(open_gates=gates), profile=profile)


def _of_site(key: str, name: str, value: str, profile: Profile) -> Setting:
    least, most = RANGES[name]
    kind = int if isinstance(getattr(Settings(), name), int) else float
    try:
        number = kind(value)
    except ValueError as error:
        raise _wrong(key, value, _range(least, most)) from error
    if not least <= number <= most:
        raise _wrong(key, value, _range(least, most))
    return Setting(key=key, value=value, terms=Terms(settings={name: number}), profile=profile)


def _of_part(key: str, name: str, value: str, profile: Profile) -> Setting:
    given: dict[str, Any] = profile.model_dump(mode="json")
    *way, last = name.split(".")
    inner = given
    for step in way:
        inner = inner[step]
    inner[last] = value
    try:
        if not isfinite(float(value)):
            raise _wrong(key, value, t("a number"))
        changed = Profile.model_validate(given)
    except ValidationError as error:
        raise _wrong(key, value, error.errors()[0]["msg"]) from error
    except ValueError as error:
        raise _wrong(key, value, t("a number")) from error
    return Setting(key=key, value=value, terms=AS_SHIPPED, profile=changed)


def _range(least: float, most: float) -> str:
    return f"{least:,g} to {most:,g}"


def _wrong(key: str, value: str, want: str) -> ConfigError:
    return ConfigError(
        t("--sweep {key}: {value} cannot stand there (want: {want})", key=key, value=repr(value), want=want)
    )
