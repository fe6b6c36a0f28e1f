"""A backup of before a rotation and a revocation is put back, as docs/operations.md says.

People hear that nodes obey nobody, whoever was turned out stays out, and there is a way back.
"""

import shutil
import time
from pathlib import Path

import click
import pytest

from agent.contract.errors import Refused
from agent.contract.messages import Beat
from brain.adapters.liveness import Beats, LastBeat
from brain.adapters.rotation import KeyRotation
from brain.cell.confirmations import MOST_AHEAD, Confirmed, write_confirmed
from brain.cell.registry import CellRegistry, TurnedOut
from brain.cell.trust import KeyKind
from brain.cli.checkup import keys as key_checks
from brain.cli.checkup.lines import Health
from brain.cli.client import Client
from brain.config import BrainConfig, parse
from brain.leader.brain_alerts import BrainAlerts
from brain.leader.keys_behind import KeysBehind
from brain.leader.notes import BrainNotes
from tests.brain.shell.doctor_kit import DAY_S, NOW, lines
from tests.brain.shell.doctor_kit import site as installation
from tests.security import rotation_kit as kit
from tests.security.test_cell import Machine, machine
from tests.security.test_unreadable_files import public_key

BACKED_UP = ("cell", "signing.key", "signing.key.pub", "nats/keys")


@pytest.mark.component("nats-server")
def test_a_backup_of_before_a_rotation_and_a_revocation(tmp_path: Path) -> None:
    """The whole way: what is lost is said, with the command that helps, and it does help."""
    with machine(tmp_path) as whole:
        old_token = whole.token("--count", "9")
        for node in ("gpu-1", "gpu-2", "gpu-3"):
            whole.join(node, old_token)
        kit.start_heard(whole, "gpu-1", "gpu-2")
        backup(whole)
        assert "and the join token" in whole.cell("revoke", "gpu-3")
        for _ in range(2):
            whole.cell("rotate", "signing")
            whole.until(lambda: not kit.keys(whole)["rotations"], "the rotation is over")
            whole.until(lambda: not kit.keys(whole)["unconfirmed"], "all know it")
        whole.until(lambda: "nobody gets in by it" in whole.notes(), "the token's end is on the log")
        had = kit.trusted(whole, "gpu-1")["serial"]
        restore(whole)

        whole.until(lambda: "keys_behind" in troubles(whole), "people hear of the old keys")
        said = " ".join(whole.ann("status").split())
        assert "2 of 2 nodes trust newer keys than this brain has" in said
        assert "gpu-1, gpu-2" in said
        whole.until(lambda: kit.keys(whole)["keys_behind"], "`gpuward cell show` knows")
        assert f"trust newer keys than this brain has (announcement {had}, ours is 0)" in whole.cell("show")

        # Who was turned out stays out; by a token of now, and with another key, the node is let in again.
        whole.until(lambda: "taken out of the registry" in whole.notes(), "gpu-3 is out of the registry")
        for thief in ("gpu-3", "gpu-9"):
            assert "wrong or was revoked" in whole.join(thief, old_token, status=1)
        new_token = whole.token("--count", "9")
        (tmp_path / "gpu-3/node.nk").unlink()
        whole.join("gpu-3", new_token)
        kit.start_heard(whole, "gpu-3")
        assert "gpu-3 is let in again" in whole.notes()

        # The way back.
        whole.cell("rotate", "signing", "--compromised")
        whole.until(lambda: "keys_behind" not in troubles(whole), "the numbers are above the nodes'")
        assert kit.keys(whole)["announcement"] == had + 2
        whole.until(
            lambda: {"gpu-1", "gpu-2"} <= {*kit.keys(whole)["join_again"]}, "who must join again is named"
        )
        whole.join("gpu-1", new_token)
        kit.stop(whole, "gpu-1")
        kit.start_heard(whole, "gpu-1")
        whole.until(lambda: "gpu-1" not in kit.keys(whole)["join_again"], "gpu-1 obeys again")
        whole.ask("mode", "accept-node", "auto")
        whole.ask("start", "accept-node", "--node", "gpu-1")
        log = tmp_path / "gpu-1.log"
        whole.until(lambda: "gpu.links_check" in log.read_text(), "a command has come, and is taken")


@pytest.mark.component("nats-server")
def test_a_token_of_a_person_that_was_revoked_stays_revoked(tmp_path: Path) -> None:
    """Who has left, or has had a token stolen, does not come in by it when the file of tokens is put back: the log knows it."""
    with machine(tmp_path) as whole:
        stolen, kept = (whole.ask("token", "create", "ann") for _ in range(2))
        for one in (stolen, kept):
            assert who(whole, one["token"]) == "ann"
        shutil.copy2(whole.data / "tokens.json", tmp_path / "kept.json")
        assert "revoked" in whole.ann("token", "revoke", stolen["id"])
        assert who(whole, stolen["token"]) == ""
        whole.until(lambda: "nobody gets in by it" in whole.notes(), "the log knows it")
        whole.stop_brain()
        shutil.copy2(tmp_path / "kept.json", whole.data / "tokens.json")
        (whole.data / "cell/void.json").unlink()  # of the backup, too: before anything was revoked
        whole.start_brain()
        assert who(whole, stolen["token"]) == ""
        assert who(whole, kept["token"]) == "ann"
        assert f"{stolen['id']}" in (listed := whole.ann("token", "list"))
        assert listed.count("it was revoked, and this file is older") == 1


def who(whole: Machine, token: str) -> str:
    """Whom the brain takes the bearer of this token for; empty: for nobody."""
    file = whole.folder / "shown.token"
    file.write_text(token)
    client = Client(whole.url, file, whole.data / "cell/ca.pem", faithful=True)
    try:
        return str(client.get("me")["name"])
    except click.ClickException:
        return ""


def backup(whole: Machine) -> None:
    """As docs/operations.md lists it, while the brain is stopped."""
    whole.stop_brain()
    copy(whole.data, whole.folder / "backup")
    whole.start_brain()


def restore(whole: Machine) -> None:
    """What is lost is put back."""
    whole.stop_brain()
    for what in ("cell", "nats/keys"):
        shutil.rmtree(whole.data / what)
    copy(whole.folder / "backup", whole.data)
    whole.start_brain()


def copy(source: Path, target: Path) -> None:
    """The files of a backup."""
    for what in BACKED_UP:
        (target / what).parent.mkdir(parents=True, exist_ok=True)
        if (source / what).is_dir():
            shutil.copytree(source / what, target / what)
        else:
            shutil.copy2(source / what, target / what)


def troubles(whole: Machine) -> list[str]:
    """The causes of the brain's own alerts."""
    return [one["cause"] for one in whole.status().get("troubles", ())]


# --- who says that our keys are old ---


class Told(BrainAlerts, BrainNotes):
    """Alerts and notes, as they are now."""

    def __init__(self) -> None:
        self.alerts: dict[str, str] = {}
        self.notes: list[str] = []

    def open(self, cause: str, text: str) -> None:
        """As BrainAlerts.open."""
        self.alerts[cause] = text

    def clear(self, cause: str) -> None:
        """As BrainAlerts.clear."""
        self.alerts.pop(cause, None)

    def write(self, kind: str, text: str, who: str = "") -> None:
        """As BrainNotes.write."""
        self.notes.append(text)


def rotated(folder: Path) -> tuple[BrainConfig, KeyRotation]:
    """A brain that has announced twice."""
    config = parse({"data_dir": str(folder)}, "test", folder)
    config.cell_dir.mkdir()
    keys = KeyRotation(config)
    keys.begin(KeyKind.SIGNING, now=0.0, overlap_s=1.0)
    for _ in range(2):
        keys.advance(KeyKind.SIGNING, now=1.0)
    assert keys.file.state().serial == 2
    return config, keys


def looked(config: BrainConfig, trust: list[int]) -> Told:
    """Nodes say in their beats which announcement they trust; the brain looks twice."""
    beats, told = Beats(), Told()
    for number, serial in enumerate(trust):
        beat = Beat(
            node=f"n{number}",
            session="s",
            boot="b",
            mono_s=1.0,
            version="1",
            spooled=0,
            dropped=0,
            trust=serial,
        )
        beats.newest[beat.node] = LastBeat(beat, time.monotonic())
    behind = KeysBehind(config, leads=lambda: True, beats=beats, alerts=told, notes=told)
    behind.look()
    assert not told.alerts, "one look decides nothing: two files are changed one after the other"
    behind.look()
    behind.look()
    return told


@pytest.mark.parametrize(
    ("trust", "paged", "noted"),
    [
        ([2, 2, 1, 0], False, 0),  # some have not confirmed yet
        ([2, 2, 9], False, 1),  # one may lie (law 15)
        ([2, 2, 2**62], False, 1),
        ([2, 9, 9], True, 0),
        ([9], True, 0),  # the only one there is
        ([], False, 0),
    ],
)
def test_two_nodes_are_a_page_and_one_is_named(
    tmp_path: Path, trust: list[int], paged: bool, noted: int
) -> None:
    """The page is about the cell, so no single node of several makes it."""
    config, _ = rotated(tmp_path)
    told = looked(config, trust)
    assert ("keys_behind" in told.alerts) is paged
    assert len(told.notes) == noted
    assert all("node n2 says that it trusts announcement" in one for one in told.notes)


def test_a_signing_key_that_was_never_announced_is_a_page_though_no_node_says_so(tmp_path: Path) -> None:
    """Only signing.key was put back."""
    config, keys = rotated(tmp_path)
    old = config.signing_key.read_bytes()
    keys.begin(KeyKind.SIGNING, now=2.0, overlap_s=1.0)
    assert not looked(config, [2]).alerts
    for _ in range(2):
        keys.advance(KeyKind.SIGNING, now=3.0)
    assert not looked(config, [4, 4]).alerts
    config.signing_key.write_bytes(old)
    assert "refuse every command" in looked(config, [4, 4]).alerts["keys_behind"]


@pytest.mark.parametrize(
    ("has", "next_one"),
    [
        ([], 3),
        ([2, 1], 3),
        ([26, 26, 2], 27),
        ([2, 2 * MOST_AHEAD], 3),  # a number that no honest node has by then
        ([26, 2**62], 27),
    ],
)
def test_numbers_go_on_above_those_that_nodes_have(tmp_path: Path, has: list[int], next_one: int) -> None:
    """So nodes take what is announced after a restore; a liar makes no number that nobody can count any more."""
    _, keys = rotated(tmp_path)
    nodes = {f"n{number}": Confirmed(serial=serial, live=True) for number, serial in enumerate(has)}
    write_confirmed(keys.file.confirmed_file, nodes)
    keys.begin(KeyKind.SIGNING, now=2.0, overlap_s=1.0)
    assert keys.file.state().serial == next_one
    keys.replace_compromised()
    state = keys.file.state()
    assert (state.joined_since, state.serial) == (next_one + 2, next_one + 2)


def test_the_doctor_says_that_keys_are_old(tmp_path: Path) -> None:
    """One node of several is a warning with its name; two fail, with the way out."""
    found = installation(tmp_path)
    keys = KeyRotation(found.config)
    keys.begin(KeyKind.SIGNING, now=NOW, overlap_s=DAY_S)
    for serials, health in (((1, 1, 5), Health.WARN), ((1, 5, 5), Health.FAIL)):
        nodes = {f"n{number}": Confirmed(serial=serial, live=True) for number, serial in enumerate(serials)}
        write_confirmed(keys.file.confirmed_file, nodes)
        (text,) = lines(key_checks.rotation(found), health)
        assert "trust newer keys than this brain has (announcement 5, ours is 1)" in text
        assert ("rotate signing --compromised" in text) is (health is Health.FAIL)
        assert not lines(key_checks.rotation(found), Health.OK, "keys of nodes")


# --- a registry that is older than the log ---


def test_what_the_registry_has_forgotten_the_log_knows(tmp_path: Path) -> None:
    """A revoked token lets nobody in; a revoked name needs a token made later and a new key, and is let in anew by them."""
    now = 1000.0
    registry, kept = CellRegistry(tmp_path / "registry.json"), tmp_path / "kept.json"
    public, another = public_key(), public_key()
    id_, secret = registry.make_token("*", count=5, now=now, lasts_s=1e6)
    registry.join(id_, secret, "n1", public, now=now)
    shutil.copy(tmp_path / "registry.json", kept)
    registry.revoke("n1", now=now + 10, by="ann")
    assert [(key, one.by) for key, one in registry.void().items()] == [(id_, "ann")]

    shutil.copy(kept, tmp_path / "registry.json")
    told = TurnedOut(nodes={"n1": now + 10}, tokens={id_})
    (tmp_path / "void.json").unlink()  # it was not in the backup either
    restored = CellRegistry(tmp_path / "registry.json")
    for name, key in (("n1", public), ("n2", another), ("n2", public)):
        with pytest.raises(Refused, match="wrong or was revoked"):
            restored.join(id_, secret, name, key, now=now + 20, turned_out=told)
    early_id, early = restored.make_token("*", count=5, now=now + 5, lasts_s=1e6)
    with pytest.raises(Refused, match="was revoked after this join token was made"):
        restored.join(early_id, early, "n1", public, now=now + 20, turned_out=told)
    late_id, late = restored.make_token("*", count=5, now=now + 15, lasts_s=1e6)
    with pytest.raises(Refused, match="which was revoked: each node makes its own"):
        restored.join(late_id, late, "n2", public, now=now + 20, turned_out=told)
    with pytest.raises(Refused, match="join --new-key"):  # whoever has copied it would be let in too
        restored.join(late_id, late, "n1", public, now=now + 20, turned_out=told)
    assert restored.join(late_id, late, "n1", another, now=now + 20, turned_out=told).since > now + 10
    assert restored.nodes()["n1"].by == late_id
    restored.turn_out("n1", at=now + 10, by="ann")
    assert "n1" in restored.nodes(), "it has joined since"
