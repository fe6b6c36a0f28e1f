"""The tables `[bmc.<name>]`: what is wrong in them is reported when the brain starts, by key."""

import tomllib
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest

from agent.contract.errors import ConfigError
from brain.actions.ipmi import IpmiOptions
from brain.actions.redfish import RedfishOptions
from tests.real.bmc_kit import built, password_file


def table(folder: Path, **changes: Any) -> dict[str, dict[str, Any]]:
    """One table; what is None is left out."""
    good = {"type": "redfish", "address": "https://127.0.0.1", "nodes": "gpu01", "user": "admin"}
    good["password_file"] = str(password_file(folder))
    return {"racks": {key: value for key, value in {**good, **changes}.items() if value is not None}}


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"address": "http://127.0.0.1:1"}, r"bmc\.racks: .*insecure"),
        ({"address": "127.0.0.1"}, r"bmc\.racks: the address"),
        ({"nodes": "gpu*"}, r"bmc\.racks\.address: must contain \{node\}"),
        ({"address": "https://{rack}"}, r"bmc\.racks\.address: knows only"),
        ({"address": None}, r"bmc\.racks: give either"),
        ({"password_file": "relative"}, r"bmc\.racks\.password_file: .*relative cannot be read"),
        ({"password_file": "/nowhere"}, r"bmc\.racks\.password_file: /nowhere cannot be read"),
        ({"ca_file": "/nowhere"}, r"bmc\.racks\.ca_file"),
        ({"fallback": "other"}, r"bmc\.racks\.fallback: there is no"),
        ({"fallback": "racks"}, r"bmc\.racks\.fallback: goes round"),
        ({"colour": "blue"}, r"bmc\.racks\.colour: is not an option"),
        ({"poll_s": 0}, r"bmc\.racks\.poll_s"),
        ({"type": "serial"}, r"bmc\.racks\.type: unknown type 'serial' \(have: redfish, ipmi\)"),
    ],
)
def test_a_wrong_table_of_redfish_names_its_key(tmp_path: Path, changes: dict[str, Any], says: str) -> None:
    """At the brain's start, not at the first fault."""
    with pytest.raises(ConfigError, match=says):
        built(table(tmp_path, **changes))


def test_the_example_configuration_names_every_option(tmp_path: Path) -> None:
    """deploy/brain.toml is what people copy from: it must build, and hide nothing."""
    text = (Path(__file__).resolve().parents[3] / "deploy" / "brain.toml").read_text()
    section = text[text.index("# [bmc.racks]") :].partition("\n\n")[0]
    tables = tomllib.loads("\n".join(line.removeprefix("# ") for line in section.splitlines()))["bmc"]
    named = {key for one in tables.values() for key in one} - {"type"} | {"addresses"}
    assert named == {field.name for kind in (RedfishOptions, IpmiOptions) for field in fields(kind)}
    for one in tables.values():
        one["password_file"] = str(password_file(tmp_path))
    tables["racks"]["ca_file"] = str(password_file(tmp_path))
    assert "bmc.restart" in built(tables)


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"address": "-oProxy"}, r"bmc\.racks\.address: the address must be host"),
        ({"address": "host:0"}, r"bmc\.racks\.address: the address must be host"),
        ({"user": "-x"}, r"bmc\.racks\.user"),
        ({"cipher_suite": 4}, r"bmc\.racks\.cipher_suite"),
        ({"tool": "ipmitool"}, r"bmc\.racks\.tool: must be an absolute path"),
    ],
)
def test_a_wrong_table_of_ipmi_names_its_key(tmp_path: Path, changes: dict[str, Any], says: str) -> None:
    """Nothing of it can be taken for an option of the tool."""
    with pytest.raises(ConfigError, match=says):
        built(table(tmp_path, **({"type": "ipmi", "address": "bmc"} | changes)))
