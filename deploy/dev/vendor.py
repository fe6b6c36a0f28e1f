"""The scripts of others that the console's pages are made of: fetched from the npm registry, checked by their hashes, and put into
brain/console/web/vendor, where they are kept. `python deploy/dev/vendor.py` fetches what vendor.json names; to take a newer version
change its version and `integrity` there (`npm view NAME@VERSION dist.integrity`).
"""

import base64
import hashlib
import io
import json
import sys
import tarfile
import urllib.request
from pathlib import Path

FOLDER = Path(__file__).parents[2] / "brain" / "console" / "web" / "vendor"
REGISTRY = "https://registry.npmjs.org"


def main() -> int:
    """Returns 0 when every file is there."""
    table = json.loads((FOLDER / "vendor.json").read_text(encoding="utf-8"))
    for package in table["packages"]:
        base = package["name"].rpartition("/")[2]
        url = f"{REGISTRY}/{package['name']}/-/{base}-{package['version']}.tgz"
        with urllib.request.urlopen(url, timeout=60) as answer:  # noqa: S310 - https, and checked by its hash
            packed = answer.read()
        found = "sha512-" + base64.b64encode(hashlib.sha512(packed).digest()).decode()
        if found != package["integrity"]:
            print(f"{url}: its hash is {found}, not what vendor.json says", file=sys.stderr)
            return 1
        with tarfile.open(fileobj=io.BytesIO(packed)) as tar:
            for path, file in package["files"].items():
                member = tar.extractfile(f"package/{file['from']}")
                assert member is not None
                body = member.read()
                if hashlib.sha256(body).hexdigest() != file["sha256"]:
                    print(f"{path} of {url}: its hash is not what vendor.json says", file=sys.stderr)
                    return 1
                (FOLDER / path).parent.mkdir(parents=True, exist_ok=True)
                (FOLDER / path).write_bytes(body)
    return 0


if __name__ == "__main__":
    sys.exit(main())
