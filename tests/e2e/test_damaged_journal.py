"""An agent whose journal of commands the disk gives back damaged: it starts, and people hear of it."""

from pathlib import Path

import pytest

from tests.e2e.stack import stack

pytestmark = [pytest.mark.component("nats-server")]


def test_people_hear_of_a_damaged_journal(tmp_path: Path) -> None:
    """By the incident of an agent that sees or knows less than it should; the file is kept as it was."""
    with stack(tmp_path) as whole:
        journal = tmp_path / "agent/journal.jsonl"
        assert whole.stop("agent") == 0
        damaged = journal.read_bytes().replace(b"epoch", b"epocj", 1)
        journal.write_bytes(damaged)
        whole.start_agent()
        (one,) = whole.wait_for(lambda: whole.incidents("agent-trouble"), "the incident")
        assert "1 line damaged and passed over" in whole.gpuward("explain", one["id"])
        assert journal.with_name("journal.jsonl.damaged").read_bytes() == damaged
        assert whole.stop("agent") == 0
        whole.start_agent()
        assert "damaged" not in whole.log("agent").rpartition("stopping")[2], "it is told once"
