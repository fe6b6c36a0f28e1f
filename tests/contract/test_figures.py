"""Figures in the data of a command's result: what a node writes, the brain reads; anything else is a ContractError."""

import json

import pytest

from agent.contract.errors import ContractError
from agent.contract.figures import MAX_FIGURES, NAME, Figure, decode, encode, name_part

BUS = Figure(name="all_reduce.bus_gb_per_s", value=371.25)
LATENCY = Figure(name="ib.latency_us", value=1.9, lower_is_better=True)


def test_what_is_written_is_read() -> None:
    """With the direction that is the better one."""
    assert decode(encode([BUS, LATENCY])) == (BUS, LATENCY)
    assert decode(encode([])) == ()


def test_more_than_fit_are_left_out() -> None:
    """A node cannot make the brain keep more."""
    many = [Figure(name=f"f{number}", value=number) for number in range(2 * MAX_FIGURES)]
    assert decode(encode(many)) == tuple(many[:MAX_FIGURES])
    with pytest.raises(ContractError, match="at most 32 figures"):
        decode(json.dumps({"higher": {figure.name: figure.value for figure in many}}))


@pytest.mark.parametrize(
    "text",
    [
        *(
            "",
            "[]",
            "7",
            "{",
            '"x"',
            '{"higher": []}',
            '{"higher": {"x": "fast"}}',
            '{"higher": {"x": null}}',
        ),
        *(
            '{"higher": {"x": NaN}}',
            '{"higher": {"x": 1e999}}',
            '{"higher": {"Not a name": 1}}',
            '{"lower": 7}',
        ),
        *("[" * 100_000, '{"higher": {"x": 1' + "0" * 400 + "}}"),
    ],
)
def test_what_is_no_figure(text: str) -> None:
    """Whatever a node sends, the brain goes on."""
    with pytest.raises(ContractError):
        decode(text)


@pytest.mark.parametrize("text", ["MT4129", "", "NVIDIA ConnectX-7 (rev. 0)", "…" * 50, "x" * 500])
def test_any_model_makes_a_name(text: str) -> None:
    """It is part of names such as `port.mt4129.gbit_per_s`."""
    assert NAME.fullmatch(f"port.{name_part(text)}.gbit_per_s")
