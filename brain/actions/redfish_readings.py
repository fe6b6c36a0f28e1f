"""Sensors and event log through Redfish, in few requests and bounded.

Old BMCs have `Thermal` and `Power` in each chassis, newer ones (since 2020.4) `ThermalSubsystem`, `PowerSubsystem` and
`EnvironmentMetrics`. Each takes one request, except the power supplies of the newer kind.
"""

import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from sushy import exceptions as says

from agent.contract.messages import Scalar, clip
from brain.actions.bmc_base import Readings

Get = Callable[[str], dict[str, Any]]
_CHASSIS = 8  # GPU boards list one for each module
_SUPPLIES = 16
_LOGS = 3
_EVENTS = 20
_WELL = ("OK", "", "None")
_ALIVE = ("Enabled", "StandbyOffline", "StandbySpare", "")  # Status.State; an Absent part has no reading
_FACTS = ("Manufacturer", "Model", "SerialNumber", "BiosVersion", "LastResetTime")


def collect(get: Get, system: Mapping[str, Any], within_s: float) -> Readings:
    """Reads until everything is read or the time is up."""
    return _Reader(get, time.monotonic() + within_s).read(system)


class _Reader:
    def __init__(self, get: Get, ends_s: float) -> None:
        self._get, self._ends_s = get, ends_s
        self._sensors: dict[str, str] = {}
        self._bad: list[str] = []
        self._missing: list[str] = []

    def read(self, system: Mapping[str, Any]) -> Readings:
        facts: dict[str, Scalar] = {key: str(system[key]) for key in _FACTS if system.get(key)}
        health = _at(system, "Status")
        facts["Health"] = str(health.get("HealthRollup") or health.get("Health") or "not told")
        if last := _at(system, "BootProgress").get("LastState"):
            facts["BootProgress"] = str(last)
        links = _at(system, "Links")
        for path in _paths(links.get("Chassis"))[:_CHASSIS]:
            self._chassis(self._try(path), path.rsplit("/", 1)[-1])
        events = self._events([system, *(self._try(path) for path in _paths(links.get("ManagedBy"))[:2])])
        return Readings(
            facts=facts,
            sensors=self._sensors,
            bad=tuple(self._bad),
            events=events,
            missing=tuple(self._missing),
        )

    def _try(self, path: str) -> dict[str, Any]:
        """Returns a resource; when it cannot be read, an empty one, and records that."""
        if not path:
            return {}
        if time.monotonic() > self._ends_s:
            self._missing.append(f"{path}: no time left")
            return {}
        try:
            return self._get(path)
        except (says.SushyError, ValueError) as error:
            self._missing.append(f"{path}: {clip(' '.join(str(error).split()), 120)}")
            return {}

    def _chassis(self, chassis: Mapping[str, Any], name: str) -> None:
        thermal = self._try(_link(chassis, "Thermal"))
        for one in _rows(thermal, "Temperatures"):
            self._add(name, one, one.get("ReadingCelsius"), "°C")
        for one in _rows(thermal, "Fans"):
            self._add(name, one, one.get("Reading"), str(one.get("ReadingUnits") or ""))
        power = self._try(_link(chassis, "Power"))
        for one in _rows(power, "PowerControl"):
            self._add(name, one, one.get("PowerConsumedWatts"), "W")
        for one in _rows(power, "PowerSupplies"):
            self._supply(name, one)
        if not thermal:
            self._newer(chassis, name)
        if not power:
            supplies = self._try(_link(self._try(_link(chassis, "PowerSubsystem")), "PowerSupplies"))
            for path in _paths(supplies.get("Members"))[:_SUPPLIES]:
                self._supply(name, self._try(path))

    def _newer(self, chassis: Mapping[str, Any], name: str) -> None:
        metrics = self._try(_link(self._try(_link(chassis, "ThermalSubsystem")), "ThermalMetrics"))
        for one in _rows(metrics, "TemperatureReadingsCelsius"):
            self._add(name, one, one.get("Reading"), "°C")
        around = self._try(_link(chassis, "EnvironmentMetrics"))
        for one in _rows(around, "FanSpeedsPercent"):
            self._add(name, one, one.get("Reading", one.get("SpeedRPM")), "%")
        if watts := _at(around, "PowerWatts").get("Reading"):
            self._add(name, {"Name": "power"}, watts, "W")

    def _supply(self, chassis: str, one: Mapping[str, Any]) -> None:
        watts = one.get("LastPowerOutputWatts", one.get("PowerInputWatts"))
        self._add(chassis, one, watts if watts is not None else one.get("PowerCapacityWatts"), "W")

    def _add(self, chassis: str, one: Mapping[str, Any], reading: Any, unit: str) -> None:
        status = _at(one, "Status")
        state, health = str(status.get("State") or ""), str(status.get("Health") or "")
        well = health in _WELL and (state in _ALIVE or state == "Absent")
        if (state == "Absent" or (reading is None and not status)) and well:
            return
        name = str(one.get("Name") or one.get("DeviceName") or one.get("MemberId") or one.get("Id") or "?")
        name = name if name not in self._sensors else f"{chassis} {name}"
        value = "no reading" if reading is None else f"{reading} {unit}".strip()
        self._sensors[name] = value if well else f"{value} ({health or state})"
        if not well:
            self._bad.append(name)

    def _events(self, owners: list[Mapping[str, Any]]) -> tuple[str, ...]:
        """Returns the newest entries of the logs of the system and its manager."""
        found: list[tuple[str, str]] = []
        services = [path for one in owners for path in self._members(_link(one, "LogServices"))]
        for path in list(dict.fromkeys(services))[:_LOGS]:
            entries = _link(self._try(path), "Entries")
            for entry in self._newest(entries):
                when = str(entry.get("Created") or entry.get("EventTimestamp") or "")
                what = str(entry.get("Message") or entry.get("MessageId") or "")
                if what:
                    found.append((when, clip(f"{when} {entry.get('Severity') or ''} {what}", 200)))
        found.sort(reverse=True)
        return tuple(text for _, text in found[:_EVENTS])

    def _newest(self, path: str) -> list[Mapping[str, Any]]:
        """Returns both ends of a log: some logs begin with the oldest entry, some with the newest."""
        page = self._try(path)
        rows = _rows(page, "Members")
        count = page.get("Members@odata.count")
        if isinstance(count, int) and count > len(rows) and len(rows) > 0:
            rows += _rows(self._try(f"{path}?$skip={max(count - _EVENTS, len(rows))}"), "Members")
        return rows

    def _members(self, path: str) -> list[str]:
        return _paths(self._try(path).get("Members")) if path else []


def _at(of: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    found = of.get(key)
    return found if isinstance(found, Mapping) else {}


def _rows(of: Mapping[str, Any], key: str) -> list[Mapping[str, Any]]:
    found = of.get(key)
    return [one for one in found if isinstance(one, Mapping)] if isinstance(found, list) else []


def _link(of: Mapping[str, Any], key: str) -> str:
    return str(_at(of, key).get("@odata.id") or "")


def _paths(found: Any) -> list[str]:
    return list(_each(found)) if isinstance(found, list) else []


def _each(found: list[Any]) -> Iterator[str]:
    for one in found:
        if isinstance(one, Mapping) and isinstance(one.get("@odata.id"), str):
            yield one["@odata.id"]
