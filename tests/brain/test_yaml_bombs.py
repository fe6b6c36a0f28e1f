"""A file of rules, runbooks or places that means more than it says: an error in its first line, and soon."""

import itertools
from pathlib import Path

import pytest

from brain.marked_yaml import read

LEVELS = "abcdefghij"
BOMB = "a: &a [x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"{name}: &{name} [{', '.join([f'*{before}'] * 9)}]\n" for before, name in itertools.pairwise(LEVELS)
)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (BOMB, "its aliases make many of few"),
        ("a: &a [*a, *a]\n", "its aliases make many of few"),
        ("a: &a {b: *a, c: *a, d: *a}\n", "its aliases make many of few"),
        ("a: " + "9" * 6000, "more than 400 digits"),
        ("a: -" + "9" * 6000, "more than 400 digits"),
        ("a: 0x" + "f" * 6000, "more than 400 digits"),
    ],
    ids=["nine of nine", "itself twice", "itself in a mapping", "digits", "negative", "hexadecimal"],
)
@pytest.mark.timeout(60)
def test_a_few_lines_do_not_mean_a_billion(tmp_path: Path, text: str, why: str) -> None:
    """Ten lines of aliases meant 10**9 values: `gpuward check` and each brain that read such a folder never came to an end."""
    file = tmp_path / "x.yaml"
    file.write_text(text)
    found = read(file, "x.yaml")
    assert [one.line for one in found.errors] == [1]
    assert why in found.errors[0].text


def test_what_people_use_aliases_for_is_read(tmp_path: Path) -> None:
    """One list that many places share, and a file with a line for each of 20,000 nodes."""
    file = tmp_path / "x.yaml"
    file.write_text("all: &all [n1, n2, n3]\n" + "".join(f"r{number}: *all\n" for number in range(2000)))
    found = read(file, "x.yaml")
    assert (found.errors, len(found.value), found.value["r1999"]) == ([], 2001, ["n1", "n2", "n3"])
    file.write_text("".join(f"n{number}: {{rack: r{number // 8}, leaf: l1}}\n" for number in range(20_000)))
    found = read(file, "x.yaml")
    assert (found.errors, len(found.value)) == ([], 20_000)
