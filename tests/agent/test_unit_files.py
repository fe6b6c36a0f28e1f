"""What the files of units say of the next boot, where no systemd can be asked (tests/real/test_unit_start.py asks one)."""

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from agent.shared.unit_start import UnitStart, at_boot

UNIT = "gpuward.service"


@pytest.fixture(name="machine")
def _machine() -> Iterator[Path]:
    """A root folder that everybody can reach, with an installed unit that is enabled."""
    with tempfile.TemporaryDirectory() as name:
        root = Path(name)
        root.chmod(0o755)
        for folder in (
            "run/systemd/system",
            "usr/lib/systemd/system",
            "etc/systemd/system/multi-user.target.wants",
        ):
            (root / folder).mkdir(parents=True)
        (root / "usr/lib/systemd/system" / UNIT).write_text("[Service]\nExecStart=/bin/true\n")
        (root / "etc/systemd/system/multi-user.target.wants" / UNIT).symlink_to(
            f"/usr/lib/systemd/system/{UNIT}"
        )
        yield root


@contextmanager
def nobody() -> Iterator[None]:
    """This process has no rights of root's meanwhile."""
    os.seteuid(65534)
    try:
        yield
    finally:
        os.seteuid(0)


@pytest.mark.root
@pytest.mark.parametrize(
    "closed", ["etc/systemd/system", "etc/systemd/system/multi-user.target.wants", "run/systemd"]
)
def test_a_folder_that_may_not_be_read_counts_as_empty(machine: Path, closed: str) -> None:
    """Where the doctor or the agent's check may not look, they go on with the rest."""
    assert at_boot(UNIT, machine) is UnitStart.STARTS
    (machine / closed).chmod(0o700)
    with nobody():
        found = at_boot(UNIT, machine)
    assert found is (UnitStart.NONE if closed == "run/systemd" else UnitStart.WAITS)


def test_a_mask_until_the_next_boot_is_gone_then(machine: Path) -> None:
    """As `systemctl mask --runtime` makes it."""
    (machine / "run/systemd/system" / UNIT).symlink_to("/dev/null")
    assert at_boot(UNIT, machine) is UnitStart.STARTS
    (machine / "etc/systemd/system" / UNIT).symlink_to("/dev/null")
    assert at_boot(UNIT, machine) is UnitStart.MASKED


def test_an_empty_file_is_a_mask(machine: Path) -> None:
    """As systemd takes it."""
    (machine / "etc/systemd/system" / UNIT).touch()
    assert at_boot(UNIT, machine) is UnitStart.MASKED


def test_links_that_lead_in_a_circle_end(machine: Path) -> None:
    """They are there, whatever they lead to."""
    (machine / "etc/systemd/system/a.target.wants").symlink_to("b.target.wants")
    (machine / "etc/systemd/system/b.target.wants").symlink_to("a.target.wants")
    (machine / "etc/systemd/system" / UNIT).symlink_to(UNIT)
    assert at_boot(UNIT, machine) is UnitStart.STARTS
