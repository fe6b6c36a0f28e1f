"""What a node says of itself beside its events: its beats, and how they stand in metrics and answers."""

import json
from typing import Any

import pytest

from agent.contract.errors import ContractError
from agent.contract.messages import Beat, decode_beat, encode_beat
from brain.console.answers import encoded_list, json_answer

BEAT = encode_beat(Beat(node="n1", session="s1", boot="b", mono_s=1.0, version="0.1.0", spooled=0, dropped=0))


@pytest.mark.parametrize("key", ["version", "session", "boot"])
@pytest.mark.parametrize("word", ["\x1b]0;pwn\x07", "v" * 81, "a\nb", "\u202ea", "\u009b2J", 1, None])
def test_a_beat_has_short_words_that_do_nothing(key: str, word: Any) -> None:
    """What no agent sends is no beat."""
    assert decode_beat(BEAT, "n1").version == "0.1.0"
    with pytest.raises(ContractError, match=key):
        decode_beat(BEAT | {key: word}, "n1")


@pytest.mark.parametrize(
    "odd", [{"spooled": -1}, {"dropped": 2**60}, {"mono_s": float("nan")}, {"mono_s": -1}]
)
def test_a_beat_has_numbers_that_a_node_can_count(odd: dict[str, float]) -> None:
    """One node's number does not spoil the sum over all."""
    with pytest.raises(ContractError, match="0 or more"):
        decode_beat(BEAT | odd, "n1")


@pytest.mark.parametrize(
    "text", ["\u202egnp.exe", "a\u009b2Jb", "\x7f", "\u2066x", "\U000e0041", "节点 ü 🙂"]
)
def test_json_has_nothing_raw_that_acts_on_a_terminal(text: str) -> None:
    """Whoever prints the answer as it came sees numbers; whoever reads it gets what was said."""
    value = {"name": text, text: [text]}
    for body in (json_answer(value).body, encoded_list(text, [value, value], lambda: None)):
        assert isinstance(body, bytes)
        assert body.decode().isprintable()
        read = json.loads(body)
        assert (value if "name" in read else {text: [value, value]}) == read
