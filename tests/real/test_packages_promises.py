"""What a package promised is kept when another one goes, and what runs is not replaced by what cannot start."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.real import netns, packages_kit
from tests.real.packages_kit import Box, box

pytestmark = [
    pytest.mark.root,
    pytest.mark.slow,
    pytest.mark.component("systemd-nspawn"),
    pytest.mark.skipif(bool(packages_kit.missing()), reason=packages_kit.missing()),
    pytest.mark.timeout(900),  # as in test_packages.py
]
AGENT, BRAIN = "apt-get install -y ./gpuward-agent_*.deb", "apt-get install -y ./gpuward_*.deb"
AGAIN = "cd /opt && DEBIAN_FRONTEND=noninteractive apt-get install -y --reinstall ./{}_*.deb </dev/null"
SECRET = '\n[channels.pager]\ntype = "pagerduty"\nrouting_key_file = "/etc/gpuward/pager.key"\n'


@pytest.fixture(scope="module")
def release(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A release with its packages."""
    return packages_kit.release(tmp_path_factory)


@pytest.fixture
def machine(release: Path, tmp_path: Path) -> Iterator[Box]:
    """One where both packages lie, and neither is installed."""
    with netns.namespace() as network:
        network.ip("link", "set", "lo", "up")
        with box(tmp_path, "one", network.name) as made:
            for package in release.glob("*.deb"):
                made.has(package)
            yield made


def pid(machine: Box, unit: str) -> str:
    """Of the service that runs."""
    return machine.does("systemctl", "show", "-P", "MainPID", unit)


def test_purge_of_one_leaves_what_remove_of_the_other_has_left(machine: Box) -> None:
    """The brain was removed, to come back later: its configuration and the secrets of people stay until it is purged itself."""
    before = machine.traces()
    machine.documented(BRAIN)
    machine.documented(AGENT)
    machine.file("/etc/gpuward/pager.key").write_text("a secret of the brain's\n")
    mine = machine.file("/etc/gpuward/brain.toml").read_bytes()
    machine.does("apt-get", "remove", "-y", "gpuward")
    machine.documented("apt-get purge -y gpuward-agent")
    kept = {path.name for path in machine.file("/etc/gpuward").iterdir()}
    assert kept == {"brain.toml", "pager.key"}
    machine.documented(BRAIN)
    assert machine.file("/etc/gpuward/brain.toml").read_bytes() == mine
    machine.documented("apt-get purge -y gpuward")
    assert machine.traces() - before == set()


def test_an_agent_whose_key_has_gone_is_not_replaced(machine: Box) -> None:
    """It is in the memory of the one that runs: the next one would not start, and the node would be silent."""
    machine.documented(AGENT)
    key, config = machine.file("/etc/gpuward/node.nk"), machine.file("/etc/gpuward/agent.toml")
    key.write_text("SUAMLK2ZNL35WSMW37E7UD4VZ7ELPKW7DHC3BWBSD2GCZ7IUQQXZIORRBU\n")
    config.write_text(f'nats_seed_file = "/etc/gpuward/node.nk"\n{config.read_text()}')
    machine.documented("systemctl enable --now gpuward-agent")
    machine.waits(lambda: "session" in machine.journal(), "it has read its configuration")
    running, seed = pid(machine, "gpuward-agent"), key.read_bytes()
    key.unlink()
    said = machine.fails("sh", "-c", AGAIN.format("gpuward-agent"))
    assert "nats_seed_file: /etc/gpuward/node.nk cannot be read" in said
    assert "gpuward-agent: the earlier version runs on" in said
    assert (machine.active("gpuward-agent"), pid(machine, "gpuward-agent")) == (True, running)
    key.write_bytes(seed)
    key.chmod(0o600)  # root's: the agent reads /etc/gpuward whoever owns it
    machine.does("dpkg", "--configure", "-a")
    machine.waits(lambda: machine.active("gpuward-agent"), "the service runs")
    assert pid(machine, "gpuward-agent") != running


def test_a_brain_is_not_replaced_by_one_that_cannot_read_what_root_can(machine: Box) -> None:
    """Somebody has put a secret there as root, with mode 0600: the brain's user cannot read it, so it would not start."""
    machine.documented(BRAIN)
    machine.does("gpuward", "cell", "init", "--name", "brain.example.com", "--write")
    machine.documented("systemctl enable --now gpuward")
    machine.waits(lambda: machine.file("/var/lib/gpuward/history.sqlite").exists(), "it has begun")
    running = pid(machine, "gpuward")
    config, key = machine.file("/etc/gpuward/brain.toml"), machine.file("/etc/gpuward/pager.key")
    key.write_text("0123456789abcdef0123456789abcdef\n")
    key.chmod(0o600)
    config.write_text(config.read_text() + SECRET)
    said = machine.fails("sh", "-c", AGAIN.format("gpuward"))
    assert "/etc/gpuward/pager.key cannot be read: Permission denied" in said
    assert "gpuward: the earlier version runs on" in said
    assert (machine.active("gpuward"), pid(machine, "gpuward")) == (True, running)
    machine.does("chown", "gpuward", "/etc/gpuward/pager.key")
    machine.does("dpkg", "--configure", "-a")
    machine.waits(lambda: machine.active("gpuward"), "the service runs")
    assert pid(machine, "gpuward") != running


def rights(machine: Box) -> tuple[set[int], bool, bool]:
    """Of the agent: its capabilities by their numbers (capabilities(7)), whether it is root, whether it can get more."""
    told = machine.does("cat", f"/proc/{pid(machine, 'gpuward-agent').strip()}/status")
    found = dict(line.split(":\t", 1) for line in told.splitlines() if ":\t" in line)
    effective, bounding = int(found["CapEff"], 16), int(found["CapBnd"], 16)
    assert effective == bounding
    return (
        {bit for bit in range(64) if effective >> bit & 1},
        found["Uid"].split()[0] == "0",
        found["NoNewPrivs"] != "1",
    )


def test_nvme_conf_gives_the_agents_user_one_right_more(machine: Box) -> None:
    """SYS_ADMIN beside DAC_READ_SEARCH, SYS_PTRACE and SYSLOG; and the agent takes the setting that it is for."""
    machine.documented(AGENT)
    key, config = machine.file("/etc/gpuward/node.nk"), machine.file("/etc/gpuward/agent.toml")
    key.write_text("SUAMLK2ZNL35WSMW37E7UD4VZ7ELPKW7DHC3BWBSD2GCZ7IUQQXZIORRBU\n")
    keys = 'nats_seed_file = "/etc/gpuward/node.nk"\nnvme_interval_s = 600\n'
    config.write_text(keys + config.read_text())
    machine.documented("systemctl enable --now gpuward-agent")
    machine.waits(lambda: "session" in machine.journal(), "it has read its configuration")
    assert rights(machine) == ({2, 19, 34}, False, False)
    folder = "/etc/systemd/system/gpuward-agent.service.d"
    machine.does("install", "-D", "-m", "0644", "-t", folder, "/usr/share/gpuward-agent/nvme.conf")
    machine.does("systemctl", "daemon-reload")
    machine.does("systemctl", "restart", "gpuward-agent")
    machine.waits(lambda: machine.active("gpuward-agent"), "the service runs")
    assert rights(machine) == ({2, 19, 21, 34}, False, False)
