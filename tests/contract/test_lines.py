"""Kernel lines by area: what each says, and what is none of our business.

The lines are in kernel_lines.py, facts of several lines in test_lines_together.py.
"""

import importlib
import re
import time
from typing import Any

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from agent.contract import kernel_text, kinds
from agent.contract.components import check
from agent.contract.lines import KernelReader, LineReader, areas
from agent.contract.lines.base import Area
from agent.contract.messages import UnsentEvent
from tests.contract.kernel_lines import OOM_TASK, OOM_WHERE, OOM_WHY, ORDINARY, RENAMED, TABLE
from tests.fixtures import ordinary
from tests.yardstick import slowness


def read(text: str) -> list[UnsentEvent]:
    """What a fresh reader says."""
    unsent_events = KernelReader(kept=True).read(text)
    for one in unsent_events:
        kinds.check(one)
        check(one.component)
    return unsent_events


@pytest.mark.parametrize(
    ("text", "kind", "component", "severity", "data"), TABLE, ids=[row[0][:60] for row in TABLE]
)
def test_what_a_line_says(text: str, kind: str, component: str, severity: str, data: dict[str, Any]) -> None:
    """Kind, component, severity and fields of one line; a field None must be absent."""
    (unsent,) = read(text)
    assert (unsent.kind, unsent.component, unsent.severity.value) == (kind, component, severity)
    assert {name: unsent.data.get(name) for name in data} == data
    assert unsent.evidence == text


@pytest.mark.parametrize("text", ORDINARY)
def test_what_only_looks_alike_says_nothing(text: str) -> None:
    """Ordinary lines of the same drivers."""
    assert read(text) == []


@pytest.mark.parametrize("text", [row[0] for row in TABLE if "\n" not in row[0]], ids=lambda text: text[:40])
def test_all_four_encodings_say_the_same(text: str) -> None:
    """One record read from /dev/kmsg, journald, dmesg and dmesg --decode leads to equal facts."""
    answers = []
    for encoded in ordinary.encoded(text, 7).values():
        (line,) = [line for _, line in kernel_text.records([encoded])]
        answers.append(
            [
                (one.kind, one.component, one.severity, one.data)
                for one in LineReader(kept=True).read(line.text)
            ]
        )
    assert answers[0] != []
    assert all(answer == answers[0] for answer in answers)


FIRMWARE = (
    "{1}[Hardware Error]: event severity: recoverable",
    "{1}[Hardware Error]:  Error 0, type: recoverable",
    "{1}[Hardware Error]:   section_type: PCIe error",
    "{1}[Hardware Error]:   device_id: 0000:3a:00.0",
    "bond0: (slave eth0): Enslaving as a backup interface with an up link",
)


def test_every_area_and_kind_has_a_line_here() -> None:
    """A new area without a recording fails."""
    missing = {kind for area in areas(kept=True) for kind in area.kinds} - {row[1] for row in TABLE}
    assert not missing, f"add to TABLE above a line of each of {', '.join(sorted(missing))}"
    for area in areas(kept=True):
        for marker in area.markers:
            assert any(
                marker in text
                for text in [row[0] for row in TABLE]
                + [OOM_WHERE, OOM_WHY, OOM_TASK, RENAMED, *FIRMWARE, *ORDINARY]
            ), marker


# Patterns that read a part of a line, or its head before its words: no marker has to be in them.
PARTS = {
    *(
        "SxidArea._LINK",
        "SxidArea._MORE",
        "SxidArea._ENGINE",
        "NicArea._MODULE",
        "NicArea._COMMAND",
        "NicArea._HEALTH",
        "PcieArea._NAMED",
        "FileServerArea._OWN_TARGET",
    ),
    # What stands behind amdgpu's name and address, or in the head that the lines of Ascend's driver have in common.
    *(
        f"AmdgpuArea.{name}"
        for name in (
            *(
                "_ERRORS",
                "_FATAL",
                "_CONSUMED",
                "_CREATED",
                "_BEGUN",
                "_DONE",
                "_NOT_DONE",
                "_RING",
                "_QUEUES",
            ),
            *("_FIRMWARE", "_LOST", "_OVER", "_NEAR", "_HOT", "_LINK", "_UNTRAINED", "_STARTED"),
        )
    ),
    "AscendArea._LINE",
    *("OomArea._RSS", "OomArea._UID", "FabricManagerArea._TROUBLE", "BondArea._HEAD"),
}


WHOLE = [
    (area, name, pattern)
    for area in areas(kept=True)
    for name, pattern in vars(importlib.import_module(type(area).__module__)).items()
    if isinstance(pattern, re.Pattern) and f"{type(area).__name__}.{name}" not in PARTS
]


@pytest.mark.parametrize(
    ("area", "name", "pattern"), WHOLE, ids=[f"{type(row[0]).__name__}.{row[1]}" for row in WHOLE]
)
@settings(max_examples=30, derandomize=True, database=None, phases=[Phase.generate])
@given(data=st.data())
def test_every_form_that_an_area_knows_is_found_by_its_markers(
    area: Area, name: str, pattern: re.Pattern[str], data: st.DataObject
) -> None:
    """A form without a marker would never be read. Texts are made from each pattern, with all that it allows."""
    text = data.draw(st.from_regex(pattern, alphabet=st.characters(codec="ascii")))
    if pattern.match(text):
        assert any(marker in text for marker in area.markers), name


def test_what_distinguishes_facts_is_a_field_of_them() -> None:
    """A misspelt name would make one event of different facts."""
    for area in areas(kept=True):
        fields = {field.name for kind in area.kinds for field in kinds.KINDS[kind].fields}
        assert set(area.distinguishing) <= fields, type(area).__name__


HEADS = sorted(
    {row[0][: len(row[0]) // 2] for row in TABLE}
    | {marker for area in areas(kept=True) for marker in area.markers}
)


@given(st.sampled_from(HEADS), st.text(max_size=200))
def test_no_text_breaks_a_reader(head: str, text: str) -> None:
    """Whatever follows the beginning of a real line, reading returns, and what it says is declared."""
    read(head + text)
    read(text + head)


@given(st.sampled_from([row[0] for row in TABLE]), st.data())
def test_a_damaged_line_breaks_no_reader(text: str, data: st.DataObject) -> None:
    """Cut, doubled and overwritten pieces of real lines."""
    begin = data.draw(st.integers(0, len(text)))
    end = data.draw(st.integers(begin, len(text)))
    patch = data.draw(st.text(alphabet="0123456789abcdefx:.,()[]# {}=\n", max_size=20))
    read(text[:begin] + patch + text[end:])


@pytest.mark.parametrize("filler", ["0", "a ", ":", "error ", "(", "[", "x,", "\n", "0000:5e:00.0 ", "- "])
def test_a_long_line_costs_no_time(filler: str) -> None:
    """The worst repeats after every real beginning: each record is read in a moment."""
    reader = KernelReader()
    for head in HEADS:
        text = head + filler * (8000 // len(filler))
        began = time.thread_time()
        reader.read(text)
        assert (took_s := time.thread_time() - began) < 0.1 or took_s / slowness() < 0.1, head
