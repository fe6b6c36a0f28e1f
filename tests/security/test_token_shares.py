"""One person's own tokens are few and small: they take neither the places of others nor the time of every request."""

from pathlib import Path

import pytest

from agent.contract.errors import ConfigError, Refused
from brain.console.access import tokens
from brain.console.access.tokens import MOST_OF_ONE, Tokens
from brain.console_config import Role
from tests import people
from tests.security.figures import Record, attacked
from tests.security.test_door import ask, console, shown

USERS = {"ann": {"role": "administrator"}, "vic": {"role": "viewer"}}


async def test_a_viewer_s_tokens_leave_room_for_all_others(tmp_path: Path, record_property: Record) -> None:
    """Twenty, and then the answer says what to do; one that is revoked makes room; the administrator has his own."""
    vic = people.token_file(tmp_path / "d", "vic", Role.VIEWER)
    ann = people.token_file(tmp_path / "d")
    async with console(tmp_path / "d", users=USERS) as (url, _):
        answers = [
            await ask(url, "/api/v1/tokens", {}, Authorization=shown(vic)) for _ in range(MOST_OF_ONE + 5)
        ]
        assert [status for status, _ in answers] == [200] * (MOST_OF_ONE - 1) + [403] * 6
        assert "gpuward token revoke" in answers[-1][1]["detail"]
        assert (await ask(url, "/api/v1/tokens", {}, Authorization=shown(ann)))[0] == 200
        assert (await ask(url, "/api/v1/tokens", {"user": "vic"}, Authorization=shown(ann)))[0] == 403
        gone = {"ids": [answers[0][1]["id"]]}
        assert (await ask(url, "/api/v1/tokens/revoke", gone, Authorization=shown(vic)))[0] == 200
        assert (await ask(url, "/api/v1/tokens", {}, Authorization=shown(vic)))[0] == 200
        attacked(record_property, len(answers), refused=6)


@pytest.mark.parametrize(
    "much",
    [{"scopes": ["node/*"] * 21}, {"runbooks": ["x"] * 21}, {"scopes": ["x" * 201]}, {"runbooks": [""]}],
)
async def test_a_token_has_few_and_short_limits(tmp_path: Path, much: dict[str, list[str]]) -> None:
    """60 KB of them, in a file that is read again at each change, stopped the console for seconds."""
    vic = people.token_file(tmp_path / "d", "vic", Role.VIEWER)
    async with console(tmp_path / "d", users=USERS) as (url, _):
        assert (await ask(url, "/api/v1/tokens", much, Authorization=shown(vic)))[0] == 400
        fitting = {"scopes": ["node/gpu-*"] * 20, "runbooks": ["x" * 200]}
        assert (await ask(url, "/api/v1/tokens", fitting, Authorization=shown(vic)))[0] == 200


def test_the_last_places_are_the_administrators(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever can take tokens away can come in."""
    monkeypatch.setattr(tokens, "MOST", 5)
    monkeypatch.setattr(tokens, "FOR_ADMINISTRATORS", 2)
    kept = Tokens(tmp_path / "t.json")

    def make(user: str, role: Role, now: float = 1000) -> None:
        kept.make(user, role, now=now, lasts_s=60, by="x")

    for number in range(3):
        make(f"vic{number}", Role.VIEWER)
    with pytest.raises(ConfigError, match="an administrator must revoke some"):
        make("eve", Role.APPROVER)
    make("ann", Role.ADMINISTRATOR)
    make("bob", Role.ADMINISTRATOR)
    make("eve", Role.VIEWER, now=1061)  # those that have expired hold no place
    for number in range(MOST_OF_ONE):
        monkeypatch.setattr(tokens, "MOST", 100)
        if number:
            make("eve", Role.VIEWER, now=1061)
    with pytest.raises(Refused):
        make("eve", Role.VIEWER, now=1061)
