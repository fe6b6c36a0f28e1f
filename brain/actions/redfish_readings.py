"""Sensors and event log through Redfish, in few requests and bounded.

Old BMCs have `Thermal` and `Power` in each chassis, newer ones (since 2020.4) `ThermalSubsystem`, `PowerSubsystem` and
`EnvironmentMetrics`. Each takes one request, except the power supplies of the newer kind.
"""

from collections.abc import Mapping
from typing import Any

from agent.contract.messages import Scalar, clip
from brain.actions.bmc_base import Readings
from brain.actions.redfish_reader import Get, RedfishReader, at, link, paths, rows

_CHASSIS = 8  # GPU boards list one for each module
_SUPPLIES = 16
_LOGS = 3
_EVENTS = 20
_WELL = ("OK", "", "None")
_ALIVE = ("Enabled", "StandbyOffline", "StandbySpare", "")  # Status.State; an Absent part has no reading
_FACTS = ("Manufacturer", "Model", "SerialNumber", "BiosVersion", "LastResetTime")


def collect(get: Get, system: Mapping[str, Any], within_s: float) -> Readings:
    """Reads until everything is read or the time is up."""
    return _Reader(get, within_s).read(system)


class _Reader(RedfishReader):
    def __init__(self, get: Get, within_s: float) -> None:
        super().__init__(get, within_s)
        self._sensors: dict[str, str] = {}
        self._bad: list[str] = []

    def read(self, system: Mapping[str, Any]) -> Readings:
        facts: dict[str, Scalar] = {key: str(system[key]) for key in _FACTS if system.get(key)}
        health = at(system, "Status")
        facts["Health"] = str(health.get("HealthRollup") or health.get("Health") or "not told")
        if last := at(system, "BootProgress").get("LastState"):
            facts["BootProgress"] = str(last)
        links = at(system, "Links")
        for path in paths(links.get("Chassis"))[:_CHASSIS]:
            self._chassis(self.tried(path), path.rsplit("/", 1)[-1])
        events = self._events([system, *(self.tried(path) for path in paths(links.get("ManagedBy"))[:2])])
        return Readings(
            facts=facts,
            sensors=self._sensors,
            bad=tuple(self._bad),
            events=events,
            missing=tuple(self.unread),
        )

    def _chassis(self, chassis: Mapping[str, Any], name: str) -> None:
        thermal = self.tried(link(chassis, "Thermal"))
        for one in rows(thermal, "Temperatures"):
            self._add(name, one, one.get("ReadingCelsius"), "°C")
        for one in rows(thermal, "Fans"):
            self._add(name, one, one.get("Reading"), str(one.get("ReadingUnits") or ""))
        power = self.tried(link(chassis, "Power"))
        for one in rows(power, "PowerControl"):
            self._add(name, one, one.get("PowerConsumedWatts"), "W")
        for one in rows(power, "PowerSupplies"):
            self._supply(name, one)
        if not thermal:
            self._newer(chassis, name)
        if not power:
            supplies = self.tried(link(self.tried(link(chassis, "PowerSubsystem")), "PowerSupplies"))
            for path in paths(supplies.get("Members"))[:_SUPPLIES]:
                self._supply(name, self.tried(path))

    def _newer(self, chassis: Mapping[str, Any], name: str) -> None:
        metrics = self.tried(link(self.tried(link(chassis, "ThermalSubsystem")), "ThermalMetrics"))
        for one in rows(metrics, "TemperatureReadingsCelsius"):
            self._add(name, one, one.get("Reading"), "°C")
        around = self.tried(link(chassis, "EnvironmentMetrics"))
        for one in rows(around, "FanSpeedsPercent"):
            self._add(name, one, one.get("Reading", one.get("SpeedRPM")), "%")
        if watts := at(around, "PowerWatts").get("Reading"):
            self._add(name, {"Name": "power"}, watts, "W")

    def _supply(self, chassis: str, one: Mapping[str, Any]) -> None:
        watts = one.get("LastPowerOutputWatts", one.get("PowerInputWatts"))
        self._add(chassis, one, watts if watts is not None else one.get("PowerCapacityWatts"), "W")

    def _add(self, chassis: str, one: Mapping[str, Any], reading: Any, unit: str) -> None:
        status = at(one, "Status")
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
        services = [path for one in owners for path in self.members(link(one, "LogServices"))]
        for path in list(dict.fromkeys(services))[:_LOGS]:
            entries = link(self.tried(path), "Entries")
            for entry in self.newest(entries):
                when = str(entry.get("Created") or entry.get("EventTimestamp") or "")
                what = str(entry.get("Message") or entry.get("MessageId") or "")
                if what:
                    found.append((when, clip(f"{when} {entry.get('Severity') or ''} {what}", 200)))
        found.sort(reverse=True)
        return tuple(text for _, text in found[:_EVENTS])
