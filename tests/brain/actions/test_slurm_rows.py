"""What Slurm's tools say of a job's GPUs, as far as it is any."""

import pytest

from brain.actions.slurm_rows import indices


@pytest.mark.parametrize(
    ("gres", "found"),
    [
        ("gpu:h200:3(IDX:0-1,5)", ("0", "1", "5")),
        ("gpu:a100:1(IDX:7),gpu:h200:2(IDX:0-1)", ("7", "0", "1")),
        ("gpu:8(IDX:N/A)", ()),
        ("gpu:1(IDX:-)", ()),
        ("gpu:1(IDX:,)", ()),
        ("gpu:1(IDX:1-)", ()),
        ("gpu:1(IDX:1-2-3)", ()),
        ("gpu:1(IDX:0-99999999999)", ()),
        ("gpu:1(IDX:" + ",".join(["0-255"] * 100_000) + ")", ()),
        ("gpu:1(IDX:" + "9" * 5000 + ")", ()),
        ("", ()),
    ],
)
def test_what_is_no_gpu_of_a_node(gres: str, found: tuple[str, ...]) -> None:
    """Where tools are asked a job's user may have written it: it costs no time and no memory, and breaks nothing."""
    assert indices(gres) == found
