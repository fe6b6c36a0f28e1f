"""docs/operations.md, "The log's archive", with a real S3 server, and the request of docs/api.md: typed to the letter, as root
on a machine of the test's own.
"""

import gzip
import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests import alone as kit
from tests.alone import Alone
from tests.real.s3_kit import rclone

pytestmark = [
    pytest.mark.component("nats-server"),
    pytest.mark.root,
    pytest.mark.skipif(not rclone(), reason="needs rclone"),
    pytest.mark.timeout(300),
]
ARCHIVE = """url = "s3://gpu-logs/gpuward"
endpoint = "http://127.0.0.1:9000"
credentials_file = "/etc/gpuward/s3.credentials"
segment_s = 1
"""
BUCKET = (
    *("rclone", "serve", "s3", "s3", "--addr", "127.0.0.1:9000", "--auth-key", "KEY,SECRET"),
    *("--config", "/dev/null", "--vfs-cache-mode", "off"),
)


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Alone]:
    """A brain that leads, also under the name `brain`, and a bucket."""
    (tmp_path / "s3/gpu-logs").mkdir(parents=True)
    with kit.alone(tmp_path) as one:
        one.types("echo '127.0.0.1 brain' >> /etc/hosts")
        one.types(
            "printf '[default]\naws_access_key_id = KEY\naws_secret_access_key = SECRET\n' > /etc/gpuward/s3.credentials"
        )
        one.types("chmod 600 /etc/gpuward/s3.credentials")
        one.types("gpuward cell init --name brain --write")
        (tmp_path / "archive.toml").write_text(ARCHIVE)
        one.types(
            "sed -i -e '/^.archive.$/r archive.toml' -e 's/^.snapshot.$/&\\nevery_s = 1/' /etc/gpuward/brain.toml"
        )
        one.unit(*BUCKET)
        one.unit("gpuward", "run", "--config", "/etc/gpuward/brain.toml")
        one.until(lambda: ", leads" in one.says("gpuward status"), "the brain leads")
        yield one


def test_what_the_pages_let_one_type(site: Alone) -> None:
    """A request; the log out of the brain and out of its archive; a brain whose state and history are lost and come back."""
    site.types("cp /var/lib/gpuward/cell/ca.pem . && cp /var/lib/gpuward/console-8470.token token")
    command = (
        'curl -s --cacert ca.pem -H "Authorization: Bearer $(cat token)" https://brain:8470/api/v1/incidents'
    )
    assert json.loads(site.types(command))["incidents"] == []
    site.types('gpuward hold all --why "what has happened"')
    site.until(lambda: archived(site, b"what has happened"), "it is in the bucket")
    assert "messages 1 to " in site.types("gpuward log show s3://gpu-logs/gpuward")
    site.types("gpuward log export month.ndjson.gz --from-archive s3://gpu-logs/gpuward --since 30d")
    site.types("gpuward backtest month.ndjson.gz")
    site.stops("gpuward")
    site.types(
        "cd /var/lib/gpuward && mkdir without-its-past && mv history.sqlite* state.snapshot without-its-past"
    )
    site.types("gpuward log replay s3://gpu-logs/gpuward --into /var/lib/gpuward")
    site.types("test -s /var/lib/gpuward/history.sqlite && test -s /var/lib/gpuward/state.snapshot")
    site.unit("gpuward", "run", "--config", "/etc/gpuward/brain.toml")
    site.until(lambda: ", leads" in site.says("gpuward status"), "the brain leads again")
    assert "what has happened" in site.types("gpuward status")


def archived(site: Alone, words: bytes) -> bool:
    """Has a whole file of the bucket these words? One that is just being written is looked at again."""
    for file in (site.folder / "s3").rglob("*.ndjson.gz"):
        try:
            if words in gzip.decompress(file.read_bytes()):
                return True
        except EOFError:
            continue
    return False
