"""A brain that cannot start, under a real systemd: what waits for a person, and what mends itself at night."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from brain.cli.run import WRONG_TEXT
from tests.real import nspawn
from tests.security.test_services_hardened import LIBRARIES, PYTHON, Site
from tests.security.units import BRAIN

pytestmark = [
    pytest.mark.root,
    pytest.mark.slow,
    pytest.mark.component("systemd-nspawn"),
    pytest.mark.component("nats-server"),
    pytest.mark.skipif(bool(nspawn.missing()), reason=nspawn.missing()),
]


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    """Both units are installed, and none is started."""
    with nspawn.machine(tmp_path / "box", {}, binds=[f"{PYTHON}:ro", f"{LIBRARIES}:ro"]) as box:
        yield Site(box, tmp_path)


def shown(site: Site, key: str) -> str:
    """A property of the brain's unit."""
    return site.does("systemctl", "show", "-P", key, BRAIN.name)


def leads(site: Site) -> bool:
    """The unit runs, and its brain leads."""
    return (
        bool((status := site.api("/api/v1/status")) and status["leads"])
        and shown(site, "ActiveState") == "active"
    )


def test_a_wrong_file_waits_for_a_person_and_says_so_once(site: Site) -> None:
    """The unit is failed, with the status that systemd calls CONFIG, and is not started again; what was corrected is taken up."""
    file = site.etc / "gpuward/brain.toml"
    right = file.read_text()
    file.write_text('[channels.pager]\ntype = "webhok"\n' + right)
    site.does("systemctl", "start", BRAIN.name)
    site.wait_for(lambda: shown(site, "ActiveState") == "failed", "it is given up")
    assert (shown(site, "NRestarts"), shown(site, "ExecMainStatus")) == ("0", str(WRONG_TEXT))
    assert "status=78/CONFIG" in site.box.run("systemctl", "status", "--no-pager", BRAIN.name).stdout
    said = site.does("cat", "/run/brain.log").splitlines()
    assert len(said) == 1, said
    assert "/etc/gpuward/brain.toml:2: channels.pager.type: unknown type 'webhok'" in said[0]
    file.write_text(right)
    site.does("systemctl", "restart", BRAIN.name)
    site.wait_for(lambda: leads(site), "the corrected file is taken up")


def test_what_may_mend_itself_is_tried_again_and_again(site: Site) -> None:
    """Another program has the port for a while: nobody is needed, and the tries do not follow each other at once."""
    python = ("env", f"LD_LIBRARY_PATH={PYTHON}/lib", f"{PYTHON}/bin/python3", "-m", "http.server")
    site.does("systemd-run", "--unit=other", *python, "--bind", "127.0.0.1", "4222")
    site.wait_for(lambda: site.box.run("curl", "-s", "http://127.0.0.1:4222/").returncode == 0, "it listens")
    site.does("systemctl", "start", BRAIN.name)
    site.wait_for(lambda: int(shown(site, "NRestarts")) >= 2, "it is tried again")
    assert shown(site, "ActiveState") != "failed"
    assert "port 4222 of 127.0.0.1 is taken by another program" in site.does("cat", "/run/brain.log")
    site.does("systemctl", "stop", "other")
    site.wait_for(lambda: leads(site), "it comes back by itself")
