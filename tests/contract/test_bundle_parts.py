"""Parts of bundles as any node may write them: a part, or a ContractError, and what is read can be used."""

import json

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.contract import subjects
from agent.contract.bundle_parts import Bundle, Chunk, decode_part, encode_part
from agent.contract.errors import ContractError

TEXTS = st.text(st.characters(exclude_categories=()), max_size=60)  # with surrogates
WHOLE = {"command": "c1", "file": "f", "digest": "SHA-256=x", "size": 1, "chunks": 1}


@given(
    st.dictionaries(
        st.sampled_from([*WHOLE, "chunk"]), st.one_of(TEXTS, st.integers(), st.none(), st.booleans())
    )
)
def test_whatever_a_node_says(said: dict[str, object]) -> None:
    """Subjects and descriptions can be made of what was read."""
    try:
        part = decode_part(json.dumps(WHOLE | said).encode() + b"\n")
    except ContractError:
        return
    subjects.bundle_about("c", "n1", part.command)
    subjects.bundle_chunk("c", "n1", part.command, 0)
    if isinstance(part, Bundle):
        orjson.dumps([part.file, part.digest])


@pytest.mark.parametrize("field", ["command", "file", "digest"])
def test_half_a_character_is_no_text(field: str) -> None:
    """JSON allows it; no subject, file name or answer can hold it."""
    with pytest.raises(ContractError, match="not JSON"):
        decode_part(json.dumps(WHOLE | {field: "\ud800"}).encode() + b"\n")


@pytest.mark.parametrize(
    "message", [b"", b"\n", b"[" * 1000 + b"\n", b"{}\n", b"null\n", b"\xff\n", b"{" * 3000 + b"\n"]
)
def test_what_is_no_part(message: bytes) -> None:
    """And nothing raises anything else."""
    with pytest.raises(ContractError):
        decode_part(message)


@given(st.binary(max_size=50), st.integers(0, 2**31 - 1))
def test_a_chunk_comes_back_whole(content: bytes, number: int) -> None:
    """Whatever it holds."""
    chunk = Chunk(command="c1", number=number, content=content)
    assert decode_part(encode_part(chunk)) == chunk
