"""Rules that were built and proved already: the brain's own process does it once for the same files and settings.

It computes for a second, and the tests start hundreds of brains on the shipped rules. The key is what is asked for and the bytes
of all files, so a test that changes a rule has it built; tests/brain/shell/test_pack_process.py is about the process itself.
"""

import hashlib

from brain.adapters import pack_build
from brain.adapters.pack_build import Build, Wanted
from brain.adapters.pack_process import PackProcess

_built: dict[str, Build] = {}


async def build(wanted: Wanted) -> Build:
    """As brain.adapters.pack_process does."""
    before = _key(wanted)
    if before not in _built:
        found = await PackProcess().build(wanted)
        if _key(wanted) != before:  # files were written meanwhile: nobody knows which of them it has read
            return found
        _built[before] = found
    return _built[before]


def _key(wanted: Wanted) -> str:
    found = hashlib.sha256(pack_build.question(wanted))
    files = [file for folder in (wanted.rules_dir, wanted.runbooks_dir) for file in sorted(folder.rglob("*"))]
    for file in [*files, *([wanted.topology] if wanted.topology else [])]:
        content = file.read_bytes() if file.is_file() else b""
        found.update(f"{file} {len(content)} ".encode() + content)
    return found.hexdigest()
