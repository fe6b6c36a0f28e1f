"""`gpuward run --check` refuses what a start refuses, in the same words: packages and Ansible start what it lets pass."""

import asyncio
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from agent.contract.errors import ConfigError
from brain import app, config
from brain.cli import as_start
from brain.cli.run import WRONG_TEXT

RUN = [sys.executable, "-m", "brain", "run", "--config"]
PERSON = '[console.users.ann]\nrole = "operator"\n'
CONSOLE = "[console]\nport = {console}\n"
OIDC = """[console.oidc]
issuer = "https://id.example.org"
client_id = "gpuward"
client_secret_file = "{secret}"
redirect_url = "https://g.example.org/login/callback"
ca_file = "{ca}"
groups.oncall.role = "approver"
"""
REMOTE = '[nats]\nurl = "tls://127.0.0.1:1"\n'

# What the file says, and what is said of it. `bad.pem` is there and holds no key, no certificate and no token.
WRONG = {
    "a kind of BMC that there is not": ('[bmc.all]\ntype = "redfsh"\n', "bmc.all.type"),
    "a BMC without its user": ('[bmc.all]\ntype = "redfish"\n', "bmc.all.user"),
    "a scheduler that there is not": ('[schedulers.s]\ntype = "slrum"\n', "schedulers.s.type"),
    "a switch that there is not": ('[switches.s]\ntype = "x"\n', "switches.s.type"),
    "UFM without an address": ("[ufm.u]\n", "ufm.u.url"),
    "a dead man's switch without an address": (
        '[dead_mans_switches.d]\ntype = "url"\n',
        "dead_mans_switches.d",
    ),
    "traces into a folder that is not there": ('[traces]\nfile = "gone/x.json"\n', "traces.file"),
    "a certificate that is not there": (
        CONSOLE + 'tls_cert_file = "gone.pem"\ntls_key_file = "gone.key"\n',
        "gone.pem",
    ),
    "a certificate that is none": (
        CONSOLE + 'tls_cert_file = "bad.pem"\ntls_key_file = "bad.pem"\n',
        "bad.pem",
    ),
    "two persons for no command": (CONSOLE + 'two_persons = ["mode autoo"]\n', "console.two_persons"),
    "an authority that is none": (OIDC.format(secret="bad.pem", ca="bad.pem"), "console.oidc.ca_file"),
    "a secret that is not there": (
        '[chat.slack]\nsigning_secret_file = "gone"\nusers = {{ U1 = "ann" }}\n' + PERSON,
        "chat.slack.signing_secret_file",
    ),
    "a report by a mail server that nothing names": (
        '[[reports]]\nname = "r"\nwhat = "week"\nurl_file = "gone.url"\n',
        "reports.0.url_file",
    ),
    "a Prometheus with a token that is not there": (
        '[console.prometheus]\nurl = "http://p"\ntoken_file = "gone"\n',
        "console.prometheus.token_file",
    ),
    "a signing key that is none": ('signing_key_file = "bad.pem"\n', "bad.pem"),
    "a seed that is not there": (REMOTE + 'seed_file = "gone.nk"\n', "nats.seed_file"),
    "an authority of NATS that is none": (REMOTE + 'ca_file = "bad.pem"\n', "ca_file"),
}


def free_port() -> int:
    """A port on which nothing listens now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """With the files that the cases name."""
    (tmp_path / "bad.pem").write_text("nonsense\n")
    (tmp_path / "bad.pem").chmod(0o600)
    return tmp_path


def configuration(folder: Path, text: str) -> str:
    """A file with this text, its own data folder, and ports that are free."""
    text = text.format(console=free_port())
    ports = "" if "[nats]" in text else f"[nats.embedded]\nport = {free_port()}\n"
    ports += "" if "[console]" in text else CONSOLE.format(console=free_port())
    file = folder / "brain.toml"
    file.write_text(f'data_dir = "{folder}/data"\n{text}{ports}')
    return str(file)


@pytest.mark.parametrize(("text", "says"), WRONG.values(), ids=WRONG)
async def test_what_a_start_refuses_the_check_refuses(folder: Path, text: str, says: str) -> None:
    """Word for word, and the check has made nothing."""
    file = configuration(folder, text)
    there = sorted(folder.iterdir())
    with pytest.raises(ConfigError) as checked:
        await as_start.check(config.load(Path(file)))
    assert says in str(checked.value)
    assert sorted(folder.iterdir()) == there
    with pytest.raises(ConfigError) as started:
        await asyncio.wait_for(app.run(config.load(Path(file)), asyncio.Event()), 120)
    assert str(started.value) == str(checked.value)


async def test_a_machine_whose_name_is_no_name_of_a_brain(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Linux takes 64 characters: start and check say which key names the brain instead; with that both go on."""
    monkeypatch.setattr(socket, "gethostname", lambda: "b" * 64)
    file = Path(configuration(folder, ""))
    with pytest.raises(
        ConfigError, match=r"host name 'b{64}' must be .*: set `brain` in brain.toml"
    ) as checked:
        await as_start.check(config.load(file))
    with pytest.raises(ConfigError) as started:
        await asyncio.wait_for(app.run(config.load(file), asyncio.Event()), 120)
    assert str(started.value) == str(checked.value)
    file.write_text(f'brain = "b1"\n{file.read_text()}')
    await as_start.check(config.load(file))


def test_what_the_check_lets_pass_starts(folder: Path) -> None:
    """With a table for each of its parts; the check has called nobody, as no address of these answers."""
    key = folder / "token"
    key.write_text("A" * 32)
    key.chmod(0o600)
    text = (
        f'[chat.slack]\nsigning_secret_file = "{key}"\nusers = {{{{ U1 = "ann" }}}}\n{PERSON}'
        '[dead_mans_switches.d]\ntype = "url"\nurl = "http://127.0.0.1:1/"\n'
        '[traces]\notlp_url = "http://127.0.0.1:1/v1/traces"\n'
    )
    file = configuration(folder, text)
    checked = subprocess.run([*RUN, file, "--check"], capture_output=True, text=True, timeout=120)
    assert checked.returncode == 0, checked
    started = subprocess.Popen([*RUN, file], stderr=subprocess.PIPE, text=True)
    assert started.stderr is not None
    said = []
    for line in started.stderr:
        said.append(line)
        if "this brain leads" in line:
            break
    started.send_signal(signal.SIGTERM)
    rest = started.communicate(timeout=60)[1]
    assert started.returncode == 0, (said, rest)
    assert "this brain leads" in said[-1]


async def test_before_the_cell_is_made_its_files_may_be_missing(folder: Path) -> None:
    """Ansible writes the configuration first. Once there is a cell, they must be there."""
    cell = folder / "data" / "cell"
    text = CONSOLE + f'tls_cert_file = "{cell}/server.pem"\ntls_key_file = "{cell}/server.key"\n'
    file = Path(configuration(folder, text))
    await as_start.check(config.load(file))
    assert as_start.missing_of_the_cell(config.load(file)) == [cell / "server.pem", cell / "server.key"]
    cell.mkdir(parents=True)
    with pytest.raises(ConfigError, match=r"server\.pem"):
        await as_start.check(config.load(file))


@pytest.mark.parametrize(
    ("text", "starts", "checks"),
    [
        ("consol = 1\n", WRONG_TEXT, 2),
        ("[console\n", WRONG_TEXT, 2),
        ('[channels.c]\ntype = "webhook"\nulr = "http://127.0.0.1:1/"\n', WRONG_TEXT, 2),
        ('[channels.c]\ntype = "webhook"\nurl = "http://127.0.0.1:1/"\nsecret_file = "gone"\n', 2, 2),
    ],
    ids=[
        "a key that there is not",
        "no TOML",
        "a key of a channel that there is not",
        "a file that is not there",
    ],
)
def test_a_text_that_is_wrong_ends_otherwise_than_what_may_mend_itself(
    folder: Path, text: str, starts: int, checks: int
) -> None:
    """systemd tells the two apart: the first waits for a person, the second is tried again (gpuward.service)."""
    file = configuration(folder, text)
    started = subprocess.run([*RUN, file], capture_output=True, text=True, timeout=120)
    checked = subprocess.run([*RUN, file, "--check"], capture_output=True, text=True, timeout=120)
    assert (started.returncode, checked.returncode) == (starts, checks), (started, checked)
    assert "Traceback" not in started.stderr
    assert started.stderr.splitlines()[-1] == checked.stderr.splitlines()[-1]
