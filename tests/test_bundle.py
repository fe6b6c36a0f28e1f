"""What `deploy/release/bundle.sh` puts into the archive of a site without a network; its packages are tested in tests/real."""

import os
import subprocess
import tarfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


def bundle(out: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    out.mkdir(exist_ok=True)
    for name in ("gpuward_1.0-1_amd64.deb", "gpuward-1.0-1.x86_64.rpm", "gpuward.cdx.json"):
        (out / name).write_text(name)
    return subprocess.run(
        [ROOT / "deploy" / "release" / "bundle.sh", str(ROOT), str(out)],
        env=os.environ | {"SOURCE_DATE_EPOCH": "1700000000"} | environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )


def names(out: Path) -> set[str]:
    (archive,) = out.glob("*.tar")
    with tarfile.open(archive) as opened:
        return {member.name.partition("/")[2] for member in opened if member.isfile()}


def test_manifests_are_in_it_and_images_where_they_were_made(tmp_path: Path) -> None:
    assert bundle(tmp_path / "without").returncode == 0
    plain = names(tmp_path / "without")
    assert {"deploy/kubernetes/rbac.yaml", "docs/install.md", "SHA256SUMS"} <= plain
    images = tmp_path / "build"
    images.mkdir()
    for part in ("brain", "agent"):
        (images / f"gpuward-{part}.oci.tar").write_text(part)
    assert bundle(tmp_path / "with", IMAGES=str(images)).returncode == 0
    assert names(tmp_path / "with") - plain == {"gpuward-brain.oci.tar", "gpuward-agent.oci.tar"}


def test_images_that_are_not_there_are_named(tmp_path: Path) -> None:
    done = bundle(tmp_path / "out", IMAGES=str(tmp_path / "nowhere"))
    assert done.returncode == 1
    assert done.stderr.endswith(f"gpuward bundle: {tmp_path}/nowhere has no images: make images\n")
    assert not list((tmp_path / "out").glob("*.tar"))
