"""What `gpuward doctor` says of keys and certificates, of what a brain answers, and of whom the brain talks to."""

import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from agent import __version__
from brain.adapters import keys
from brain.adapters.rotation import KeyRotation
from brain.cell.authority import Authority
from brain.cell.registry import CellRegistry
from brain.cell.trust import KeyKind
from brain.cli import doctor
from brain.cli.checkup import counterparts, fleet, machine
from brain.cli.checkup import keys as key_checks
from brain.cli.checkup.lines import Health
from brain.cli.client import Client
from brain.console.access.tokens import Tokens
from brain.console_config import Role
from tests.brain.shell.doctor_kit import DAY_S, NOBODY, NOW, PUBLIC, answers, gathered, lines, node, site
from tests.mail_server import mail_server

# --- keys and certificates ---


@pytest.mark.parametrize(
    ("here", "file", "action"),
    [
        (True, "/srv/up/config/brain.toml", "`gpuward doctor --config /srv/up/config/brain.toml`"),
        (True, "", "`gpuward doctor --data /srv/up/brain`"),
        (False, "/srv/up/config/brain.toml", ""),
    ],
)
def test_the_brain_that_answers_is_not_the_one_that_is_looked_at(
    tmp_path: Path, here: bool, file: str, action: str
) -> None:
    """Its folder is another one: what is said of files would be of no brain. On another machine paths say nothing."""
    told = answers(node("n1"), here=here, data_dir="/srv/up/brain", config_file=file)
    wrong = lines(fleet.brain(site(tmp_path, brain=told)), Health.FAIL, "brain")
    assert len(wrong) == bool(action)
    if action:
        assert f"keeps its data in /srv/up/brain, and this looks at {tmp_path}/data" in wrong[0]
        assert action in wrong[0]
    same = answers(node("n1"), here=here, data_dir=str(tmp_path / "data"), config_file=file)
    assert lines(fleet.brain(site(tmp_path, brain=same)), Health.FAIL, "brain") == []


@pytest.mark.parametrize(
    ("more", "fails"),
    [
        ({"connected": False, "leads": False}, "b1: it is not connected to NATS"),
        (
            {
                "connected": False,
                "leads": False,
                "troubles": [{"cause": "brain_disconnected", "text": "for 10 s"}],
            },
            "brain_disconnected: for 10 s",
        ),
        ({"leads": False, "troubles": [{"cause": "nobody_leads", "text": "silent"}]}, "nobody_leads: silent"),
    ],
)
def test_a_brain_that_hears_nobody_says_nothing_of_nodes(
    tmp_path: Path, more: dict[str, Any], fails: str
) -> None:
    """They were alive when it heard them last; that would be a false "ok" while an outage is looked into."""
    found = [*fleet.brain(site(tmp_path, brain=answers(node("n1"), **more)))]
    failing = lines(iter(found), Health.FAIL, "brain")
    assert len(failing) == 1
    assert failing[0].startswith(fails)
    assert {one.check for one in found if one.health is Health.UNCHECKED} == {
        "nodes",
        "agents",
        "clocks of nodes",
    }
    assert {one.check for one in found if one.health is Health.OK} == {"modes"}


@pytest.mark.root
def test_root_reads_no_file_that_another_users_brain_has_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It stays with the defaults, and the line above says which file to name."""
    tmp_path.chmod(0o755)
    file = tmp_path / "brain.toml"
    file.write_text("")
    told = answers(node("n1"), here=True, data_dir=str(tmp_path), config_file=str(file))
    monkeypatch.setattr(doctor, "ask", lambda _: (told, ""))
    monkeypatch.setattr(doctor, "chosen", lambda _: None)
    assert doctor._of_which(Client(NOBODY), None, None) == (file, tmp_path)
    os.chown(file, 65534, 65534)
    assert doctor._of_which(Client(NOBODY), None, None) == (None, None)


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


def test_a_signing_key_that_is_gone(tmp_path: Path) -> None:
    """Nodes obey it: the brain makes no other, and the doctor promises none."""
    found = site(tmp_path)
    keys.load_signer(found.config.signing_key)
    found.config.signing_key.unlink()
    (text,) = lines(key_checks.signing(found), Health.FAIL)
    assert "put it back from your backup" in text


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


def test_tokens_of_machines_that_end(tmp_path: Path) -> None:
    """Prometheus, Alertmanager and `fleet` come by tokens that end after 90 days: who renews them hears of it before, and for a
    while afterwards. What was made for hours only, what a login made, and what has a successor, is nobody's work.
    """
    found = site(tmp_path)
    made = Tokens(found.config.tokens_file)

    def token(user: str, *, ends_days: float, lasts_days: float = 90.0, login: bool = False) -> str:
        began = NOW + (ends_days - lasts_days) * DAY_S
        return made.make(user, Role.VIEWER, now=began, lasts_s=lasts_days * DAY_S, by="ann", login=login)[
            0
        ].id

    token("grafana", ends_days=80)
    assert not lines(key_checks.tokens(found), Health.WARN)
    assert "1 token" in lines(key_checks.tokens(found), Health.OK)[0]
    soon = token("prometheus", ends_days=10)
    token("ann", ends_days=0.2, lasts_days=1)
    token("bob", ends_days=5, login=True)
    token("old", ends_days=5)
    token("old", ends_days=85)
    (text,) = lines(key_checks.tokens(found), Health.WARN)
    assert text.startswith(f"end soon: prometheus ({soon}, until 2026-")
    assert "`gpuward token create prometheus`" in text
    later = replace(found, now=NOW + 11 * DAY_S)
    (text,) = lines(key_checks.tokens(later), Health.FAIL)
    assert text.startswith(f"no longer good: prometheus ({soon}, until 2026-")
    assert not lines(key_checks.tokens(replace(found, now=NOW + 60 * DAY_S)), Health.FAIL), "nobody missed it"
    found.config.tokens_file.write_text("[")
    assert "restore it" in lines(key_checks.tokens(found), Health.FAIL)[0]


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
            node("n5", version=f"{__version__} (simulated)", clock_ahead_s=None),
        ),
    )
    said = list(fleet.brain(found))
    silent, never, late = lines(iter(said), Health.WARN, "nodes")
    assert silent.startswith("1 of 5 are not heard: n2 → look there")
    assert never.startswith("joined and never heard: n9")
    assert late.startswith("have dropped events: n3")
    (text,) = lines(iter(said), Health.WARN, "agents")
    assert text.startswith(
        f"the brain is {__version__}, the agents: 1 × 0.0.9 (n4), 4 × {__version__} → finish"
    )
    (text,) = lines(iter(said), Health.WARN, "clocks of nodes")
    assert text == "off: n4 -61.0 s → start chronyd there"


def test_a_fleet_that_is_not_heard_at_all(tmp_path: Path) -> None:
    """It is no matter of single nodes: the doctor fails."""
    found = site(tmp_path, brain=answers(*(node(f"n{number}", alive=False) for number in range(3))))
    (text,) = lines(fleet.brain(found), Health.FAIL)
    assert text.startswith("none of 3 is heard: n0, n1, n2 → look at the log of one's agent first")


def test_an_agent_that_is_three_versions_behind(tmp_path: Path) -> None:
    """Brain and agents may differ by two."""
    found = site(tmp_path, brain=answers(node("n1", version="0.1.3"), version="0.4.0"))
    (text,) = lines(fleet.brain(found), Health.FAIL, "agents")
    assert text == "too far from the brain's 0.4.0: 1 × 0.1.3 (n1) → upgrade them"


def test_a_large_fleet_names_some_of_the_nodes_that_are_left(tmp_path: Path) -> None:
    """Whoever is to finish an upgrade of thousands must know where; names of all of them would hide the rest."""
    old = (node(f"n{number}", version="0.1.3") for number in range(5000))
    found = site(tmp_path, brain=answers(*old, node("n9999")))
    (text,) = lines(fleet.brain(found), Health.WARN, "agents")
    assert "5000 × 0.1.3 (n0, n1, n2, n3, n4, n5, n6, n7 and 4992 more), 1 × " in text


@pytest.mark.parametrize("says", ["0.2.1;curl${IFS}x|sh", "→upgrade", "9" * 70, "ok", "1.2`id`"])
def test_a_node_that_says_nonsense_is_no_version_of_the_fleet(tmp_path: Path, says: str) -> None:
    """One node's word neither stands among our own words nor fails the whole installation; it is named."""
    said = list(fleet.brain(site(tmp_path, brain=answers(node("n1"), node("n2", version=says)))))
    assert not lines(iter(said), Health.FAIL)
    (text,) = lines(iter(said), Health.WARN, "agents")
    assert text.startswith("say no version of an agent: n2 → ")
    assert not any(says in f"{one.text}{one.action}" for one in said if says != "ok")


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


# --- what is damaged, or somebody else's ---


def test_a_key_that_is_damaged(tmp_path: Path) -> None:
    """Each that the brain or its server would not start with, with what to do; nothing is said of one that is not there."""
    found = site(tmp_path)
    own = Authority(found.config.cell_dir)
    own.make("default", ["brain.example"], NOW)
    seed = found.config.brain_seed
    assert seed is not None
    assert list(key_checks.broker_key(found)) == []
    keys.load_nkey(seed)
    assert [one.health for one in key_checks.broker_key(found)] == [Health.OK]
    assert lines(key_checks.certificates(found), Health.FAIL) == []
    for file in (seed, own.key_file):
        file.write_text("garbage\n")
    (text,) = lines(key_checks.broker_key(found), Health.FAIL)
    assert "put it back from your backup. If there is none, remove it: another is made" in text
    (text,) = lines(key_checks.certificates(found), Health.FAIL)
    assert "no certificate with its key" in text
    assert "`gpuward cell rotate server`" in text


@pytest.mark.root
def test_a_secret_of_another_user_is_not_for_root_alone(tmp_path: Path) -> None:
    """Mode 0600, and it is theirs: they read and change it, though root's brain can read it too."""
    found = site(tmp_path)
    keys.load_signer(found.config.signing_key)
    os.chown(found.config.signing_key, 65534, 65534)
    (text,) = lines(machine.files(found), Health.FAIL)
    assert "belongs to nobody, who is neither root nor the brain's user root" in text
    assert f"chown root {found.config.signing_key}" in text


async def test_mail_servers_of_reports(tmp_path: Path) -> None:
    """Each is connected to, and mails nothing; one that is away, and a URL that is none for mails, are told."""
    with mail_server() as server:
        for name, url in {
            "good": server.url(),
            "away": "mailto://127.0.0.1:1/?from=a@b.example&to=c@d.example&mode=insecure",
        }.items():
            (tmp_path / f"{name}.url").write_text(url)
        table = {"what": "week", "url_file": "good.url"}
        found = site(
            tmp_path, reports=[{"name": "a", **table}, {"name": "b", **table, "url_file": "away.url"}]
        )
        good, away = await gathered(counterparts.reports(found))
        assert (good.health, good.check, good.text) == (
            Health.OK, "report a", f"127.0.0.1:{server.port} lets us in; nothing was mailed",
        )  # fmt: skip
        assert (away.health, away.check, "127.0.0.1:1" in away.text) == (Health.FAIL, "report b", True)
        assert server.mails == []
    (tmp_path / "good.url").write_text("json://127.0.0.1/")
    (wrong,) = await gathered(counterparts.reports(found))
    assert wrong.health is Health.FAIL
    assert "reports.0.url_file" in wrong.text
