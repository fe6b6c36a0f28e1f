"""The scripts of others that the console's pages are made of: fetched from the npm registry, checked by their hashes, and put
into brain/console/web/vendor, where they are kept.

`python deploy/dev/vendor.py` fetches what its vendor.json names; to take a newer version change its version and `integrity`
there (`npm view NAME@VERSION dist.integrity`), and the hashes of its files.
"""

import base64
import hashlib
import io
import json
import sys
import tarfile
import urllib.request
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parents[2] / "brain" / "console" / "web" / "vendor"
REGISTRY = "https://registry.npmjs.org"


def main() -> None:
    """Ends with a sentence where something is not what vendor.json says; then nothing of that package was written."""
    for package in json.loads((FOLDER / "vendor.json").read_text(encoding="utf-8"))["packages"]:
        for path, body in checked(package).items():
            (FOLDER / path).parent.mkdir(parents=True, exist_ok=True)
            (FOLDER / path).write_bytes(body)


def checked(package: dict[str, Any]) -> dict[str, bytes]:
    """Returns the files of a package: path below FOLDER -> content."""
    name = package["name"]
    url = f"{REGISTRY}/{name}/-/{name.rpartition('/')[2]}-{package['version']}.tgz"
    with urllib.request.urlopen(url, timeout=60) as answer:  # noqa: S310 - https, and checked by its hash
        packed = answer.read()
    found = "sha512-" + base64.b64encode(hashlib.sha512(packed).digest()).decode()
    if found != package["integrity"]:
        sys.exit(f"{url}: its hash is {found}, not what vendor.json says")
    files = {}
    with tarfile.open(fileobj=io.BytesIO(packed)) as tar:
        for path, file in package["files"].items():
            member = tar.extractfile(f"package/{file['from']}")
            files[path] = member.read() if member else b""
            if hashlib.sha256(files[path]).hexdigest() != file["sha256"]:
                sys.exit(f"{path} of {url}: its hash is not what vendor.json says")
    return files


if __name__ == "__main__":
    main()
