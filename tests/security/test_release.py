"""What is released: the same bytes for everybody who builds it, everything in it named, and a signature that holds."""

import hashlib
import json
import os
import re
import shutil
import subprocess
import threading
import tomllib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import quote

import pytest

from agent import __version__

ROOT = Path(__file__).resolve().parents[2]
VENDOR = ROOT / "brain/console/web/vendor/vendor.json"  # what of npm lies in the wheel
RELEASE = ROOT / "deploy/release"
NEEDED = ("git", "ssh-keygen", "sha256sum")
MISSING = [tool for tool in NEEDED if shutil.which(tool) is None]
needs_tools = pytest.mark.skipif(bool(MISSING), reason=f"needs {', '.join(MISSING)}")


def run(*argv: str | Path, **env: str) -> subprocess.CompletedProcess[str]:
    """A command to its end; whoever calls looks at its status."""
    return subprocess.run(
        [str(one) for one in argv],
        capture_output=True,
        text=True,
        timeout=600,  # a release is built in one minute, and in five beside all else
        check=False,
        env=os.environ | env,
    )


def pins(lock: Path) -> dict[str, str]:
    """Name → version of what a lock file pins; each has a hash."""
    found = {}
    for line in lock.read_text().replace("\\\n", " ").splitlines():
        if pin := re.match(r"([a-z0-9._-]+)==(\S+)", line):
            assert "--hash=sha256:" in line, f"{lock.name}: {pin[1]} has no hash"
            found[pin[1]] = pin[2]
    return found


def test_every_dependency_is_pinned_with_a_hash_and_in_one_version() -> None:
    """The locks of a release are parts of the one that is tested; the agent's has nothing of the brain's."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    everything = pins(ROOT / "requirements.lock")
    brain, agent = pins(RELEASE / "brain.lock"), pins(RELEASE / "agent.lock")
    assert agent.items() <= brain.items() <= everything.items()
    for lock, wanted in (
        (agent, project["dependencies"]),
        (brain, project["optional-dependencies"]["brain"]),
        (everything, project["optional-dependencies"]["dev"]),
    ):
        names = {re.split(r"[\[<>=!~]", one)[0].strip().lower().replace("_", "-") for one in wanted}
        assert names <= set(lock), "run `make lock`"
    assert not {"aiohttp", "pydantic", "kubernetes-asyncio"} & set(agent)
    assert not {"pytest", "mypy", "ruff"} & set(brain)
    for others in ("release.txt", "fuzz.txt", "mutants.txt"):
        assert pins(ROOT / "deploy/dev" / others)


@pytest.fixture(scope="module")
def tools() -> Path:
    """The release tools; made once (PyPI, half a minute)."""
    done = run(RELEASE / "tools.sh")
    if done.returncode != 0:
        pytest.skip(f"the tools of a release cannot be installed: {done.stderr.strip().splitlines()[-1:]}")
    return Path(done.stdout.strip())


def checkout(folder: Path, umask: int) -> Path:
    """A repository of its own with all that stands in this one now, committed at a fixed time."""
    listed = run("git", "-C", ROOT, "ls-files", "-co", "--exclude-standard", "-z").stdout
    before = os.umask(umask)
    try:
        for name in filter(None, listed.split("\0")):
            if (ROOT / name).is_file() and name != ".venv":
                (folder / name).parent.mkdir(parents=True, exist_ok=True)
                (folder / name).write_bytes((ROOT / name).read_bytes())
                (folder / name).chmod(0o777 & ~umask if os.access(ROOT / name, os.X_OK) else 0o666 & ~umask)
        for name in (".venv", ".release"):
            (folder / name).symlink_to(ROOT / name)
        date = "2026-01-02T03:04:05Z"
        git = ("git", "-C", folder, "-c", "user.name=lab", "-c", "user.email=lab@localhost")
        run(*git, "init", "-q")
        run(*git, "add", "-A", "--", ".", ":!.venv", ":!.release")
        done = run(*git, "commit", "-qm", "all", GIT_COMMITTER_DATE=date, GIT_AUTHOR_DATE=date)
        assert done.returncode == 0, done.stderr
    finally:
        os.umask(before)
    return folder


def sums(folder: Path) -> dict[str, str]:
    return {one.name: hashlib.sha256(one.read_bytes()).hexdigest() for one in folder.iterdir()}


@pytest.fixture(scope="module")
def key(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Of somebody who may sign; allowed_signers lies beside it."""
    folder = tmp_path_factory.mktemp("key")
    run("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "lab", "-f", folder / "key")
    public = (folder / "key.pub").read_text()
    (folder / "allowed_signers").write_text(f'# who may\nlab namespaces="gpuward-release" {public}')
    return folder / "key"


@pytest.fixture(scope="module")
def built(tools: Path, key: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A signed release."""
    folder = tmp_path_factory.mktemp("built")
    root = checkout(folder / "gpuward", 0o022)
    done = run(root / "deploy/release/dist.sh", GPUWARD_SIGNING_KEY=str(key), TZ="UTC")
    assert done.returncode == 0, done.stderr
    assert "signed" in done.stdout
    return root / "dist"


@needs_tools
@pytest.mark.slow
@pytest.mark.component("cyclonedx-bom")
def test_the_same_commit_gives_the_same_bytes(built: Path, tmp_path: Path) -> None:
    """In another folder, with another umask, zone and language, without a key: what is signed there is what comes here."""
    root = checkout(tmp_path / "elsewhere/of another name", 0o077)
    again = tmp_path / "out"
    done = run(
        root / "deploy/release/dist.sh", again, TZ="Asia/Tokyo", LC_ALL="C.UTF-8", GPUWARD_SIGNING_KEY=""
    )
    assert done.returncode == 0, done.stderr
    assert "NOT SIGNED" in done.stdout
    first = {name: digest for name, digest in sums(built).items() if not name.endswith(".sig")}
    assert first == sums(again)
    assert set(first) == {
        *(f"gpuward-{__version__}-py3-none-any.whl", f"gpuward-{__version__}.tar.gz", "SHA256SUMS"),
        *("gpuward.cdx.json", "gpuward-agent.cdx.json"),
    }
    full = run(root / "deploy/release/dist.sh", again, GPUWARD_SIGNING_KEY="")
    assert full.returncode == 1
    assert "is not empty" in full.stderr


@needs_tools
@pytest.mark.slow
@pytest.mark.component("cyclonedx-bom")
@pytest.mark.parametrize(("name", "lock"), [("gpuward", "brain.lock"), ("gpuward-agent", "agent.lock")])
def test_the_bill_of_materials_names_what_is_pinned(built: Path, name: str, lock: str) -> None:
    """CycloneDX 1.6: each package with its version, package URL and hashes; nothing of this machine."""
    text = (built / f"{name}.cdx.json").read_text()
    bill = json.loads(text)
    assert (bill["bomFormat"], bill["specVersion"]) == ("CycloneDX", "1.6")
    assert bill["metadata"]["component"]["name"] == "gpuward"
    scripts = {one["name"]: one["version"] for one in json.loads(VENDOR.read_text())["packages"]}
    wanted = pins(RELEASE / lock) | (scripts if name == "gpuward" else {})
    assert {one["name"]: one["version"] for one in bill["components"]} == wanted
    for one in bill["components"]:
        kind = "npm" if one["name"] in scripts else "pypi"
        assert one["purl"].startswith(f"pkg:{kind}/{quote(one['name'])}@")
        assert one["externalReferences"][0]["hashes"]
    assert str(ROOT) not in text
    assert "file:" not in text


def flip(folder: Path) -> None:
    wheel = next(folder.glob("*.whl"))
    data = bytearray(wheel.read_bytes())
    data[len(data) // 2] ^= 1
    wheel.write_bytes(data)


def flip_and_sum(folder: Path) -> None:
    """With its checksum put right: only the signatures can tell."""
    flip(folder)
    lines = [f"{digest}  {name}" for name, digest in sorted(sums(folder).items())]
    lines = [one for one in lines if not one.endswith((".sig", "SHA256SUMS"))]
    (folder / "SHA256SUMS").write_text("\n".join(lines) + "\n")


def signed_by_another(folder: Path) -> None:
    wheel = next(folder.glob("*.whl"))
    wheel.with_name(f"{wheel.name}.sig").unlink()
    run("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", folder.parent / "theirs")
    run("ssh-keygen", "-Y", "sign", "-f", folder.parent / "theirs", "-n", "gpuward-release", wheel)


def unsigned(folder: Path) -> None:
    next(folder.glob("*.whl.sig")).unlink()


def swapped(folder: Path) -> None:
    """One good signature under another file's name."""
    shutil.copy(folder / "gpuward.cdx.json.sig", folder / "gpuward-agent.cdx.json.sig")


def missing(folder: Path) -> None:
    for path in folder.glob("gpuward.cdx.json*"):
        path.unlink()


def extra(folder: Path) -> None:
    (folder / "install.sh").write_text("#!/bin/sh\n")


def odd_name(folder: Path) -> None:
    (folder / "a\nb SHA256SUMS").write_text("x")


def two_names(folder: Path) -> None:
    """`pip install DIR/gpuward-*.whl` takes it, too."""
    wheel = next(folder.glob("*.whl"))
    wheel.with_name(f"{wheel.name} {wheel.name}").write_text("theirs")


def two_lines(folder: Path) -> None:
    wheel = next(folder.glob("*.whl"))
    wheel.with_name(f"{wheel.name}\n{wheel.name}").write_text("theirs")


def pattern(folder: Path) -> None:
    """A name that a shell takes for those of others."""
    (folder / "gpuward*").write_text("theirs")


def hidden(folder: Path) -> None:
    (folder / ".gpuward.whl").write_text("theirs")


def link(folder: Path) -> None:
    wheel = next(folder.glob("*.whl"))
    wheel.rename(folder.parent / "elsewhere.whl")
    wheel.symlink_to(folder.parent / "elsewhere.whl")


def nothing(folder: Path) -> None:
    for path in folder.iterdir():
        path.unlink()


HARMS = [
    *(
        flip,
        flip_and_sum,
        signed_by_another,
        unsigned,
        swapped,
        missing,
        extra,
        odd_name,
        two_names,
        two_lines,
        pattern,
    ),
    *(hidden, link, nothing),
]


@needs_tools
@pytest.mark.slow
@pytest.mark.component("cyclonedx-bom")
@pytest.mark.parametrize("harm", HARMS, ids=lambda harm: harm.__name__)
def test_what_was_changed_is_not_good(
    harm: Callable[[Path], None], built: Path, key: Path, tmp_path: Path
) -> None:
    """As it was built it is good; then each way to harm it is told, with the file's name."""
    folder, signers = tmp_path / "artifacts", key.with_name("allowed_signers")
    shutil.copytree(built, folder)
    good = run(RELEASE / "verify.sh", folder, signers)
    assert good.returncode == 0, good.stderr
    harm(folder)
    bad = run(RELEASE / "verify.sh", folder, signers)
    assert bad.returncode != 0
    assert "NOT GOOD" in bad.stderr


@needs_tools
@pytest.mark.slow
@pytest.mark.component("cyclonedx-bom")
def test_only_who_may_sign_releases_counts(built: Path, key: Path, tmp_path: Path) -> None:
    """A key for something else, one that is over, and a list of nobody, as it is before the first release."""
    public = key.with_suffix(".pub").read_text()
    for text, why in (
        (f'lab namespaces="git" {public}', "is not what lab has signed"),
        (f'lab namespaces="gpuward-release",valid-before="20200101" {public}', ""),
        ("# nobody\n", "names nobody who may sign"),
    ):
        (tmp_path / "signers").write_text(text)
        done = run(RELEASE / "verify.sh", built, tmp_path / "signers")
        assert done.returncode != 0, text
        assert why in done.stderr


class Osv(BaseHTTPRequestHandler):
    """The OSV query API: it knows one flaw of one package."""

    def do_POST(self) -> None:
        """A query."""
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        flaw = {
            "id": "LAB-2026-1",
            "summary": "a flaw",
            "affected": [
                {
                    "package": {"name": "idna", "ecosystem": "PyPI"},
                    "ranges": [{"type": "ECOSYSTEM", "events": [{"introduced": "0"}, {"fixed": "99.0"}]}],
                }
            ],
        }
        body = json.dumps({"vulns": [flaw]} if asked["package"]["name"] == "idna" else {}).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002  its signature
        """Silent."""


@contextmanager
def osv() -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Osv)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}/v1/query"
    finally:
        server.shutdown()
        thread.join(30)
        server.server_close()


@pytest.mark.slow
@pytest.mark.component("pip-audit")
def test_the_audit_finds_a_flaw_and_says_when_it_cannot_look(tools: Path, tmp_path: Path) -> None:
    """The real pip-audit, with data about flaws from here: found, not found, and no data at all."""
    assert tools
    lock = tmp_path / "lock"
    digest = "0" * 64
    audit = ("-s", "osv", "--osv-url")
    with osv() as url:
        lock.write_text(f"idna==3.10 --hash=sha256:{digest}\n")
        done = run(RELEASE / "audit.sh", lock, *audit, url)
        assert (done.returncode, "idna 3.10: LAB-2026-1, mended in 99.0" in done.stdout) == (1, True), done
        lock.write_text(f"certifi==2026.1.1 --hash=sha256:{digest}\n")
        done = run(RELEASE / "audit.sh", lock, *audit, url)
        assert (done.returncode, "1 packages judged, 0 known" in done.stdout) == (0, True), done
    for required, status in (("", 0), ("required", 2)):
        done = run(RELEASE / "audit.sh", lock, *audit, url, GPUWARD_AUDIT=required)
        assert done.returncode == status, done
        assert "NOT AUDITED" in done.stderr
