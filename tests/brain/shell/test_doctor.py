"""What `gpuward doctor` says of files, keys, certificates, and of what a brain answers. The rest: tests/real/test_doctor.py."""

import json
import os
import re
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from agent.shared import kernel_clock
from agent.shared.kernel_clock import ClockDiscipline
from brain.adapters import keys
from brain.cli import doctor
from brain.cli.checkup import counterparts, fleet, machine
from brain.cli.checkup import keys as key_checks
from brain.cli.checkup.lines import Health
from brain.cli.main import group
from tests.brain.shell.doctor_kit import NOBODY, NOW, answers, gathered, lines, node, site


def run(*args: str) -> Result:
    """What the command prints, and its exit status."""
    return CliRunner().invoke(group({}), ["--url", NOBODY, "doctor", *args])


# --- the command ---


def test_without_a_brain_it_checks_the_files_and_says_what_it_could_not(tmp_path: Path) -> None:
    """Each line begins with its health; nothing is made in the data folder; the exit status is 1."""
    before = sorted(tmp_path.rglob("*"))
    done = run("--data", str(tmp_path))
    assert done.exit_code == 1
    shown = done.output.splitlines()
    assert {line.split()[0] for line in shown} <= {one.value for one in Health}
    assert any(line.startswith("ok         rules: ") for line in shown)
    assert any(line.startswith("fail       brain: the brain does not answer") for line in shown)
    blind = [line for line in shown if line.startswith("unchecked") and "the brain does not answer" in line]
    named = {line.split(":")[0].removeprefix("unchecked").strip() for line in blind}
    assert named == {"agents", "nodes", "clocks of nodes", "modes", "broker"}
    assert sorted(tmp_path.rglob("*")) == before


def test_its_json_has_the_same_lines(tmp_path: Path) -> None:
    """With stable keys."""
    done = run("--data", str(tmp_path), "--json")
    found = json.loads(done.output)
    assert found["ok"] is False
    assert all(set(one) == {"check", "health", "text", "action"} for one in found["checks"])
    assert found["checks"][0]["check"] == "configuration"


def test_a_configuration_with_a_mistake_is_the_only_line_that_counts(tmp_path: Path) -> None:
    """With file, line and key, as at a start; what it configures could not be looked at."""
    file = tmp_path / "brain.toml"
    file.write_text('cell = "c1"\ncolour = "red"\n')
    done = run("--config", str(file))
    assert done.exit_code == 1
    first, second = done.output.splitlines()
    assert first.startswith(f"fail       configuration: {file}:2: colour: unknown key")
    assert second.startswith("unchecked  all that it configures: ")


def test_a_mistake_in_a_table_of_a_plug_in_names_its_line(tmp_path: Path) -> None:
    """Such tables are read when what they are for is built, here as at a start."""
    (tmp_path / "brain.toml").write_text(f'data_dir = "{tmp_path}"\n[channels.pager]\ntype = "pagerdooty"\n')
    said = run("--config", str(tmp_path / "brain.toml")).output
    assert re.search(r"fail +channels: \S+/brain\.toml:3: channels\.pager\.type: unknown type", said), said


def test_an_old_name_is_a_warning(tmp_path: Path) -> None:
    """It is told as a line, not as a log line beside them."""
    file = tmp_path / "brain.toml"
    file.write_text(f'data_dir = "{tmp_path}"\nsilent_after_s = 20\n')
    done = run("--config", str(file), "--json")
    warned = [one for one in json.loads(done.stdout)["checks"] if one["check"] == "configuration"]
    assert [one["health"] for one in warned] == ["warn", "ok"]
    assert "unreachable_after_s" in warned[0]["text"]


def test_every_check_stands_in_the_list() -> None:
    """A function of a check module that nobody calls would check nothing."""
    listed = {one.__name__ for one in (*doctor.READING, *doctor.ASKING)}
    for module in (machine, key_checks, fleet, counterparts):
        own = {
            name
            for name, one in vars(module).items()
            if callable(one)
            and getattr(one, "__module__", "") == module.__name__
            and not name.startswith("_")
        }
        assert own <= listed, module.__name__


def test_a_maintenance_window_that_holds_for_nothing(tmp_path: Path) -> None:
    """A node that is misspelt, or a rack that the topology does not have; one that is over is nobody's work."""

    def window(scope: str, ends_s: float = 60.0) -> dict[str, object]:
        return {"scope": scope, "since": NOW - 60, "until": NOW + ends_s, "why": scope}

    windows = [window("node/n2"), window("node/n9"), window("rack/r3"), window("all"), window("node/old", -1)]
    found = site(tmp_path, brain=answers(node("n1"), node("n2")), settings={"maintenance": windows})
    said = lines(machine.configuration(found), Health.WARN)
    assert [text.partition(")")[0] for text in said] == [
        f"the maintenance window ({scope}" for scope in ("node/n9", "rack/r3")
    ]


# --- files ---


@pytest.mark.parametrize("mode", [0o604, 0o640 | 0o020, 0o644])
def test_a_secret_that_others_read_or_change(tmp_path: Path, mode: int) -> None:
    """Each with the command that closes it; group-readable is how a secret of root's is shown to the brain."""
    found = site(tmp_path)
    key = found.config.data_dir / "signing.key"
    keys.load_signer(key)
    assert lines(machine.files(found), Health.FAIL) == []
    key.chmod(mode)
    (text,) = lines(machine.files(found), Health.FAIL)
    assert f"has mode {mode:04o} → chmod 0600 {key}" in text


def test_a_secret_that_the_configuration_names(tmp_path: Path) -> None:
    """Of channels and BMCs too: missing, or open to others. A public file may be read by all."""
    (tmp_path / "bmc.password").write_text("secret")
    (tmp_path / "bmc.password").chmod(0o644)
    (tmp_path / "bmc-ca.pem").touch(mode=0o644)
    found = site(
        tmp_path,
        channels={"pager": {"type": "pagerduty", "routing_key_file": "gone.key"}},
        bmc={"racks": {"type": "redfish", "password_file": "bmc.password", "ca_file": "bmc-ca.pem"}},
        reports=[{"name": "r", "what": "week", "url_file": "gone.url"}],
    )
    unsent, missing, open_ = lines(machine.files(found), Health.FAIL)
    assert missing.startswith(f"channels.pager.routing_key_file: {tmp_path}/gone.key is not there")
    assert unsent.startswith(f"reports.0.url_file: {tmp_path}/gone.url is not there")
    assert "bmc.password is a secret and has mode 0644" in open_


def test_rules_that_everybody_may_write(tmp_path: Path) -> None:
    """Whoever writes rules decides what is done to nodes."""
    folder = tmp_path / "rules"
    folder.mkdir()
    folder.chmod(0o777)
    found = site(tmp_path, rules="rules")
    assert lines(machine.files(found), Health.FAIL) == [
        f"{folder} can be changed by everybody → chmod o-w {folder}"
    ]


@pytest.mark.root
@pytest.mark.parametrize("name", ["signing.key", "cell/registry.json", "cell/trust.json"])
def test_a_secret_that_the_brain_cannot_read(tmp_path: Path, name: str) -> None:
    """One that root has put there, for a brain that is another user."""
    found = site(tmp_path)
    file = found.config.data_dir / name
    file.touch(mode=0o600)
    os.chown(found.config.data_dir, 65534, 65534)
    os.chown(file, 0, 0)
    (text,) = lines(machine.files(found), Health.FAIL)
    assert "belongs to root: the brain's user nobody cannot read it → chown nobody" in text


def test_a_disk_that_is_too_small_for_the_log(tmp_path: Path) -> None:
    """Before it is full: the log may grow to more than there is."""
    small = site(tmp_path, log={"max_bytes": 64 * 1024**2}, evidence={"max_bytes": 16 * 1024**2})
    assert [one.health for one in machine.disk(small)] == [Health.OK]
    large = site(tmp_path, log={"max_bytes": 1 << 60})
    (text,) = lines(machine.disk(large), Health.WARN)
    assert "may grow by" in text
    assert "log.max_bytes" in text


@pytest.mark.parametrize(
    ("clock", "health", "says"),
    [
        (
            ClockDiscipline(synchronised=True, offset_s=0.001, max_error_s=0.02),
            Health.OK,
            "off by at most 0.020 s",
        ),
        (
            ClockDiscipline(synchronised=False, offset_s=0.0, max_error_s=16.0),
            Health.WARN,
            "nothing synchronises",
        ),
        (ClockDiscipline(synchronised=True, offset_s=-3.0, max_error_s=0.02), Health.WARN, "off by -3.000 s"),
        (None, Health.UNCHECKED, "the kernel does not tell"),
    ],
)
def test_this_machines_clock(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, clock: ClockDiscipline | None, health: Health, says: str
) -> None:
    """As its kernel says."""
    monkeypatch.setattr(kernel_clock, "read", lambda: clock)
    (line,) = machine.clock(site(tmp_path))
    assert line.health is health
    assert says in line.text


def test_rules_with_an_error_name_its_place(tmp_path: Path) -> None:
    """And the command that shows all of them."""
    folder = tmp_path / "rules"
    folder.mkdir()
    (folder / "mine.yaml").write_text("rules:\n  a-rule:\n    colour: red\n")
    (text,) = lines(machine.rules(site(tmp_path, rules="rules")), Health.FAIL)
    assert "mine.yaml:2" in text
    assert f"gpuward check --rules {folder}" in text


def test_rules_that_are_not_in_force(tmp_path: Path) -> None:
    """The leader has others than these files."""
    found = site(tmp_path, brain=answers(pack="0123456789ab"))
    (text,) = lines(machine.rules(found), Health.WARN)
    assert "others are in force (0123456789ab)" in text
    assert "a changed brain.toml: `systemctl restart gpuward`" in text, (
        "a reload reads rules, and no settings"
    )


@pytest.mark.parametrize(
    ("table", "says"),
    [
        ({"type": "slurm", "scontrol": "/usr/nowhere/scontrol"}, "/usr/nowhere/scontrol cannot be started"),
        ({"type": "kubernetes", "kubeconfig": "gone"}, "schedulers.s.kubeconfig: "),
    ],
)
async def test_a_scheduler_that_cannot_be_asked_is_no_matter_of_rights(
    tmp_path: Path, table: dict[str, str], says: str
) -> None:
    """A command or a file that is not there: who must do what is told."""
    (line,) = await gathered(counterparts.schedulers(site(tmp_path, schedulers={"s": table})))
    assert line.health is Health.FAIL
    assert says in line.text
    assert "brain.toml" in line.action
    assert "give gpuward's account its rights" not in line.action
