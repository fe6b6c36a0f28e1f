"""What people say while NATS takes nothing outlives the brain that heard it: it was promised to them."""

from pathlib import Path

import pytest

from brain.adapters.unsent_words import MOST, OTHERS_S, UnsentWord, UnsentWords
from tests.real.brain_kit import Lab
from tests.real.nats import nats_server


@pytest.mark.component("nats-server")
async def test_a_hold_said_during_an_outage_outlives_its_brain(tmp_path: Path) -> None:
    """Nobody knew of it but this brain: it ends, NATS comes back, it starts, and the hold stands, once."""
    with nats_server(tmp_path) as server:
        brain = Lab(tmp_path, {"nats": {"url": server.url}})
        await brain.start()
        try:
            server.kill()
            status, said = await brain.say("hold", scope="all", why="the fleet is being moved")
            assert status == 503
            assert "also when this brain is started again" in said["detail"]
        finally:
            await brain.stop()
        kept = brain.config.data_dir / "unsent_words.json"
        assert kept.stat().st_mode & 0o077 == 0
        server.start()
        await brain.start()
        try:
            found = await brain.until(
                lambda status: status["holds"], "the hold stands", path="/api/v1/status"
            )
            assert [hold["why"] for hold in found["holds"]] == ["the fleet is being moved"]
            await brain.until(lambda _: not kept.exists(), "nothing is left to send")
            told = await brain.until(
                lambda answer: answer["notes"], "a note says so", path="/api/v1/notes?kind=operator.unsent"
            )
            assert [note["text"] for note in told["notes"]] == [
                "hold of ann was not sent before this brain ended: it is now"
            ]
        finally:
            await brain.stop()


def word(verb: str = "hold", said_at: float = 1000.0, id_: str = "c:1") -> UnsentWord:
    """One of ann's."""
    return UnsentWord(id=id_, what="command", body=b"\x00{}", who="ann", verb=verb, said_at=said_at)


@pytest.mark.parametrize(
    ("verb", "later_s", "said"),
    [
        ("hold", 86_400, True),
        ("release", 86_400, True),
        ("approve", OTHERS_S, True),
        ("approve", OTHERS_S + 1, False),
        ("mode", OTHERS_S + 1, False),
    ],
)
def test_only_a_hold_and_its_end_are_right_however_late(
    tmp_path: Path, verb: str, later_s: float, said: bool
) -> None:
    """An approval is about what its person saw."""
    UnsentWords(tmp_path / "unsent").keep(word(verb))
    again = UnsentWords(tmp_path / "unsent", now=lambda: 1000.0 + later_s)
    words, lapsed = again.left()
    assert (words, lapsed) == (([word(verb)], []) if said else ([], [word(verb)]))
    assert UnsentWords(tmp_path / "unsent", now=lambda: 1000.0 + later_s).left()[1] == [], "told once"


def test_what_is_on_the_log_is_forgotten(tmp_path: Path) -> None:
    """In the order in which it was said, until the last is sent; then there is no file."""
    words = UnsentWords(tmp_path / "unsent")
    assert [words.keep(word(id_=f"c:{number}")) for number in (1, 2)] == [True, True]
    words.sent("c:1")
    words.sent("never kept")
    assert [left.id for left in UnsentWords(tmp_path / "unsent", now=lambda: 1000.0).left()[0]] == ["c:2"]
    words.sent("c:2")
    assert not (tmp_path / "unsent").exists()


@pytest.mark.parametrize("damage", [b"", b"{", b"[1]", b'[{"id": "c:1"}]', b"\xff" * 40])
def test_a_damaged_file_keeps_no_brain_from_starting(tmp_path: Path, damage: bytes) -> None:
    """And is replaced by the next word."""
    (tmp_path / "unsent").write_bytes(damage)
    words = UnsentWords(tmp_path / "unsent")
    assert words.left() == ([], [])
    assert words.keep(word())
    assert len(UnsentWords(tmp_path / "unsent", now=lambda: 1000.0).left()[0]) == 1


def test_a_disk_that_takes_nothing_promises_nothing(tmp_path: Path) -> None:
    """Whoever asks is told so."""
    words = UnsentWords(tmp_path / "gone" / "unsent")
    assert not words.keep(word())
    assert words.left() == ([], [])


def test_there_is_a_bound(tmp_path: Path) -> None:
    """A broken client that says holds for ever fills no disk."""
    words = UnsentWords(tmp_path / "unsent")
    words._words |= {f"c:{number}": word(id_=f"c:{number}") for number in range(MOST)}
    assert not words.keep(word(id_="c:more"))
