"""What a lock file pins is installed by uv, or by pip where there is none; and nothing whose bytes are others, by neither."""

import hashlib
import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
INSTALL = ROOT / "deploy/dev/install.sh"
UV = ROOT / ".venv/bin/uv"
FILES = {
    "nothing_at_all.py": "",
    "nothing_at_all-1.0.dist-info/METADATA": "Metadata-Version: 2.1\nName: nothing-at-all\nVersion: 1.0\n",
    "nothing_at_all-1.0.dist-info/WHEEL": "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    "nothing_at_all-1.0.dist-info/RECORD": "",
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A wheel, a list that pins it, one that pins other bytes, and an environment."""
    tmp_path = tmp_path_factory.mktemp("site")
    wheel = tmp_path / "nothing_at_all-1.0-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w") as packed:
        for name, text in FILES.items():
            packed.writestr(name, text)
    right = hashlib.sha256(wheel.read_bytes()).hexdigest()
    for name, digest in (("right", right), ("wrong", right[::-1])):
        (tmp_path / name).write_text(f"nothing-at-all==1.0 --hash=sha256:{digest}\n")
    subprocess.run([sys.executable, "-m", "venv", tmp_path / "env"], check=True)
    return tmp_path


@pytest.fixture
def site(folder: Path) -> Path:
    """With nothing of it installed."""
    for left in folder.glob("env/lib/*/site-packages/nothing_at_all*"):
        shutil.rmtree(left) if left.is_dir() else left.unlink()
    return folder


def install(site: Path, pins: str, uv: Path) -> subprocess.CompletedProcess[str]:
    """From that folder alone."""
    return subprocess.run(
        [INSTALL, site / "env", site / pins, "--no-index", "--find-links", site],
        env={**os.environ, "GPUWARD_UV": str(uv), "PIP_FIND_LINKS": ""},
        capture_output=True,
        text=True,
        check=False,
    )


def installed(site: Path) -> bool:
    return (
        subprocess.run([site / "env/bin/python", "-c", "import nothing_at_all"], check=False).returncode == 0
    )


@pytest.mark.parametrize("uv", [UV, Path("/no/such/uv")])
def test_what_is_pinned_is_installed_and_nothing_else(site: Path, uv: Path) -> None:
    """By either; both refuse what has not the hash, with status and reason."""
    assert uv is not UV or UV.is_file(), "make setup puts it there"
    refused = install(site, "wrong", uv)
    assert refused.returncode != 0
    assert "hash" in refused.stderr.lower()
    assert not installed(site)
    done = install(site, "right", uv)
    assert (done.returncode, installed(site)) == (0, True), done.stderr
    assert "again with pip" not in done.stderr


def test_where_uv_fails_pip_installs(site: Path) -> None:
    """A proxy that only pip knows, a disk that does not do what uv wants: one line says so."""
    broken = site / "uv"
    broken.write_text("#!/bin/sh\nexit 2\n")
    broken.chmod(0o755)
    done = install(site, "right", broken)
    assert (done.returncode, installed(site)) == (0, True), done.stderr
    assert "again with pip" in done.stderr
