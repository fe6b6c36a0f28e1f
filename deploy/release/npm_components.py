"""Adds the npm packages of the console's pages to a bill of materials: `npm_components.py BOM.json VENDOR.json`.

cyclonedx-py knows Python's packages only; these lie in the wheel as files (brain/console/web/vendor).
"""

import base64
import json
import sys
from pathlib import Path
from urllib.parse import quote


def main() -> None:
    """Rewrites the bill in place, in the form that cyclonedx-py gives it."""
    bom, vendor = Path(sys.argv[1]), Path(sys.argv[2])
    bill = json.loads(bom.read_text(encoding="utf-8"))
    for package in json.loads(vendor.read_text(encoding="utf-8"))["packages"]:
        name, version = package["name"], package["version"]
        digest = base64.b64decode(package["integrity"].removeprefix("sha512-")).hex()
        purl = f"pkg:npm/{quote(name)}@{version}"
        bill["components"].append(
            {
                "bom-ref": purl,
                "type": "library",
                "name": name,
                "version": version,
                "purl": purl,
                "licenses": [{"license": {"id": package["licence"]}}],
                "externalReferences": [
                    {
                        "type": "distribution",
                        "url": f"https://registry.npmjs.org/{name}/-/{name.rpartition('/')[2]}-{version}.tgz",
                        "hashes": [{"alg": "SHA-512", "content": digest}],
                    }
                ],
            }
        )
    bom.write_text(json.dumps(bill, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
