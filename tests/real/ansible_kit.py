"""The roles of deploy/ansible against booted containers: sshd in each, and a folder from which `ansible-playbook` is started."""

import os
import re
import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from tests.real.packages_kit import PAGE, Box
from tests.security.test_release import ROOT, run

ENVIRONMENT = ROOT / ".ansible-env"
_SSHD = """\
[Unit]
Description=sshd of the test
[Service]
RuntimeDirectory=sshd
ExecStart=/usr/sbin/sshd -D -e -f /etc/lab-sshd/config
"""
_CONFIG = """\
Port {port}
ListenAddress 127.0.0.1
HostKey /etc/lab-sshd/host_key
AuthorizedKeysFile /etc/lab-sshd/authorized_keys
PermitRootLogin prohibit-password
PasswordAuthentication no
UsePAM no
"""
# One host of it: ok=12   changed=0    unreachable=0    failed=0 ...
_RECAP = r"(?m)^(\S+) +: ok=\d+ +changed=(\d+) +unreachable=(\d+) +failed=(\d+)"


def missing() -> str:
    """Why the roles cannot be played here; empty when they can."""
    return "" if shutil.which("sshd", path="/usr/sbin") else "needs apt-get install openssh-server"


@dataclass(frozen=True, slots=True, kw_only=True)
class Play:
    """What one `ansible-playbook` has done."""

    status: int
    shown: str

    def changed(self) -> Mapping[str, int]:
        """Host → how many tasks have changed something; no host may have failed."""
        found = re.findall(_RECAP, self.shown)
        assert self.status == 0, self.shown[-6000:]
        assert all(unreachable == failed == "0" for _, _, unreachable, failed in found), self.shown
        return {host: int(changed) for host, changed, _, _ in found}

    def failed(self) -> str:
        """What it says; it must have failed."""
        assert self.status != 0, self.shown[-6000:]
        return self.shown


@dataclass(frozen=True, slots=True, kw_only=True)
class Control:
    """The machine from which the hosts are reached: a copy of deploy/ansible with packages, in their network."""

    folder: Path
    network: str
    sockets: Path  # of ssh's connections: a path of theirs has a hundred bytes at most

    def documented(self, line: str, *more: str) -> Play:
        """Types a line of the section "Ansible" of docs/install.md there; `more`: arguments behind it."""
        text = PAGE.partition("\n## Ansible\n")[2].partition("\n## ")[0]
        known = {one[4:].split("   #")[0].rstrip() for one in text.splitlines() if one.startswith("    ")}
        assert line in known, f"docs/install.md does not say {line}"
        env = os.environ | {
            "PATH": f"{ENVIRONMENT / 'bin'}:{os.environ['PATH']}",
            "HOME": str(self.folder),
            "ANSIBLE_SSH_CONTROL_PATH_DIR": str(self.sockets),
            "ANSIBLE_NOCOLOR": "1",
            "LC_ALL": "C.UTF-8",
        }
        command = ("ip", "netns", "exec", self.network, "sh", "-c", f'{line} "$@"', "sh", *more)
        done = subprocess.run(
            command, cwd=self.folder, env=env, capture_output=True, text=True, timeout=600, check=False
        )
        return Play(status=done.returncode, shown=done.stdout + done.stderr)


def control(folder: Path, network: str, hosts: Mapping[str, Box], sockets: Path) -> Control:
    """Starts sshd in each container, and writes how it is reached: its host key is known, and no password is good."""
    done = run(ROOT / "deploy/dev/pinned.sh", ENVIRONMENT.name, "deploy/dev/ansible.txt")
    assert done.returncode == 0, done.stderr
    shutil.copytree(ROOT / "deploy/ansible", folder)
    _key(folder / "id")
    known = []
    for number, (name, box) in enumerate(hosts.items()):
        port = 2201 + number
        lab = box.file("/etc/lab-sshd")
        lab.mkdir(mode=0o755)
        _key(lab / "host_key")
        (lab / "config").write_text(_CONFIG.format(port=port))
        shutil.copy(folder / "id.pub", lab / "authorized_keys")
        box.file("/etc/systemd/system/lab-sshd.service").write_text(_SSHD)
        box.does("systemctl", "daemon-reload")
        box.does("systemctl", "start", "lab-sshd")
        known.append(f"[127.0.0.1]:{port} {(lab / 'host_key.pub').read_text()}")
        (folder / "host_vars").mkdir(exist_ok=True)
        options = f"-F none -o UserKnownHostsFile={folder}/known_hosts -o StrictHostKeyChecking=yes -o BatchMode=yes"
        (folder / f"host_vars/{name}.yml").write_text(
            f"ansible_host: 127.0.0.1\nansible_port: {port}\nansible_user: root\n"
            f"ansible_ssh_private_key_file: {folder}/id\nansible_ssh_common_args: {options}\n"
            # Of the distribution: the machines that we test on have others, too.
            "ansible_python_interpreter: /usr/bin/python3\n"
        )
    (folder / "known_hosts").write_text("".join(known))
    return Control(folder=folder, network=network, sockets=sockets)


def _key(file: Path) -> None:
    done = run("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", file)
    assert done.returncode == 0, done.stderr
