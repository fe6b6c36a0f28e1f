"""What `gpuward doctor` says of files, keys, certificates, and of what a brain answers. The rest: tests/real/test_doctor.py."""

import json
import os
from collections.abc import AsyncIterator, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from agent import __version__
from agent.shared import kernel_clock
from agent.shared.kernel_clock import KernelClock
from brain import config as brain_config
from brain.adapters import keys
from brain.adapters.rotation import KeyRotation
from brain.cell.authority import Authority
from brain.cell.registry import CellRegistry
from brain.cell.trust import KeyKind
from brain.cli.doctor import command, counterparts, fleet, machine
from brain.cli.doctor import keys as key_checks
from brain.cli.doctor.installation import BrainAnswers, Installation
from brain.cli.doctor.lines import Health, HealthLine
from brain.cli.main import group

NOW = 1_790_000_000.0
DAY_S = 86_400.0
NOBODY = "http://127.0.0.1:1"


def site(folder: Path, *, brain: BrainAnswers | None = None, now: float = NOW, **keys_: Any) -> Installation:
    """An installation with these keys of brain.toml, and a data folder as the brain would have made it."""
    data = folder / "data"
    data.mkdir(mode=0o750, exist_ok=True)
    (data / "cell").mkdir(mode=0o750, exist_ok=True)
    found = brain_config.parse({"data_dir": str(data)} | keys_, "brain.toml", folder)
    return Installation(
        file=None, config=found, warnings=(), brain=brain, silent_why="refused", login=False, now=now
    )


def node(name: str, **more: Any) -> dict[str, Any]:
    """What `/api/nodes` says of a node that is well."""
    return {"name": name, "alive": True, "version": __version__, "dropped": 0, "clock_ahead_s": 0.01} | more


def answers(*nodes: Mapping[str, Any], **more: Any) -> BrainAnswers:
    """What a brain says that leads, with these nodes."""
    status = {
        "brain": "b1", "version": __version__, "cell": "default", "leads": True, "leader": "b1", "stopped": "",
        "troubles": [], "modes": [], "holds": [], "pack": "", "rules": 1, "runbooks": 1,
    }  # fmt: skip
    return BrainAnswers(status=status | more, nodes=nodes)


def lines(found: Iterator[HealthLine], health: Health, check: str = "") -> list[str]:
    """`text → action` of the lines with this health, and about this."""
    return [
        f"{one.text} → {one.action}" for one in found if one.health is health and check in ("", one.check)
    ]


async def gathered(found: AsyncIterator[HealthLine]) -> Iterator[HealthLine]:
    """The same of a check that asks others."""
    return iter([line async for line in found])


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
    listed = {one.__name__ for one in (*command.READING, *command.ASKING)}
    for module in (machine, key_checks, fleet, counterparts):
        own = {
            name
            for name, one in vars(module).items()
            if callable(one)
            and getattr(one, "__module__", "") == module.__name__
            and not name.startswith("_")
        }
        assert own <= listed, module.__name__


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
    )
    missing, open_ = lines(machine.files(found), Health.FAIL)
    assert missing.startswith(f"channels.pager.routing_key_file: {tmp_path}/gone.key is not there")
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
def test_a_secret_that_the_brain_cannot_read(tmp_path: Path) -> None:
    """One that root has put there, for a brain that is another user."""
    found = site(tmp_path)
    key = found.config.data_dir / "signing.key"
    keys.load_signer(key)
    os.chown(found.config.data_dir, 65534, 65534)
    os.chown(key, 0, 0)
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
            KernelClock(synchronised=True, offset_s=0.001, max_error_s=0.02),
            Health.OK,
            "off by at most 0.020 s",
        ),
        (
            KernelClock(synchronised=False, offset_s=0.0, max_error_s=16.0),
            Health.WARN,
            "nothing synchronises",
        ),
        (KernelClock(synchronised=True, offset_s=-3.0, max_error_s=0.02), Health.WARN, "off by -3.000 s"),
        (None, Health.UNCHECKED, "the kernel does not tell"),
    ],
)
def test_this_machines_clock(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, clock: KernelClock | None, health: Health, says: str
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


# --- keys and certificates ---


def test_a_rotation_that_does_not_go_on(tmp_path: Path) -> None:
    """While it waits it is told; when its time is over and nobody has taken the next step, it fails."""
    found = site(tmp_path)
    assert lines(key_checks.rotation(found), Health.OK, "key rotation") == ["none is under way → "]
    KeyRotation(found.config).begin(KeyKind.SIGNING, now=NOW, overlap_s=DAY_S)
    (text,) = lines(key_checks.rotation(found), Health.OK, "key rotation")
    assert text.startswith("signing: under way since 2026-09-21")
    late = site(tmp_path, now=NOW + 2 * DAY_S)
    (text,) = lines(key_checks.rotation(late), Health.FAIL)
    assert "that is over → start the brain" in text


def test_nodes_that_do_not_know_the_new_key(tmp_path: Path) -> None:
    """Those of the cell that have not confirmed what was announced."""
    found = site(tmp_path)
    CellRegistry(found.config.registry_file).add("gpu001", PUBLIC, now=NOW)
    KeyRotation(found.config).begin(KeyKind.SIGNING, now=NOW, overlap_s=DAY_S)
    (text,) = lines(key_checks.rotation(found), Health.WARN)
    assert text.startswith("announcement 1 is not confirmed by 1 node: gpu001")


def test_a_signing_key_that_is_not_the_brains(tmp_path: Path) -> None:
    """A brain answers, and the configuration names a key that is not there: it is another brain's configuration."""
    assert [one.health for one in key_checks.signing(site(tmp_path))] == [Health.UNCHECKED]
    (text,) = lines(key_checks.signing(site(tmp_path, brain=answers())), Health.FAIL)
    assert "is this brain's brain.toml the one that runs?" in text
    assert not (tmp_path / "data/signing.key").exists()


@pytest.mark.parametrize(
    ("days", "health", "says"),
    [(100, Health.OK, "first to end"), (380, Health.WARN, "ends"), (400, Health.FAIL, "ended")],
)
def test_when_certificates_end(tmp_path: Path, days: int, health: Health, says: str) -> None:
    """The server's lasts 397 days; thirty days before it is a warning."""
    found = site(tmp_path, now=NOW + days * DAY_S)
    Authority(found.config.cell_dir).make("default", ["brain.example"], NOW)
    (text,) = lines(key_checks.certificates(found), health)
    assert says in text
    assert "the server's" in text


# --- what the brain says ---


def test_a_brain_that_is_well(tmp_path: Path) -> None:
    """Only lines that say so, one for each thing that only a brain knows."""
    said = list(fleet.brain(site(tmp_path, brain=answers(node("n1"), node("n2")))))
    assert [(one.check, one.health) for one in said] == [
        (check, Health.OK) for check in ("brain", "nodes", "agents", "clocks of nodes", "modes")
    ]
    assert not any(one.action for one in said)


def test_nodes_versions_and_clocks(tmp_path: Path) -> None:
    """Silent nodes, those that joined and were never heard, dropped events, other versions, clocks that are off."""
    found = site(
        tmp_path,
        nats={"embedded": {"nodes": {"n9": PUBLIC}}},
        brain=answers(
            node("n1"),
            node("n2", alive=False),
            node("n3", dropped=7),
            node("n4", version="0.0.9", clock_ahead_s=-61.0),
            node("n5", version="0.1.0 (simulated)", clock_ahead_s=None),
        ),
    )
    said = list(fleet.brain(found))
    silent, never, late = lines(iter(said), Health.WARN, "nodes")
    assert silent.startswith("1 of 5 are not heard: n2 → look there")
    assert never.startswith("joined and never heard: n9")
    assert late.startswith("have dropped events: n3")
    (text,) = lines(iter(said), Health.WARN, "agents")
    assert text.startswith("the brain is 0.1.0, the agents: 1 × 0.0.9, 4 × 0.1.0")
    (text,) = lines(iter(said), Health.WARN, "clocks of nodes")
    assert text == "off: n4 -61.0 s → start chronyd there"


def test_an_agent_that_is_two_versions_behind(tmp_path: Path) -> None:
    """Brain and agents may differ by one."""
    found = site(tmp_path, brain=answers(node("n1", version="0.1.3"), version="0.3.0"))
    (text,) = lines(fleet.brain(found), Health.FAIL, "agents")
    assert text == "too far from the brain's 0.3.0: 1 × 0.1.3 → upgrade them, one version at a time"


def test_when_most_clocks_differ_it_is_the_brains(tmp_path: Path) -> None:
    """Three of three nodes are off by the same."""
    found = site(tmp_path, brain=answers(*(node(f"n{number}", clock_ahead_s=9.0) for number in range(3))))
    (text,) = lines(fleet.brain(found), Health.WARN, "clocks of nodes")
    assert text.endswith("→ look at the brain's own clock first: most nodes differ")


def test_troubles_modes_and_holds(tmp_path: Path) -> None:
    """What the brain pages about itself fails; modes are told in the order in which they count; a hold is seen."""
    modes = [
        {"runbook": "*", "nodes": "*", "mode": "observe", "who": ""},
        {"runbook": "link-bounce", "nodes": "*", "mode": "auto", "who": "ann"},
    ]
    found = site(
        tmp_path,
        brain=answers(
            node("n1"),
            troubles=[{"cause": "log_gap", "text": "inputs are missing"}],
            modes=modes,
            holds=[{"scope": "node/n1"}],
        ),
    )
    said = list(fleet.brain(found))
    assert lines(iter(said), Health.FAIL) == ["log_gap: inputs are missing → as the page says"]
    assert lines(iter(said), Health.OK, "modes") == [
        "observe everywhere, then auto: link-bounce on * (ann) → "
    ]
    (text,) = lines(iter(said), Health.WARN, "modes")
    assert text.startswith("1 hold in force: node/n1")


@pytest.mark.parametrize(
    ("leads", "leader", "health"),
    [(True, "b1", Health.OK), (False, "b2", Health.OK), (False, "", Health.FAIL)],
)
def test_who_leads(tmp_path: Path, leads: bool, leader: str, health: Health) -> None:
    """This brain, another one, or nobody."""
    found = site(tmp_path, brain=answers(node("n1"), leads=leads, leader=leader))
    assert [one.health for one in fleet.brain(found) if one.check == "brain"] == [health]


# --- whom the brain talks to ---


async def test_a_channel_that_nobody_can_reach(tmp_path: Path) -> None:
    """It is connected to, and no page is sent; a file is looked at."""
    found = site(
        tmp_path,
        channels={
            "hook": {"type": "webhook", "url": f"{NOBODY}/page"},
            "file": {"type": "log", "path": str(tmp_path / "pages.txt")},
        },
        dead_mans_switches={"outside": {"type": "url", "url": f"{NOBODY}/ping/secret"}},
    )
    said = list(await gathered(counterparts.channels(found)))
    assert [(one.check, one.health) for one in said] == [
        ("channel hook", Health.FAIL),
        ("channel file", Health.OK),
        ("dead man's switch outside", Health.FAIL),
    ]
    assert not any("secret" in one.text for one in said)
    assert not (tmp_path / "pages.txt").exists()


async def test_tables_that_cannot_be_built(tmp_path: Path) -> None:
    """As at the start: the key is named."""
    found = site(
        tmp_path,
        channels={"hook": {"type": "pigeon"}},
        switches={"s": {"type": "hammer"}},
        schedulers={"x": {"type": "cron"}},
    )
    for check, key in (
        (counterparts.channels, "channels.hook.type"),
        (counterparts.own_actions, "schedulers.x.type"),
        (counterparts.schedulers, "schedulers.x.type"),
    ):
        (text,) = lines(await gathered(check(found)), Health.FAIL)
        assert text.startswith(f"{key}: unknown type")


async def test_bmcs_before_any_node_is_known(tmp_path: Path) -> None:
    """Whose BMC would it be?"""
    (tmp_path / "word").write_text("x")
    table = {"type": "redfish", "address": "https://{node}-bmc.example", "user": "u", "password_file": "word"}
    (line,) = await gathered(counterparts.bmcs(site(tmp_path, bmc={"racks": table})))
    assert (line.check, line.health) == ("bmc racks", Health.UNCHECKED)


PUBLIC = "UDXU4RCSJNZOIQHZNWXHXORDPRTGNJAHAHFRGZNEEJCPQTT2M7NLCNF4"
