"""Resources of whole nodes for the Redfish server of the tests: chassis, supplies, fans, modules, logs; and its errors."""

from typing import Any

from aiohttp import web

SYSTEM = "/redfish/v1/Systems/1"


def error(status: int, text: str) -> web.Response:
    """What a BMC answers that does not do as it is told."""
    return web.json_response({"error": {"code": "Base.1.0.GeneralError", "message": text}}, status=status)


def resources() -> dict[str, Any]:
    """The resources of a node with an old chassis, a new one, and one that answers 404."""
    base, logs = "/redfish/v1/Chassis", f"{SYSTEM}/LogServices"

    def entry(day: int) -> dict[str, Any]:
        return {
            "Created": f"2026-05-{day:02}T00:00:00Z",
            "Severity": "Critical",
            "Message": f"fault {day} " + "x" * 400,
        }

    ok = {"State": "Enabled", "Health": "OK"}
    return {
        SYSTEM: {
            "SerialNumber": "S123",
            "LogServices": {"@odata.id": logs},
            "Links": {"Chassis": [{"@odata.id": f"{base}/{name}"} for name in ("gone", "old", "new")]},
        },
        f"{base}/old": {
            "Thermal": {"@odata.id": f"{base}/old/Thermal"},
            "Power": {"@odata.id": f"{base}/old/Power"},
        },
        f"{base}/old/Thermal": {
            "Temperatures": [
                {"Name": "Inlet", "ReadingCelsius": 22, "Status": ok},
                *({"Name": f"DIMM {n}", "ReadingCelsius": 40 + n, "Status": ok} for n in range(40)),
            ],
            "Fans": [{"Name": "Empty slot", "Status": {"State": "Absent"}}],
        },
        f"{base}/old/Power": {
            "PowerSupplies": [
                {"Name": "PSU 1", "LastPowerOutputWatts": 700, "Status": ok},
                {"Name": "PSU 2", "Status": {"State": "Enabled", "Health": "Critical"}},
            ]
        },
        f"{base}/new": {
            "ThermalSubsystem": {"@odata.id": f"{base}/new/ThermalSubsystem"},
            "EnvironmentMetrics": {"@odata.id": f"{base}/new/EnvironmentMetrics"},
        },
        f"{base}/new/ThermalSubsystem": {"ThermalMetrics": {"@odata.id": f"{base}/new/ThermalMetrics"}},
        f"{base}/new/ThermalMetrics": {
            "TemperatureReadingsCelsius": [{"DeviceName": "GPU 0", "Reading": 61.5}]
        },
        f"{base}/new/EnvironmentMetrics": {"PowerWatts": {"Reading": 5400}},
        logs: {"Members": [{"@odata.id": f"{logs}/SEL"}]},
        f"{logs}/SEL": {"Entries": {"@odata.id": f"{logs}/SEL/Entries"}},
        f"{logs}/SEL/Entries": {"Members@odata.count": 30, "Members": [entry(day) for day in range(1, 31)]},
    }


def chassis_of(*, newer: bool = False, ill: bool = False) -> dict[str, Any]:
    """The resources of a node with six supplies, four fans, an inlet and twelve memory modules, by the old schemas or those of
    2020.4; the newer ones have a leak detector, too. `ill`: one of each has failed.
    """
    base, system = "/redfish/v1/Chassis/1U", SYSTEM
    ok = {"State": "Enabled", "Health": "OK"}
    bad = {"State": "Enabled", "Health": "Critical"} if ill else ok
    supplies = [{"Name": f"PSU {n}", "Status": bad if n == 2 else ok} for n in range(1, 7)]
    fans = [
        {"Name": f"Fan {n}", "Reading": 0 if ill and n == 3 else 9000, "Status": bad if n == 3 else ok}
        for n in range(1, 5)
    ]
    inlet = {"Name": "Inlet Temp", "PhysicalContext": "Intake", "Status": bad}
    celsius = 47 if ill else 24
    found: dict[str, Any] = {
        system: {
            "Status": {"State": "Enabled", "HealthRollup": bad["Health"]},
            "Links": {
                "Chassis": [{"@odata.id": base}],
                "ManagedBy": [{"@odata.id": "/redfish/v1/Managers/1"}],
            },
            "Memory": {"@odata.id": f"{system}/Memory"},
            "MemorySummary": {"Status": {"HealthRollup": bad["Health"]}},
        },
        f"{system}/Memory": {"Members": [{"@odata.id": f"{system}/Memory/{n}"} for n in range(12)]},
        "/redfish/v1/Managers/1": {
            "DateTime": "2026-11-30T10:15:00+00:00",
            "LogServices": {"@odata.id": "/redfish/v1/Managers/1/LogServices"},
        },
        "/redfish/v1/Managers/1/LogServices": {
            "Members": [{"@odata.id": "/redfish/v1/Managers/1/LogServices/Sel"}]
        },
        "/redfish/v1/Managers/1/LogServices/Sel": {
            "Entries": {"@odata.id": "/redfish/v1/Managers/1/LogServices/Sel/Entries"}
        },
        "/redfish/v1/Managers/1/LogServices/Sel/Entries": {
            "Members": [
                {
                    "Id": "1",
                    "Severity": "Critical",
                    "Created": "2026-01-02T00:00:00+00:00",
                    "Message": "PSU 1: old",
                },
                *(
                    [
                        {
                            "Id": "2",
                            "Severity": "Critical",
                            "Created": "2026-11-30T10:14:00+00:00",
                            "SensorType": "Processor",
                            "Message": "CPU1: IERR",
                        }
                    ]
                    if ill
                    else []
                ),
            ]
        },
    }
    for n in range(12):
        found[f"{system}/Memory/{n}"] = {
            "Name": f"DIMM {n}",
            "Status": bad if n == 9 else ok,
            "Metrics": {"@odata.id": f"{system}/Memory/{n}/Metrics"},
        }
        lost = ill and n == 9
        found[f"{system}/Memory/{n}/Metrics"] = {
            "LifeTime": {"CorrectableECCErrorCount": 12, "UncorrectableECCErrorCount": int(lost)},
            "HealthData": {"AlarmTrips": {"UncorrectableECCError": lost}},
        }
    if newer:
        return found | _newer(base, supplies, fans, inlet, celsius, bad)
    redundancy = [{"Name": "redundancy 0", "Mode": "N+m", "Status": bad}]
    limits = {"UpperThresholdCritical": 45, "ReadingCelsius": celsius}
    found[base] = {"Thermal": {"@odata.id": f"{base}/Thermal"}, "Power": {"@odata.id": f"{base}/Power"}}
    found[f"{base}/Thermal"] = {"Temperatures": [inlet | limits], "Fans": fans}
    found[f"{base}/Power"] = {"PowerSupplies": supplies, "Redundancy": redundancy}
    return found


def _newer(
    base: str,
    supplies: list[dict[str, Any]],
    fans: list[dict[str, Any]],
    inlet: dict[str, Any],
    celsius: int,
    bad: dict[str, str],
) -> dict[str, Any]:
    """The same by ThermalSubsystem, PowerSubsystem, Sensors and LeakDetection."""
    found: dict[str, Any] = {}

    def collection(path: str, rows: list[dict[str, Any]]) -> dict[str, str]:
        found[path] = {"Members": [{"@odata.id": f"{path}/{n}"} for n in range(len(rows))]}
        for n, row in enumerate(rows):
            found[f"{path}/{n}"] = row
        return {"@odata.id": path}

    thermal, power = f"{base}/ThermalSubsystem", f"{base}/PowerSubsystem"
    limit = {"UpperCritical": {"Reading": 45}}
    sensor = inlet | {"ReadingType": "Temperature", "Reading": celsius, "Thresholds": limit}
    speeds = [
        {"Name": one["Name"], "Status": one["Status"], "SpeedPercent": {"SpeedRPM": one["Reading"]}}
        for one in fans
    ]
    found[base] = {
        "ThermalSubsystem": {"@odata.id": thermal},
        "PowerSubsystem": {"@odata.id": power},
        "Sensors": collection(f"{base}/Sensors", [sensor]),
    }
    found[thermal] = {
        "Fans": collection(f"{thermal}/Fans", speeds),
        "LeakDetection": {"@odata.id": f"{thermal}/LeakDetection"},
    }
    wet = {"Name": "Cold plate", "DetectorState": bad["Health"], "Status": bad}
    found[f"{thermal}/LeakDetection"] = {
        "LeakDetectors": collection(f"{thermal}/LeakDetection/LeakDetectors", [wet])
    }
    found[power] = {
        "PowerSupplies": collection(f"{power}/PowerSupplies", supplies),
        "PowerSupplyRedundancy": [{"GroupName": "redundancy 0", "RedundancyType": "NPlusM", "Status": bad}],
    }
    return found
