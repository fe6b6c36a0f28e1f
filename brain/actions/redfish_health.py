"""The health of a node through Redfish: chassis, memory, leak detectors, event log. Few requests, and bounded.

Sources: DSP0268 (Chassis, Thermal, Power, ThermalSubsystem, ThermalMetrics, Fan, PowerSubsystem, PowerSupply, LeakDetection,
LeakDetector, Sensor, Memory, MemoryMetrics, LogEntry). Old BMCs have `Thermal` and `Power` in each chassis, newer ones (since
2020.4) `ThermalSubsystem` and `PowerSubsystem`. A server has up to 32 memory modules, each with two resources: of those that
the BMC calls well, one look reads DIMMS_AT_ONCE, the next look the next ones.
"""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from agent.contract.messages import clip
from brain.actions.bmc_health import (
    MAX_TEXT,
    MOST_ENTRIES,
    BmcHealth,
    LogEntry,
    NodePart,
    PartKind,
    PartState,
    number,
    part,
    unique,
)
from brain.actions.redfish_reader import Get, RedfishReader, at, link, paths, rows

DIMMS_AT_ONCE = 4
_CHASSIS, _MEMBERS, _SENSORS, _DIMMS, _LOGS = 8, 32, 24, 64, 3
_TELLING = ("inlet", "intake", "ambient", "leak")  # sensors whose addresses say so are read first
_HEALTH = {"OK": PartState.WELL, "Warning": PartState.WARNING, "Critical": PartState.CRITICAL}
_ALIVE = ("Enabled", "StandbyOffline", "StandbySpare", "Starting", "Updating", "Qualified", "InTest", "")


def collect(get: Get, system: Mapping[str, Any], within_s: float, turn: int) -> BmcHealth:
    """Reads until everything is read or the time is up. `turn`: the number of this look at the node."""
    return _Look(get, within_s, turn).read(system)


class _Look(RedfishReader):
    def __init__(self, get: Get, within_s: float, turn: int) -> None:
        super().__init__(get, within_s)
        self._turn = turn
        self._parts: list[NodePart] = []
        self._now: datetime | None = None  # by the BMC's clock

    def read(self, system: Mapping[str, Any]) -> BmcHealth:
        around = at(system, "Links")
        several = paths(around.get("Chassis"))[:_CHASSIS]
        for path in several:
            self._chassis(self.tried(path), f" ({path.rsplit('/', 1)[-1]})" if len(several) > 1 else "")
        self._memory(system)
        self._whole(system)
        managers = [self.tried(path) for path in paths(around.get("ManagedBy"))[:2]]
        self._now = next((now for one in managers if (now := _time(one.get("DateTime"))) is not None), None)
        return BmcHealth(
            on=system.get("PowerState") in ("On", None),
            entries=self._entries([system, *managers]),
            parts=unique(self._parts),
            missing=tuple(self.unread),
        )

    def _all(self, path: str, most: int) -> list[dict[str, Any]]:
        """The members of a collection; one that is expanded already costs no further request."""
        found = self.tried(path)
        return [
            dict(one) if len(one) > 1 else self.tried(str(one.get("@odata.id") or ""))
            for one in rows(found, "Members")[:most]
        ]

    def _chassis(self, chassis: Mapping[str, Any], where: str) -> None:
        thermal = self.tried(link(chassis, "Thermal"))
        for one in rows(thermal, "Temperatures"):
            self._temperature(where, one, number(one.get("ReadingCelsius")))
        for one in rows(thermal, "Fans"):
            self._add(PartKind.FAN, where, one, number(one.get("Reading")))
        self._redundancy(PartKind.FAN_REDUNDANCY, where, rows(thermal, "Redundancy"))
        newer = self.tried(link(chassis, "ThermalSubsystem"))
        if not thermal:
            for one in self._all(link(newer, "Fans"), _MEMBERS):
                speed = at(one, "SpeedPercent")
                self._add(PartKind.FAN, where, one, number(speed.get("SpeedRPM", speed.get("Reading"))))
            self._redundancy(PartKind.FAN_REDUNDANCY, where, rows(newer, "FanRedundancy"))
            for one in rows(self.tried(link(newer, "ThermalMetrics")), "TemperatureReadingsCelsius"):
                self._temperature(where, one, number(one.get("Reading")))
        self._leaks(newer, where)
        power = self.tried(link(chassis, "Power"))
        for one in rows(power, "PowerSupplies"):
            self._add(PartKind.PSU, where, one, None)
        self._redundancy(PartKind.PSU_REDUNDANCY, where, rows(power, "Redundancy"))
        if not power:
            newer = self.tried(link(chassis, "PowerSubsystem"))
            for one in self._all(link(newer, "PowerSupplies"), _MEMBERS):
                self._add(PartKind.PSU, where, one, None)
            self._redundancy(PartKind.PSU_REDUNDANCY, where, rows(newer, "PowerSupplyRedundancy"))
        self._sensors(link(chassis, "Sensors"), where)

    def _sensors(self, path: str, where: str) -> None:
        """Only where nothing else has told of the air that comes in: there may be hundreds, each a request."""
        if not path or any(one.kind is PartKind.INLET for one in self._parts):
            return
        found = rows(self.tried(path), "Members")
        found.sort(key=lambda one: not any(w in str(one.get("@odata.id") or "").lower() for w in _TELLING))
        for row in found[:_SENSORS]:
            one = row if len(row) > 1 else self.tried(str(row.get("@odata.id") or ""))
            reading, kind = number(one.get("Reading")), str(one.get("ReadingType") or "")
            if kind == "Temperature":
                self._temperature(where, one, reading)
            else:
                self._add(PartKind.SENSOR, where, one, reading)

    def _temperature(self, where: str, one: Mapping[str, Any], reading: float | None) -> None:
        name = _name(one).lower()
        inlet = str(one.get("PhysicalContext") or "") == "Intake" or any(w in name for w in _TELLING[:3])
        thresholds = at(one, "Thresholds")
        limit = number(one.get("UpperThresholdCritical"))
        if limit is None:
            limit = number(at(thresholds, "UpperCritical").get("Reading"))
        self._add(PartKind.INLET if inlet else PartKind.SENSOR, where, one, reading, limit)

    def _leaks(self, thermal: Mapping[str, Any], where: str) -> None:
        detection = self.tried(link(thermal, "LeakDetection"))
        for one in self._all(link(detection, "LeakDetectors"), _MEMBERS):
            told = str(one.get("DetectorState") or "")
            state = _HEALTH.get(told, _state(one))
            if told not in ("Absent", "Unavailable"):
                self._parts.append(part(PartKind.LEAK, f"{_name(one)}{where}", state, text=told))

    def _redundancy(self, kind: PartKind, where: str, found: list[Mapping[str, Any]]) -> None:
        for index, one in enumerate(found):
            name = one.get("Name") or one.get("GroupName") or f"redundancy {index}"
            health, state = (
                str(at(one, "Status").get("Health") or ""),
                str(at(one, "Status").get("State") or ""),
            )
            if state == "Disabled" or not (health or state):
                continue  # nobody has asked for redundancy here
            self._parts.append(part(kind, f"{name}{where}", _state(one), text=f"{state} {health}"))

    def _memory(self, system: Mapping[str, Any]) -> None:
        """The modules that the BMC does not call well, if its summary says that there is one, and some others in turn."""
        modules = paths(self.tried(link(system, "Memory")).get("Members"))[:_DIMMS]
        summary = at(at(system, "MemorySummary"), "Status")
        ill = str(summary.get("HealthRollup") or summary.get("Health") or "OK") != "OK"
        first = self._turn * DIMMS_AT_ONCE
        turn = {modules[(first + n) % len(modules)] for n in range(min(DIMMS_AT_ONCE, len(modules)))}
        for path in modules:
            if ill or path in turn:
                self._dimm(self.tried(path), counted=path in turn)

    def _dimm(self, one: Mapping[str, Any], *, counted: bool) -> None:
        if not one or str(at(one, "Status").get("State") or "") == "Absent":
            return
        state, said = _state(one), str(at(one, "Status").get("Health") or "")
        metrics = self.tried(link(one, "Metrics")) if counted or state is not PartState.WELL else {}
        counts = at(metrics, "LifeTime") or at(metrics, "CurrentPeriod")
        alarms = at(at(metrics, "HealthData"), "AlarmTrips")
        lost = int(number(counts.get("UncorrectableECCErrorCount")) or 0)
        if (
            alarms.get("UncorrectableECCError") is True
            or at(metrics, "HealthData").get("DataLossDetected") is True
        ):
            state, said = PartState.CRITICAL, "uncorrectable errors"
        elif alarms.get("CorrectableECCError") is True and state is PartState.WELL:
            state, said = PartState.WARNING, "more corrected errors than the BMC allows"
        corrected = number(counts.get("CorrectableECCErrorCount"))
        self._parts.append(
            part(PartKind.DIMM, _name(one), state, reading=corrected, uncorrected=lost, text=said)
        )

    def _whole(self, system: Mapping[str, Any]) -> None:
        told = at(system, "Status")
        said = str(told.get("HealthRollup") or told.get("Health") or "")
        self._parts.append(
            part(PartKind.SYSTEM, "system", _HEALTH.get(said, PartState.UNKNOWN), text=f"Health {said}")
        )

    def _add(
        self,
        kind: PartKind,
        where: str,
        one: Mapping[str, Any],
        reading: float | None,
        limit: float | None = None,
    ) -> None:
        told = at(one, "Status")
        if not one or str(told.get("State") or "") == "Absent":
            return
        said = " ".join(str(told.get(key) or "") for key in ("State", "Health")).strip()
        self._parts.append(
            part(kind, f"{_name(one)}{where}", _state(one), reading=reading, limit=limit, text=said)
        )

    def _entries(self, owners: list[Mapping[str, Any]]) -> tuple[LogEntry, ...]:
        found: dict[str, tuple[str, LogEntry]] = {}
        services = [
            path for one in owners for path in paths(self.tried(link(one, "LogServices")).get("Members"))
        ]
        for path in list(dict.fromkeys(services))[:_LOGS]:
            for raw in self.newest(link(self.tried(path), "Entries")):
                stamp = str(raw.get("Created") or raw.get("EventTimestamp") or "")
                entry = self._entry(path, raw, stamp)
                if entry is not None:
                    found[entry.id] = (stamp, entry)
        newest = sorted(found.values(), key=lambda pair: pair[0], reverse=True)
        return tuple(entry for _, entry in newest[:MOST_ENTRIES])

    def _entry(self, path: str, raw: Mapping[str, Any], stamp: str) -> LogEntry | None:
        said = str(raw.get("Message") or raw.get("MessageId") or "")
        if not said or str(raw.get("EntryCode") or "").startswith("Deassert"):
            return None
        then = _time(stamp)
        age = (self._now - then).total_seconds() if self._now is not None and then is not None else None
        sensor = str(raw.get("SensorType") or "")
        return LogEntry(
            id=clip(f"{path.rsplit('/', 1)[-1]} {raw.get('Id') or '?'} {stamp}", 120),
            state=_HEALTH.get(str(raw.get("Severity") or ""), PartState.UNKNOWN),
            text=clip(" ".join(f"{sensor} {said}".split()), MAX_TEXT),
            age_s=age,
        )


def _state(one: Mapping[str, Any]) -> PartState:
    """The state in a `Status`; a part that is not in use says nothing by it."""
    told = at(one, "Status")
    state, health = str(told.get("State") or ""), str(told.get("Health") or "")
    if state == "UnavailableOffline" and health in ("", "OK"):
        return PartState.CRITICAL  # DSP0268: present, and cannot be used
    if health in _HEALTH:
        return _HEALTH[health] if state in _ALIVE or health != "OK" else PartState.UNKNOWN
    return PartState.UNKNOWN


def _name(one: Mapping[str, Any]) -> str:
    return str(one.get("Name") or one.get("DeviceName") or one.get("MemberId") or one.get("Id") or "?")


def _time(stamp: object) -> datetime | None:
    """An ISO time with its zone; None: there is none, or it says no zone."""
    try:
        then = datetime.fromisoformat(str(stamp or ""))
    except ValueError:
        return None
    return then if then.tzinfo is not None else None
