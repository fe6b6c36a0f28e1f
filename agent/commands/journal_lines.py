"""Lines of a journal on disk, each with its number and a checksum: what the disk gives back as another text is no line of ours.

    {"epoch":5,"n":17,"crc":"1c291ca3"}

The checksum is the CRC-32 of the line without it. Both keys are passed over by readers that know neither. A line without a
checksum is of an agent before 0.2.1, which wrote no other keys than PLAIN.
"""

import json
import re
import zlib
from collections.abc import Iterator, Mapping
from typing import Any

# The keys of each line that has no checksum.
PLAIN = ({"accepted"}, {"done", "result"}, {"told"}, {"sent"}, {"epoch"})
NUMBER = "n"
_SEALED = re.compile(rb'(\{.+),"crc":"([0-9a-f]{8})"\}', re.DOTALL)
_SEAL = re.compile(rb',"crc":"[0-9a-f]{8}"\}')


def sealed(line: Mapping[str, Any], number: int) -> bytes:
    """Returns the line with its number, its checksum and its end."""
    body = json.dumps({**line, NUMBER: number}, separators=(",", ":")).encode()
    return b'%s,"crc":"%08x"}\n' % (body[:-1], zlib.crc32(body))


def within(line: bytes) -> Iterator[bytes]:
    """Yields what looks like a line in one that is damaged: two are joined where the end of the first is another byte."""
    start = 0
    for seal in _SEAL.finditer(line):
        begin = line.find(b'{"', start, seal.start())
        start = seal.end()
        if begin >= 0:
            yield line[begin:start]


def opened(line: bytes) -> Mapping[str, Any]:
    """Returns a line's object, with its number where it has one. ValueError, TypeError: it is not what was written."""
    found = _SEALED.fullmatch(line)
    body = line if found is None else found[1] + b"}"
    if found is not None and zlib.crc32(body) != int(found[2], 16):
        raise ValueError("another checksum")
    try:
        raw = json.loads(body)
    except RecursionError as error:
        raise ValueError("too deep") from error
    if not isinstance(raw, dict):
        raise TypeError("not an object")
    if found is None and raw.keys() not in PLAIN:
        raise ValueError("no line of ours")
    return raw
