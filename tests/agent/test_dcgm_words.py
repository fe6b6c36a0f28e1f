"""What dcgmi prints, read: each message, any report, and texts that are none."""

import json
import random
import time
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.collectors.dcgm import DcgmCollector
from agent.collectors.samples_node import DcgmFinding, DcgmHealth
from agent.contract import kinds
from agent.contract.dcgm_errors import NAMES, UNKNOWN, errors
from agent.contract.kinds import KINDS
from agent.shared import dcgmi
from agent.shared.dcgmi import DcgmState
from tests.agent import dcgm_kit as kit
from tests.agent.dcgm_kit import Fails


def test_every_error_is_known_by_its_message() -> None:
    """Each row has a message here, alone and broken into lines, and no message is taken for another."""
    assert set(kit.MESSAGES) | {UNKNOWN} == set(NAMES)
    for name, (message, failed) in [*kit.MESSAGES.items(), *kit.OLD_MESSAGES.items()]:
        for text in (message, " ".join(kit.wrapped(message))):
            (found,) = errors(text, failed=failed)
            assert found.name == name
            assert not found.told_by or found.told_by in KINDS


def test_an_unknown_error_beside_known_ones_is_not_lost_where_the_verdict_shows_it() -> None:
    """None of those can be a failure."""
    text = f"{kit.INFOROM}, A wholly new error."
    assert [one.name for one in errors(text, failed=False)] == ["CORRUPT_INFOROM"]
    assert [(one.name, one.fails) for one in errors(text, failed=True)] == [
        ("CORRUPT_INFOROM", False),
        (UNKNOWN, True),
    ]


def test_any_incidents_are_read_as_they_were_printed() -> None:
    """4,000 random reports, of up to 30 incidents on 8 GPUs, in the lines that dcgmi breaks them into."""
    rng = random.Random(125)
    for _ in range(4000):
        names = rng.choices(sorted(kit.MESSAGES), k=rng.randint(0, 30))
        printed = [
            Fails(
                message=message.replace("GPU 3", f"GPU {number}"),
                failed=failed,
                number=number,
                system=rng.choice(("Memory system", "NVLINK system", "Internal error", "Driver")),
            )
            for name in names
            for number in [rng.randint(0, 7)]
            for message, failed in [kit.MESSAGES[name]]
        ]
        answer = dcgmi.health(kit.report(printed))
        expected = {(one.number, one.system, name) for one, name in zip(printed, names, strict=True)}
        systems = {
            "memory": "Memory system",
            "nvlink": "NVLINK system",
            "other": "Internal error",
            "driver": "Driver",
        }
        assert {(one.gpu, systems[one.system], one.error.name) for one in answer.incidents} == expected
        assert answer.state is DcgmState.READ


def test_a_warning_of_which_nothing_is_known_is_kept() -> None:
    """Another version may print its incidents otherwise."""
    (only,) = dcgmi.health('{"body": {"Overall Health": {"value": "Failure"}}}').incidents
    assert (only.entity, only.failed, only.error.name) == ("", True, UNKNOWN)
    assert dcgmi.health('{"body": {"Overall Health": {"value": "Splendid"}}}').state is DcgmState.UNREADABLE


Mangle = Callable[[random.Random, str], str]
MANGLED: tuple[Mangle, ...] = (
    lambda rng, text: text[: rng.randint(0, len(text))],
    lambda rng, text: text[rng.randint(0, len(text)) :],
    lambda rng, text: "".join(chr(rng.randint(0, 0x2FF)) if rng.random() < 0.03 else one for one in text),
    lambda rng, text: text.replace(
        rng.choice(("children", "value", "overflow", "body")), rng.choice(("", "x", "value"))
    ),
    lambda rng, text: text.replace(
        '"Errors"', rng.choice(("[]", "7", "null", '"Errors": {"children": 3}, "E"'))
    ),
    lambda _, text: text.replace('"value"', '"value": [[]], "v"'),
    lambda rng, text: text.replace("GPU", "G" * rng.choice((1, 50, 5000))),
)


def test_no_text_breaks_the_parser() -> None:
    """20,000 mangled reports: truncated, of other forms, with other characters; each gives events that may be sent."""
    rng = random.Random(1)
    names = sorted(kit.MESSAGES)
    for number in range(20_000):
        chosen = [kit.MESSAGES[name] for name in rng.choices(names, k=rng.randint(0, 5))]
        text = kit.report(
            Fails(message=one, failed=failed, number=rng.randint(0, 9)) for one, failed in chosen
        )
        text = MANGLED[number % len(MANGLED)](rng, text)
        _told_of(dcgmi.health(text).incidents)


@pytest.mark.parametrize(
    "text",
    [
        "[" * 100_000,
        '{"body": ' * 5000,
        '{"body": {"Overall Health": {"value": "Failure"}, "GPU": ' + '{"children": {"0": ' * 3000,
        "{" + "9" * 400_000 + "}",
        '{"body": {"Overall Health": {"value": 1' + "0" * 6000 + "}}}",
        "\0" * 100_000,
    ],
    ids=["brackets", "bodies", "children", "digits", "number", "zeros"],
)
def test_huge_and_deep_text_is_unreadable(text: str) -> None:
    """Within a second."""
    began_s = time.process_time()
    assert dcgmi.health(text).state is DcgmState.UNREADABLE
    assert dcgmi.gpus(text) == {}
    assert dcgmi.major(text) == 0
    assert time.process_time() - began_s < 1.0


def test_a_report_of_a_whole_rack_is_bounded() -> None:
    """However many entities and however long their messages are."""
    body = {
        "GPU": {
            "children": {
                str(gpu): {
                    "children": {
                        "Errors": {
                            "children": {
                                f"System {one}": {"value": "Failure", "overflow": ["word " * 12] * 2}
                                for one in range(70)
                            }
                        }
                    }
                }
                for gpu in range(70)
            }
        },
        "Overall Health": {"value": "Failure"},
    }
    answer = dcgmi.health(json.dumps({"body": body}))
    assert len(answer.incidents) == 256
    assert all(len(one.message) <= 1000 for one in answer.incidents)


@given(st.text(max_size=2000))
def test_any_text_is_answered(text: str) -> None:
    """By all three parsers."""
    _told_of(dcgmi.health(text).incidents)
    assert all(one.startswith("0") or len(one) >= 10 for one in dcgmi.gpus(text).values())
    assert dcgmi.major(text) >= 0


def _told_of(incidents: tuple[dcgmi.DcgmIncident, ...]) -> None:
    """As events."""
    findings = tuple(
        DcgmFinding(
            bdf="",
            entity=one.entity,
            system=one.system,
            failed=one.failed,
            code=one.error.code,
            name=one.error.name,
            told_by=one.error.told_by,
            xid=one.error.xid,
            message=one.message,
        )
        for one in incidents
    )
    for event in DcgmCollector().feed(DcgmHealth(findings=findings), 1.0):
        kinds.check(event)
        assert event.data["system"] in dcgmi.SYSTEMS
