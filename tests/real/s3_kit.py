"""A real S3 server over a folder: `rclone serve s3`. It knows no If-None-Match: the archive is not safe by its grace."""

import shutil
import socket
import subprocess
import sys
import time
from pathlib import Path

from tests.real.nats import free_port

BUCKET = "logs"
START_WITHIN_S = 60.0


def rclone() -> str:
    """Where it is; empty: it is packaged for no such machine."""
    beside = Path(sys.executable).parent / "rclone"
    return str(beside) if beside.exists() else shutil.which("rclone") or ""


class S3Server:
    """One server with one bucket. `kill` and `start`: it is away for a while."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder / "s3"
        self.bucket = self.folder / BUCKET
        self.bucket.mkdir(parents=True)
        self.port = free_port()
        self.credentials = folder / "s3.credentials"
        self.credentials.write_text("[default]\naws_access_key_id = KEY\naws_secret_access_key = SECRET\n")
        self.credentials.chmod(0o600)
        self._log = folder / "s3.log"
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def archive(self) -> dict[str, str]:
        """The keys of `[archive]` for it."""
        return {
            "url": f"s3://{BUCKET}/gpuward",
            "endpoint": f"http://127.0.0.1:{self.port}",
            "credentials_file": str(self.credentials),
        }

    def start(self) -> None:
        """Until it listens."""
        command = [rclone(), "serve", "s3", str(self.folder), "--addr", f"127.0.0.1:{self.port}"]
        command += ["--auth-key", "KEY,SECRET", "--config", "/dev/null", "--vfs-cache-mode", "off"]
        with self._log.open("ab") as sink:
            self._process = subprocess.Popen(command, stdout=sink, stderr=sink)
        deadline = time.monotonic() + START_WITHIN_S
        while not self._listens():
            assert self._process.poll() is None, self._log.read_text()[-2000:]
            assert time.monotonic() < deadline, self._log.read_text()[-2000:]
            time.sleep(0.01)

    def kill(self) -> None:
        """SIGKILL."""
        if self._process is not None:
            self._process.kill()
            self._process.wait(60)
            self._process = None

    def _listens(self) -> bool:
        with socket.socket() as probe:
            return probe.connect_ex(("127.0.0.1", self.port)) == 0
