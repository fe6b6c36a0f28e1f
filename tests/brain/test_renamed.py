"""Names that were changed: what people wrote and what is on a log is read under the old one, with a warning for files."""

import logging
from pathlib import Path
from typing import Any

import orjson
import pytest

from agent.contract.errors import ConfigError
from brain import renamed
from brain.adapters import pack as packs
from brain.adapters.codec import Codec
from brain.cli.check import examine
from brain.config import parse
from brain.core.inputs import Delivery, Input, OperatorCommand, TimerFired
from tests.shipped import shipped_pack

ROOT = Path(__file__).resolve().parents[2]
NEW_TO_OLD = {
    "resolve_delay_s:": "quiet_s:",
    "hold_off_s:": "settle_s:",
    "return_to_service:": "way_back:",
    "reset_on_act:": "anew:",
    "unreachable: true": "silent: true",
    "node.unreachable": "node.silent",
}


def old_files(tmp_path: Path) -> tuple[Path, Path, int]:
    """gpuward's own rules and runbooks as they were written for version 0.1, and how many names in them are old."""
    count = 0
    for folder in ("rules", "runbooks"):
        (tmp_path / folder).mkdir()
        for file in (ROOT / folder).glob("*.yaml"):
            text = file.read_text(encoding="utf-8")
            for new, old in NEW_TO_OLD.items():
                count += text.count(new)
                text = text.replace(new, old)
            (tmp_path / folder / file.name).write_text(text, encoding="utf-8")
    return tmp_path / "rules", tmp_path / "runbooks", count


def test_rules_with_the_old_names_are_the_same_rules(tmp_path: Path) -> None:
    """A site that has not changed its files yet judges as before."""
    rules, runbooks, count = old_files(tmp_path)
    assert count > 100
    assert packs.load(rules, runbooks) == shipped_pack()


def test_check_warns_of_each_old_name_and_names_the_new_one(tmp_path: Path) -> None:
    """With file, line and key; the pack is valid all the same."""
    rules, runbooks, count = old_files(tmp_path)
    report = examine(rules, runbooks)
    assert report.faults == []
    assert len(report.warnings) == count
    (warning,) = [one for one in report.warnings if one.key == "rules.bond-down.settle_s"] or [
        report.warnings[0]
    ]
    line = (rules.parent / warning.file).read_text(encoding="utf-8").splitlines()[warning.line - 1]
    assert warning.key.rpartition(".")[2] in line
    assert f"is read until version {renamed.UNTIL}" in warning.text
    assert examine(ROOT / "rules", ROOT / "runbooks").warnings == []


def test_both_names_in_one_rule_are_an_error(tmp_path: Path) -> None:
    """It is not clear which one was meant."""
    rules, runbooks, _ = old_files(tmp_path)
    file = rules / "bond.yaml"
    file.write_text(
        file.read_text(encoding="utf-8").replace(
            "    quiet_s: 30\n", "    quiet_s: 30\n    resolve_delay_s: 31\n", 1
        ),
        encoding="utf-8",
    )
    with pytest.raises(ConfigError, match="quiet_s: unknown key"):
        packs.load(rules, runbooks)


def test_settings_of_the_site(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """brain.toml is read with a warning in the brain's log for each old name; both names at once are an error."""
    caplog.set_level(logging.WARNING)
    raw: dict[str, Any] = {
        "silent_after_s": 9,
        "settings": {"settle_s": 7, "bundle_at_least": 3, "bundle_within_s": 60},
    }
    config = parse(raw, "site.toml", tmp_path)
    settings = config.settings
    assert (settings.hold_off_s, settings.group_at_least, settings.group_within_s) == (7, 3, 60)
    assert config.unreachable_after_s == 9
    assert [record.getMessage() for record in caplog.records] == [
        f"site.toml: {old}: is called {new} now: the old name is read until version {renamed.UNTIL}"
        for old, new in (
            ("silent_after_s", "unreachable_after_s"),
            ("settings.settle_s", "hold_off_s"),
            ("settings.bundle_at_least", "group_at_least"),
            ("settings.bundle_within_s", "group_within_s"),
        )
    ]
    assert raw["settings"]["settle_s"] == 7, "the caller's data is not changed"
    with pytest.raises(ConfigError, match="silent_after_s: unknown key"):
        parse({"silent_after_s": 9, "unreachable_after_s": 9}, "site.toml", tmp_path)


@pytest.mark.parametrize(
    ("token", "body", "want"),
    [
        (
            "said",
            {"id": "1", "who": "ann", "verb": "ack", "args": {"id": "bun-abc"}},
            OperatorCommand(id="1", who="ann", verb="ack", args={"id": "grp-abc"}),
        ),
        (
            "timer",
            {"id": "1", "name": "bundle:bun-abc", "due": 5.0},
            TimerFired(id="1", name="group:grp-abc", due=5.0),
        ),
        (
            "timer",
            {"id": "1", "name": "page:bun-abc", "due": 5.0},
            TimerFired(id="1", name="page:grp-abc", due=5.0),
        ),
        (
            "timer",
            {"id": "1", "name": "incident:inc-bun-", "due": 5.0},
            TimerFired(id="1", name="incident:inc-bun-", due=5.0),
        ),
        (
            "delivery",
            {"id": "1", "page": "bun-abc.p1", "ok": True, "channel": "c"},
            Delivery(id="1", page="grp-abc.p1", ok=True, channel="c"),
        ),
    ],
)
def test_messages_of_an_older_log(token: str, body: dict[str, Any], want: Input) -> None:
    """An upgraded brain reads its log from the beginning: what version 0.1 wrote still means the same."""
    given = Codec("c").decode(f"ward.c.input.{token}", orjson.dumps({"v": 1} | body), 1)
    assert given == want
