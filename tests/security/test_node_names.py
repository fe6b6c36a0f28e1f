"""What a node may not be called: its name stands in commands that people type, and in subjects."""

import os
from pathlib import Path

import nkeys
import pytest

from agent.contract.errors import ConfigError, Refused
from agent.contract.subjects import RESERVED
from brain.cell.registry import CellRegistry

NOW = 1_000_000.0
NAMES = [
    "--help",
    "-x",
    "-",
    *sorted(RESERVED),
    *(word.upper() for word in sorted(RESERVED)),
    "",
    "a.b",
    "a*",
    "ä",
    "x" * 64,
]


@pytest.mark.parametrize("name", NAMES)
def test_what_is_an_option_or_a_word_of_ours_is_no_node(tmp_path: Path, name: str) -> None:
    """Neither by a token for every name nor by an operator's own hand; nothing is written, and the token is not used up."""
    registry = CellRegistry(tmp_path / "registry.json")
    seed = nkeys.encode_seed(os.urandom(32), nkeys.PREFIX_BYTE_USER)
    public = nkeys.from_seed(bytearray(seed)).public_key.decode()
    id_, secret = registry.make_token("*", count=1, now=NOW, lasts_s=60)
    with pytest.raises(Refused, match="node"):
        registry.join(id_, secret, name, public, now=NOW)
    with pytest.raises(ConfigError, match="node"):
        registry.add(name, public, now=NOW)
    assert not registry.nodes()
    assert registry.join(id_, secret, "all-1", public, now=NOW).public == public
