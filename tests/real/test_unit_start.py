"""Does a unit come back after a reboot? A real systemd in a container is asked the same, and the commands say what to do."""

import json
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from agent.shared.unit_start import UnitStart, at_boot
from tests.real import nspawn

pytestmark = [
    pytest.mark.root,
    pytest.mark.component("systemd-nspawn"),
    pytest.mark.skipif(bool(nspawn.missing()), reason=nspawn.missing()),
]
ROOT = Path(__file__).resolve().parents[2]
BIN = Path(sys.executable).parent
INSTALLED = f"{nspawn.SLEEPER}[Install]\nWantedBy=multi-user.target\n"
UNITS = ("gpuward", "gpuward-agent")


@pytest.fixture(scope="module")
def box(tmp_path_factory: pytest.TempPathFactory) -> Iterator[nspawn.Machine]:
    """Both units, as their packages leave them: installed, and not enabled."""
    units = {f"{name}.service": INSTALLED for name in UNITS}
    with nspawn.machine(tmp_path_factory.mktemp("nspawn"), units, binds=(str(ROOT),)) as machine:
        yield machine


def systemctl(box: nspawn.Machine, *argv: str) -> str:
    """What it prints."""
    return box.run("systemctl", *argv).stdout.strip()


def seen(box: nspawn.Machine, name: str) -> UnitStart:
    """What we read there."""
    return at_boot(f"{name}.service", Path(f"/proc/{box.leader}/root"))


def doctor(box: nspawn.Machine) -> dict[str, tuple[str, str]]:
    """Text → health and action of its lines about units."""
    made = box.run(str(BIN / "gpuward"), "doctor", "--data", "/var/lib/gpuward", "--json")
    lines = [one for one in json.loads(made.stdout)["checks"] if one["check"] == "units"]
    return {one["text"]: (one["health"], one["action"]) for one in lines}


def agent_check(box: nspawn.Machine) -> str:
    """What `gpuward-agent run --check` says beside its answer."""
    box.run("sh", "-c", 'printf \'node = "n1"\\nnats_url = "nats://n"\\n\' > /etc/agent.toml')
    made = box.run(str(BIN / "gpuward-agent"), "run", "--check", "--config", "/etc/agent.toml")
    assert made.returncode == 0, made.stderr
    return made.stderr


def test_a_unit_that_nobody_has_enabled_is_told_until_somebody_does(box: nspawn.Machine) -> None:
    """It runs now, and would not after a reboot: by whom it is to be enabled, and with which command."""
    for name in UNITS:
        assert systemctl(box, "is-active", name) == "active"
        assert (systemctl(box, "is-enabled", name), seen(box, name)) == ("disabled", UnitStart.WAITS)
    assert doctor(box) == {
        f"{name}.service is not enabled: it does not come back when this machine is rebooted": (
            "warn",
            f"whoever administers this machine, as root: `systemctl enable {name}`",
        )
        for name in UNITS
    }
    assert "gpuward-agent.service is not enabled" in agent_check(box)
    systemctl(box, "enable", "--runtime", *UNITS)  # only until the next boot
    assert systemctl(box, "is-enabled", "gpuward") == "enabled-runtime"
    assert seen(box, "gpuward") is UnitStart.WAITS
    systemctl(box, "disable", "--runtime", *UNITS)
    systemctl(box, "enable", *UNITS)
    for name in UNITS:
        assert (systemctl(box, "is-enabled", name), seen(box, name)) == ("enabled", UnitStart.STARTS)
    assert doctor(box) == {"start with this machine: gpuward.service, gpuward-agent.service": ("ok", "")}
    assert agent_check(box) == ""


def test_a_masked_unit_is_told_as_that(box: nspawn.Machine) -> None:
    """Its file is a link to /dev/null, and the links that enabled it stay."""
    box.run("mv", "/etc/systemd/system/gpuward.service", "/usr/lib/systemd/system/")
    systemctl(box, "daemon-reload")
    systemctl(box, "enable", "gpuward")
    systemctl(box, "mask", "gpuward")
    assert systemctl(box, "is-enabled", "gpuward") == "masked"
    assert seen(box, "gpuward") is UnitStart.MASKED
    (told,) = (line for text, line in doctor(box).items() if "masked" in text)
    assert told == (
        "warn",
        "whoever administers this machine, as root: `systemctl unmask gpuward`, then `systemctl enable gpuward`",
    )
    systemctl(box, "unmask", "gpuward")
    systemctl(box, "enable", "gpuward")
    assert (systemctl(box, "is-enabled", "gpuward"), seen(box, "gpuward")) == ("enabled", UnitStart.STARTS)


def test_without_a_unit_nothing_is_said(box: nspawn.Machine, tmp_path: Path) -> None:
    """In a pod, beside `gpuward up`, or where something else than systemd starts programs."""
    assert seen(box, "no-such") is UnitStart.NONE
    folder = tmp_path / "usr/lib/systemd/system"
    folder.mkdir(parents=True)
    (folder / "gpuward.service").write_text(INSTALLED)
    assert at_boot("gpuward.service", tmp_path) is UnitStart.NONE
