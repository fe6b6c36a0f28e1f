"""Root types `gpuward cell` or `doctor` in a folder whose owner has been taken over: whatever lies there leads root nowhere."""

import json
import os
import pwd
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from click.testing import CliRunner

from agent.contract.errors import ConfigError
from agent.shared import files
from brain.adapters import nkey
from brain.cli import as_owner as as_owner_module
from brain.cli.as_owner import as_owner, owner
from brain.cli.main import group
from tests import forked
from tests.nightly import first

pytestmark = pytest.mark.root
SERVICE = 65_533  # a user of no name: the brain's, taken over
SECRET = "root's alone\n"
# A command with the rights of whoever owns a folder. They may not read root's Python: what is imported is imported before.
AS_ANOTHER = """
import encodings.idna, sys
from pathlib import Path
from brain.cli import cell, doctor, main
from brain.cli.as_owner import as_owner
with as_owner(Path(sys.argv[1])):
    main.run({}, sys.argv[2:])
"""
GPUWARD = str(Path(sys.executable).parent / "gpuward")


@dataclass(frozen=True, kw_only=True)
class Site:
    """A brain's machine; pytest's own folders let no other user through."""

    folder: Path

    @property
    def data(self) -> Path:
        """The folder that belongs to the service."""
        return self.folder / "data"

    @property
    def cell(self) -> Path:
        """What the service and root's commands share."""
        return self.data / "cell"

    def says(self, *argv: str) -> tuple[int, str]:
        """(exit status, what it prints) of a command of root's."""
        return forked.gpuward(*argv, "--config", str(self.folder / "brain.toml"))

    def roots(self, name: str) -> Path:
        """A file of root's that nobody else may read."""
        file = self.folder / "roots" / name
        file.parent.mkdir(mode=0o700, exist_ok=True)
        file.write_text(SECRET)
        file.chmod(0o600)
        return file

    def lays(self, name: str, target: Path) -> None:
        """The service puts a link where one of its files was, or will be."""
        place = self.cell / name
        with as_owner(self.data):
            if not place.is_symlink() and place.exists():
                place.rename(place.with_name(f"{name}.was"))
            place.unlink(missing_ok=True)
            place.symlink_to(target)


@pytest.fixture
def site() -> Iterator[Site]:
    """With a cell that root has made in the service's folder."""
    folder = Path(tempfile.mkdtemp(prefix="among-links-"))
    folder.chmod(0o755)
    found = Site(folder=folder)
    (folder / "brain.toml").write_text(f'data_dir = "{found.data}"\n')
    found.data.mkdir(mode=0o700)
    os.chown(found.data, SERVICE, SERVICE)
    try:
        yield found
    finally:
        shutil.rmtree(folder)


COMMANDS = (
    ("init", "--name", "brain.example"),
    ("token", "--nodes", "x"),
    ("show",),
    ("show", "--nats-accounts"),
    ("rotate", "server"),
    ("rotate", "signing"),
    ("rotate", "brain"),
    ("rotate", "authority"),
    ("revoke", "nothing"),
)


def test_no_link_of_the_service_leads_root_anywhere(site: Site) -> None:
    """Each file that a command of root's makes, reads, locks or replaces is a link to a file of root's: that one stays as it is,
    stays root's, and nothing of it is told.
    """
    said = [site.says("cell", *command) for command in COMMANDS]
    assert [status for status, _ in said[:2]] == [0, 0], said
    names = {one.name for one in site.cell.iterdir()} | {
        "operator.nk",
        "account.nk",
        "brain.nk",
        "system.creds",
    }
    assert "registry.json.lock" in names
    targets = {name: site.roots(name) for base in names for name in (base, f"{base}.part", f"{base}.lock")}
    for command in (*COMMANDS, ("export", "--jwt", str(site.folder / "export"))):
        for name, target in targets.items():
            site.lays(name, target)
        _, told = site.says("cell", *command)
        assert SECRET.strip() not in told, command
        for name, target in targets.items():
            found = target.stat()
            assert (found.st_uid, target.read_text()) == (0, SECRET), (command, name)


@pytest.mark.parametrize("link", ["cell", "data"])
def test_no_folder_of_the_service_is_a_way_elsewhere(site: Site, link: str) -> None:
    """The folder itself is a link, to one of root's: nothing is made there, and it is not given away."""
    target = site.folder / "etc"
    target.mkdir(mode=0o755)
    if link == "cell":
        with as_owner(site.data):
            site.cell.symlink_to(target)
    else:
        site.data.rmdir()
        site.data.symlink_to(target)
        os.chown(site.data, SERVICE, SERVICE, follow_symlinks=False)
    for command in COMMANDS:
        site.says("cell", *command)
        assert target.stat().st_uid == 0, command
        assert not list(target.iterdir()), command


def test_what_root_makes_is_the_service_s_and_what_is_asked_for_elsewhere_is_root_s(site: Site) -> None:
    """A whole cell by root's commands: the service can read all of it; brain.toml and the export stay root's."""
    config = site.folder / "brain.toml"
    config.write_text(f'data_dir = "{site.data}"\n[console]\n')
    roots = site.folder / "roots/only"
    roots.parent.mkdir(mode=0o700)
    assert site.says("cell", "init", "--name", "brain.example", "--write")[0] == 0
    for command in (("token",), ("rotate", "server"), ("rotate", "signing"), ("export", "--jwt", str(roots))):
        status, told = site.says("cell", *command)
        assert status == 0, told
    assert {one.lstat().st_uid for one in site.data.rglob("*")} == {SERVICE}
    assert {one.lstat().st_uid for one in (config, roots, *roots.rglob("*"))} == {0}
    assert "server.pem" in config.read_text()
    assert (roots / "brain.creds").stat().st_mode & 0o077 == 0


def test_a_seed_that_brain_toml_names_beside_itself_is_the_brain_s(site: Site) -> None:
    """NATS of the site's own: root makes brain.nk in a folder of root's, and the brain's user can read it."""
    config = site.folder / "brain.toml"
    config.write_text(f'data_dir = "{site.data}"\n[nats]\nurl = "tls://nats:4222"\nseed_file = "brain.nk"\n')
    assert site.says("cell", "init", "--name", "brain.example")[0] == 0
    status, told = site.says("cell", "show", "--nats-accounts")
    assert status == 0, told
    assert (site.folder / "brain.nk").stat().st_uid == SERVICE


def test_what_a_second_brain_takes_is_the_brain_s(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    """By root, before its brain was ever started: the folder and the keys are of the brain's user, for nobody else, and so is a
    seed that brain.toml names beside itself. No link leads root anywhere there, either.
    """
    assert site.says("cell", "init", "--name", "brain.example")[0] == 0
    file = site.folder / "cell.json"
    assert site.says("cell", "share", str(file))[0] == 0
    user = pwd.getpwnam("nobody")
    monkeypatch.setattr(as_owner_module, "USER", user.pw_name)
    second = site.folder / "second"
    second.mkdir()
    config = second / "brain.toml"
    config.write_text(
        f'data_dir = "{second}/data"\nnats = {{ url = "tls://nats:4222", seed_file = "brain.nk" }}\n'
    )
    given = json.loads(file.read_text())
    given["files"]["brain.nk"] = nkey.load_or_make(second / "made.nk", nkey.NkeyKind.USER).seed
    (second / "made.nk").unlink()
    file.write_text(json.dumps(given))
    done = CliRunner().invoke(group({}), ["cell", "take", str(file), "--config", str(config)])
    assert done.exit_code == 0, done.output
    made = [second / "data", second / "brain.nk", *(second / "data").rglob("*")]
    assert {one.stat().st_uid for one in made} == {user.pw_uid}
    assert {one.stat().st_mode & 0o007 for one in made if one.suffix not in (".pem", ".pub")} == {0}
    target = site.roots("secret")
    shutil.rmtree(site.cell)
    with as_owner(site.data):
        site.cell.mkdir()
    for name in given["files"]:
        site.lays(name, target)
    site.says("cell", "take", str(file))
    assert (target.stat().st_uid, target.read_text()) == (0, SECRET)


@pytest.mark.parametrize(
    "command",
    first(
        3,
        "one place judges it for all commands of the cell",
        [
            ("cell", "init", "--name", "brain.example"),
            ("cell", "rotate", "server"),
            ("doctor",),
            *(
                ("cell", *one)
                for one in (("show",), ("token",), ("revoke", "x"), ("share", "-"), ("rotate", "signing"))
            ),
        ],
    ),
)
def test_who_may_not_is_told_as_whom_to_say_it(site: Site, command: tuple[str, ...]) -> None:
    """The first thing that everybody forgets is `sudo`: one line, and no traceback."""
    assert site.says("cell", "init", "--name", "brain.example")[0] == 0
    elsewhere = site.folder / "elsewhere"
    elsewhere.mkdir()
    os.chown(elsewhere, SERVICE - 1, SERVICE - 1)
    argv = [sys.executable, "-c", AS_ANOTHER, str(elsewhere), *command, "--config"]
    done = subprocess.run(
        [*argv, str(site.folder / "brain.toml")], capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 2, done.stderr
    assert "Permission denied: say it as root (sudo)" in done.stderr
    assert "Traceback" not in done.stderr


def test_there_is_nothing_to_rotate_before_there_is_a_cell(site: Site) -> None:
    """And nothing is made: keys of root's would lie where the brain's are to be."""
    for kind in ("server", "signing", "brain", "authority"):
        status, told = site.says("cell", "rotate", kind)
        assert (status, "`gpuward cell init --name NAME`" in told) == (2, True), told
    assert not list(site.data.iterdir())


def test_who_decides_what_lies_at_a_place(site: Site) -> None:
    """The first on the way who is not root: the owner of a folder, of a link, of a folder that a link of root's leads through."""
    nobody = (SERVICE, SERVICE)
    assert owner(Path("/usr/bin")) is None
    assert owner(site.folder / "not/there/yet") is None
    assert owner(site.data / "not/there/yet") == nobody
    with as_owner(site.data):
        (site.data / "out").symlink_to("/usr")
    (site.folder / "through").symlink_to(site.data / "out")
    assert owner(site.folder / "through/bin") == nobody, "its end is root's, its way is not"
    (site.folder / "round").symlink_to("round")
    assert owner(site.folder / "round") is None
    with as_owner(site.data):
        assert os.geteuid() == SERVICE
    secret = site.roots("secret")
    with pytest.raises(ConfigError, match="rights of user 65533"), as_owner(site.data):
        secret.read_text()
    assert os.geteuid() == 0


def test_root_runs_no_brain_in_the_folder_of_another(site: Site) -> None:
    """`gpuward run` typed as root where the service's files are: refused, with what to do."""
    argv = [GPUWARD, "run", "--config", str(site.folder / "brain.toml")]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 2
    assert "belongs to user 65533" in done.stderr
    assert not list(site.data.iterdir())


def test_a_second_name_is_not_given_away(site: Site) -> None:
    """A hard link to a file of root's: what stands behind it keeps its owner, also where nobody has dropped any right."""
    target = site.roots("secret")
    os.link(target, site.data / "x.lock")
    handle = os.open(site.data / "x.lock", os.O_RDWR)
    files.belongs_as(handle, site.data)
    os.close(handle)
    assert target.stat().st_uid == 0
    (site.data / "y.part").symlink_to(target)
    files.write(site.data / "y", b"new", like=site.data)
    assert (target.read_text(), (site.data / "y").stat().st_uid) == (SECRET, SERVICE)


def links(site: Site, name: str) -> None:
    """To a file of root's."""
    (site.data / name).symlink_to(site.roots(name.replace("/", "-")))


def pipes(site: Site, name: str) -> None:
    """Into which nobody writes."""
    os.mkfifo(site.data / name)


def holes(site: Site, name: str) -> None:
    """A terabyte of nothing."""
    with (site.data / name).open("wb") as sink:
        sink.truncate(2**40)


@pytest.mark.parametrize("lay", [links, pipes, holes])
def test_the_doctor_as_root_is_led_nowhere_and_waits_for_nobody(
    site: Site, lay: Callable[[Site, str], None]
) -> None:
    """Each file of the service is something else: it says so, tells nothing of root's, and ends. The log's folder is
    a link to everything. What it advises gives nothing of root's away.
    """
    own = ("signing.key", "signing.key.next", "tokens.json", "console-8470.token", "nats/nats.conf")
    of_the_cell = ("registry", "trust", "confirmed", "void", "journal")
    pems = ("ca.pem", "ca.key", "server.pem", "server.key", "cross.pem", "brain.nk")
    names = (*own, *(f"cell/{name}.json" for name in of_the_cell), *(f"cell/{name}" for name in pems))
    for folder in ("cell", "nats"):
        (site.data / folder).mkdir()
    for name in names:
        lay(site, name)
    (site.data / "nats/js").symlink_to("/")
    for place in site.data.rglob("*"):
        os.chown(place, SERVICE, SERVICE, follow_symlinks=False)
    status, told = site.says("doctor")
    assert status == 1
    assert SECRET.strip() not in told
    assert "Traceback" not in told, told
    assert (lay is links) == ("remove the link" in told)
    assert "chown" not in told, told
    for what in ("signing key", "key rotation", "certificates"):
        assert re.search(rf"(?m)^(fail|unchecked) +{what}: ", told), told
    assert {place.lstat().st_uid for place in site.data.rglob("*")} == {SERVICE}
