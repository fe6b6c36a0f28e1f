"""`gpuward cell share` and `take`: two brains come to one set of keys, and neither goes back to an older one. `certificate`: for
NATS servers.
"""

import base64
import json
import random
import ssl
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner

from agent.contract.errors import ConfigError
from brain import config as brain_config
from brain.adapters import keys, nkey, operator_mode
from brain.adapters.nkey import NkeyKind
from brain.adapters.rotation import KeyRotation
from brain.cell.authority import Authority
from brain.cell.registry import CellRegistry
from brain.cell.trust import KeyKind, TrustState
from brain.cli import cell_shared
from brain.cli.main import group
from brain.config import BrainConfig

NOW = time.time()


class Brain:
    """One brain's machine, and what somebody types there."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.data = folder / "data"
        folder.mkdir()
        (folder / "brain.toml").write_text(f'data_dir = "{self.data}"\n')

    @property
    def config(self) -> BrainConfig:
        """Its configuration."""
        return brain_config.load(self.folder / "brain.toml")

    def says(self, *argv: str, given: str = "") -> str:
        """What `gpuward cell ...` prints; ConfigError as it raises it."""
        done = CliRunner().invoke(
            group({}), ["cell", *argv, "--config", str(self.folder / "brain.toml")], input=given
        )
        if isinstance(done.exception, ConfigError):
            raise done.exception
        assert done.exit_code == 0, done.output
        return done.output

    def init(self) -> "Brain":
        """A cell, whose NATS is to be in operator mode."""
        self.says("init", "--name", "brain.example")
        self.says("export", "--jwt", str(self.folder / "nats"))
        return self

    def rotated(self, kind: KeyKind) -> None:
        """To its end."""
        rotation = KeyRotation(self.config)
        rotation.begin(kind, now=NOW, overlap_s=0)
        for _ in range(2):
            rotation.advance(kind, now=NOW)

    def key_id(self) -> str:
        """Of the key that signs commands."""
        return keys.read_signer(self.config.signing_key).key_id


def error(of: Callable[[], object]) -> str:
    """The ConfigError."""
    with pytest.raises(ConfigError) as caught:
        of()
    return str(caught.value)


@pytest.fixture
def brains(tmp_path: Path) -> tuple[Brain, Brain]:
    """The first has the cell; the second has nothing."""
    return Brain(tmp_path / "b1").init(), Brain(tmp_path / "b2")


def test_a_second_brain_has_all_that_it_needs(brains: tuple[Brain, Brain]) -> None:
    """Before the first one has ever run: the signing key is made when it is shared. The registry stays where nodes join. Files
    are private, and a second time nothing is done.
    """
    first, second = brains
    file = first.folder / "cell.json"
    first.says("share", str(file))
    assert file.stat().st_mode & 0o777 == 0o600
    CellRegistry(first.config.registry_file).make_token("*", count=1, now=NOW, lasts_s=60)
    assert "signing.key" in second.says("take", str(file))
    assert second.key_id() == first.key_id()
    assert second.config.signing_key.with_name("signing.key.pub").exists()
    for name in (
        "account.nk",
        "brain.nk",
        "operator.nk",
        "system.creds",
        "ca.pem",
        "ca.key",
        "server.pem",
        "server.key",
    ):
        mine, theirs = (one.config.cell_dir / name for one in brains)
        assert theirs.read_bytes() == mine.read_bytes(), name
        assert theirs.stat().st_mode & 0o777 == (0o644 if name.endswith(".pem") else 0o600), name
    assert not second.config.registry_file.exists()
    assert "nothing is new" in second.says("take", "-", given=first.says("share", "-"))
    seed = second.config.cell_dir / "brain.nk"
    seed.unlink()
    nkey.load_or_make(seed, NkeyKind.USER)
    told = second.says("take", str(file))
    assert f"{seed} stays" in told, "it may have been rotated, here or there"
    seed.unlink()
    assert second.says("take", str(file)) == "taken: brain.nk\n"


def test_after_a_rotation_the_newer_keys_win_on_either_side(brains: tuple[Brain, Brain]) -> None:
    """A Secret that is older than a rotation brings nothing back; a newer one brings key, announcements and authority, and the
    second brain's certificate is of that authority.
    """
    first, second = brains
    before = first.says("share", "-")
    second.says("take", "-", given=before)
    old = first.key_id()
    for kind in (KeyKind.SIGNING, KeyKind.AUTHORITY):
        first.rotated(kind)
    assert "nothing is new" in first.says("take", "-", given=before)
    assert first.key_id() != old
    told = second.says("take", "-", given=first.says("share", "-"))
    assert all(name in told for name in ("ca.pem", "ca.key", "cross.pem", "signing.key", "trust.json"))
    assert second.key_id() == first.key_id()
    mine, theirs = (Authority(one.config.cell_dir) for one in brains)
    assert theirs.fingerprint() == mine.fingerprint()
    server = ssl.create_default_context(cafile=str(theirs.ca_file))
    assert shows(server, theirs.certificate_file, theirs.key_file, "brain.example")


def test_what_is_not_one_cell_stays_two(brains: tuple[Brain, Brain], tmp_path: Path) -> None:
    """Keys of another cell, another name, a key that each has made for itself, a name that leads elsewhere: nothing is
    written.
    """
    first, second = brains
    shared = first.says("share", "-")
    other = Brain(tmp_path / "b3").init()
    other.says("share", "-")
    before = {path: path.read_bytes() for path in other.data.rglob("*") if path.is_file()}
    assert "they are two cells" in error(lambda: other.says("take", "-", given=shared))
    raw = json.loads(shared)
    for changed, says in (
        ({"cell": "elsewhere"}, "this is of cell elsewhere"),
        ({"files": {"../x": "y"}}, "nothing that brains have in common"),
        ({"more": 1}, "not what `gpuward cell share` writes"),
        ({"files": raw["files"] | {"trust.json": "{"}}, "trust.json in this file is damaged"),
    ):
        given = json.dumps(raw | changed)
        assert says in error(lambda given=given: second.says("take", "-", given=given))  # type: ignore[misc]  # a default of a lambda has no type
    assert not second.data.exists()
    keys.load_signer(second.config.signing_key)
    assert "signing.key is another key" in error(lambda: second.says("take", "-", given=shared))
    assert before == {path: path.read_bytes() for path in other.data.rglob("*") if path.is_file()}


def test_a_machine_with_an_authority_of_its_own_is_another_cell(brains: tuple[Brain, Brain]) -> None:
    """Somebody says `init` on the second machine as on the first, and then `take`: its console would show a certificate that no
    node of the cell trusts, beside the key that they obey. Nothing is taken, and it says what to move away; then it works.
    """
    first, second = brains
    shared = first.says("share", "-")
    second.says("init", "--name", "second.example")
    before = {path: path.read_bytes() for path in second.data.rglob("*") if path.is_file()}
    told = error(lambda: second.says("take", "-", given=shared))
    assert f"{second.config.cell_dir / 'ca.pem'} is another authority" in told
    assert before == {path: path.read_bytes() for path in second.data.rglob("*") if path.is_file()}
    second.config.cell_dir.rename(second.folder / "away")
    assert "ca.pem" in second.says("take", "-", given=shared)
    assert Authority(second.config.cell_dir).fingerprint() == Authority(first.config.cell_dir).fingerprint()


def test_what_was_lost_of_a_pair_is_not_mixed_with_another(brains: tuple[Brain, Brain]) -> None:
    """The second brain has a certificate of its own, and loses its key: the other brain's key does not fit it, so neither is
    taken; what the authority signs with comes back.
    """
    first, second = brains
    shared = first.says("share", "-")
    second.says("take", "-", given=shared)
    second.says("rotate", "server", "--name", "second.example", "--only")
    own = Authority(second.config.cell_dir)
    shown = own.certificate_file.read_bytes()
    own.key_file.unlink()
    second.config.cell_dir.joinpath("ca.key").unlink()
    told = second.says("take", "-", given=shared)
    assert "taken: ca.key" in told
    assert f"{own.key_file} is not there, and that of the file is of another certificate" in told
    assert "gpuward cell rotate server" in told
    assert own.certificate_file.read_bytes() == shown
    assert not own.key_file.exists()


def test_what_was_taken_can_be_compared(brains: tuple[Brain, Brain], tmp_path: Path) -> None:
    """Whoever has not typed --check is shown it: a signing key with another bit is a key, which no node obeys."""
    first, second = brains
    _, _, said = first.says("share", str(tmp_path / "cell.json")).partition("--check ")
    check = said.partition("`")[0]
    told = second.says("take", str(tmp_path / "cell.json"))
    assert f"must be what `gpuward cell share` has printed: --check {check}" in told
    assert "--check" not in second.says("take", str(tmp_path / "cell.json"), "--check", check)


@pytest.mark.parametrize("damage", [b"", b"-----BEGIN CERTIFICATE-----\nMIIB\n", None])
def test_a_certificate_that_is_lost_is_made_anew(brains: tuple[Brain, Brain], damage: bytes | None) -> None:
    """The doctor sends people to `rotate server`: the names that it had are lost with it, so it asks for them."""
    first, _ = brains
    own = Authority(first.config.cell_dir)
    if damage is None:
        own.certificate_file.unlink()
    else:
        own.certificate_file.write_bytes(damage)
    told = error(lambda: first.says("rotate", "server"))
    assert "`gpuward cell rotate server --only --name NAME`" in told
    assert "for brain.example" in first.says("rotate", "server", "--only", "--name", "brain.example")
    own.check_key()


def test_what_cannot_be_shared_now(brains: tuple[Brain, Brain]) -> None:
    """There is no cell; keys are being rotated; nodes obey a key that is gone."""
    first, second = brains
    assert "there is no cell yet" in error(lambda: cell_shared.gathered(second.config))
    cell_shared.gathered(first.config)
    KeyRotation(first.config).begin(KeyKind.SIGNING, now=NOW, overlap_s=60)
    assert "being rotated" in error(lambda: cell_shared.gathered(first.config))
    for _ in range(2):
        KeyRotation(first.config).advance(KeyKind.SIGNING, now=NOW)
    first.config.signing_key.unlink()
    assert "is gone" in error(lambda: cell_shared.gathered(first.config))


def test_a_certificate_for_both_ends_of_a_route(tmp_path: Path) -> None:
    """NATS servers show it to clients and to each other; the next one is by the same authority, which is not the cell's."""
    folder, names = tmp_path / "tls", ("n1.example", "n2.example")
    argv = ["cell", "certificate", str(folder)]
    done = CliRunner().invoke(group({}), [*argv, *(f"--name={name}" for name in names)])
    assert done.exit_code == 0, done.output
    trusts = ssl.create_default_context(cafile=str(folder / "ca.pem"))
    first = (folder / "server.pem").read_bytes()
    assert CliRunner().invoke(group({}), argv).exit_code == 0
    assert (folder / "server.pem").read_bytes() != first
    pair = folder / "server.pem", folder / "server.key"
    trusts.load_cert_chain(*pair)
    for name in names:
        assert shows(trusts, *pair, name, asks=folder / "ca.pem")
    (tmp_path / "ca.key").write_bytes((folder / "ca.key").read_bytes())
    (tmp_path / "ca.pem").write_bytes((folder / "ca.pem").read_bytes())
    plain = Authority(tmp_path)
    plain.issue(names, NOW)
    trusts.load_cert_chain(plain.certificate_file, plain.key_file)
    with pytest.raises(ssl.SSLError):
        shows(trusts, *pair, names[0], asks=folder / "ca.pem")
    found = CliRunner().invoke(group({}), ["cell", "certificate", str(tmp_path / "none")])
    assert "give at least one name" in str(found.exception)


def shows(client: ssl.SSLContext, certificate: Path, key: Path, name: str, asks: Path | None = None) -> bool:
    """Is a server with this certificate taken by that name? `asks`: it takes only clients for whom this authority vouches."""
    server = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH, cafile=str(asks) if asks else None)
    server.verify_mode = ssl.CERT_REQUIRED if asks else ssl.CERT_NONE
    server.load_cert_chain(certificate, key)
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    ends = (
        client.wrap_bio(to_client, to_server, server_hostname=name),
        server.wrap_bio(to_server, to_client, server_side=True),
    )
    done: set[int] = set()
    for _ in range(10):
        for number, end in enumerate(ends):
            try:
                end.do_handshake()
            except ssl.SSLWantReadError:
                continue
            done.add(number)
    return done == {0, 1}


def test_a_file_that_has_changed_on_its_way_is_not_taken(brains: tuple[Brain, Brain], tmp_path: Path) -> None:
    """With what `share` has printed, no bit of it; without, nothing that is no key. Nothing is half taken."""
    first, second = brains
    file, chance = tmp_path / "cell.json", random.Random(5)
    _, _, said = first.says("share", str(file)).partition("--check ")
    check = said.partition("`")[0]
    whole = file.read_bytes()
    for at in chance.sample(range(len(whole)), 60):
        file.write_bytes(whole[:at] + bytes([whole[at] ^ 1 << chance.randrange(8)]) + whole[at + 1 :])
        if (
            file.read_text(errors="replace").split() != whole.decode().split()
        ):  # a space between keys is another one
            assert error(lambda: second.says("take", str(file), "--check", check))
        assert not second.data.exists()
    shared = json.loads(whole)
    for name in shared["files"]:
        text = shared["files"][name]
        middle = len(text) // 2
        for damaged in (text[:middle], text[:middle] + "\u2028" + text[middle:], ""):
            file.write_text(json.dumps(shared | {"files": shared["files"] | {name: damaged}}))
            told = error(lambda: second.says("take", str(file)))
            assert " in this file is damaged" in told
            assert "nothing was taken" in told
            assert not second.data.exists()
    file.write_bytes(whole)
    assert "signing.key" in second.says("take", str(file), "--check", check)


def test_one_other_bit_of_what_can_prove_itself_is_found_without_the_check(
    brains: tuple[Brain, Brain], tmp_path: Path
) -> None:
    """Announcements are signed, and name the key that signs; a JWT is signed too. A seed has a sum of its own."""
    first, second = brains
    for kind in (KeyKind.SIGNING, KeyKind.AUTHORITY):
        first.rotated(kind)
    whole = cell_shared.gathered(first.config)
    chance = random.Random(12)
    for name in (
        "trust.json",
        "system.creds",
        "signing.key",
        "account.nk",
        "brain.nk",
        "operator.nk",
        "ca.key",
    ):
        text = whole.files[name]
        for at in chance.sample(range(len(text)), min(len(text), 60)):
            other = text[:at] + chr(ord(text[at]) ^ 1 << chance.randrange(6)) + text[at + 1 :]
            if means(name, other) == means(name, text):
                continue
            made = whole.model_copy(update={"files": {**whole.files, name: other}})
            told = error(lambda: cell_shared.take(second.config, made, NOW))  # noqa: B023 - called at once
            assert "nothing was taken" in told, (name, at, text[at - 10 : at + 10])
            assert not second.data.exists()
    assert "trust.json" in cell_shared.take(second.config, whole, NOW)


def means(name: str, text: str) -> object:
    """What of a file counts: not what stands around it, nor the bits behind the last whole byte of base64."""
    try:
        match name:
            case "signing.key":
                return base64.b64decode(text.strip(), validate=True)
            case "system.creds":
                return operator_mode.credentials_in(text)
            case "trust.json":
                state = TrustState.model_validate_json(text)
                signed = [
                    {key: base64.b64decode(sum_) for key, sum_ in one.signatures.items()}
                    for one in state.announcements
                ]
                return signed, [one.payload for one in state.announcements]
    except ValueError:
        return text
    return text.split()
