"""The energy of GPUs by tenant: reckoned from what a Prometheus says, and told in both languages, with what nobody knows."""

import csv
import io
import json
import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from agent.contract.errors import ConfigError
from brain import config
from brain.adapters.readmodel import ReadModel
from brain.console.api.energy_shapes import EnergyShape
from brain.console.counters.energy import (
    LEAST_STEP_S,
    STEPS,
    EnergyTold,
    queries,
    reckoned,
    steps_of,
    table,
    told,
)
from brain.console.counters.prometheus import PlottedLine
from brain.console.fleet.columns import gpus_of
from brain.console.reports import gather
from brain.console.reports.gather import ToldReport
from brain.core.state import State
from tests.brain.test_report_file import Tags, composed, page
from tests.brain.world import Story, history_of

XSS = "=<img src=x onerror=alert(1)>"
HOUR = 3600.0
SINCE, UNTIL = 1_700_000_000.0, 1_700_000_000.0 + 4 * HOUR


def line(values: Mapping[int, float], **labels: str) -> PlottedLine:
    """One series."""
    return PlottedLine(labels=labels, values=values)


def energy(
    *,
    gpus: int = 4,
    label: str = "namespace",
    split: int = 0,
    kwh: Mapping[str, Mapping[int, float]] | None = None,
) -> EnergyShape:
    """Four hours in which two tenants had cards, and nobody one; in the first half of the steps all were measured."""
    each = dict.fromkeys(range(STEPS // 2), 0.5)
    of = {"alice": each, XSS: {0: 3.0}, "": {0: 1.0}} if kwh is None else kwh
    said = EnergyTold(
        kwh=of,
        use={"alice": (900.0, 10.0), XSS: (100.0, 10.0)},
        gpus=dict.fromkeys(range(STEPS // 2), 4.0),
        split=split,
    )
    return reckoned(said, configured=True, label=label, since=SINCE, until=UNTIL, gpus=gpus)


def test_each_tenant_has_its_own_and_nobody_the_rest() -> None:
    """The most first; shares of what was measured; how much the cards computed; holes stay holes."""
    found = energy()
    assert [(one.tenant, one.kwh) for one in found.tenants] == [("alice", 12.0), (XSS, 3.0), ("", 1.0)]
    assert [one.share for one in found.tenants] == [0.75, 0.1875, 0.0625]
    assert sum(one.share for one in found.tenants) == 1.0
    assert ([one.use for one in found.tenants], found.use) == ([0.9, 0.1, None], 0.5)
    assert (found.kwh, found.measured, found.step_s) == (16.0, 0.5, 300.0)
    assert found.tenants[0].values == [0.5] * (STEPS // 2) + [None] * (STEPS // 2)


def test_what_is_not_known_says_how_much() -> None:
    """The share of the GPUs' time of which nothing was measured; cards that are split; other clusters' cards; no label."""
    said = {one.en.partition(":")[0] for one in energy(split=3).not_known_texts}
    assert "What GPUs have used in 50.0 % of their time" in said
    assert "Whose the energy of 3 GPUs is that are split (MIG, vGPU)" in said
    assert any("no node has told" in one.en for one in energy(gpus=0).not_known_texts)
    assert energy(gpus=0).measured is None
    assert any(
        "the 4 GPUs that Prometheus knows are this cell's 2" in one.en
        for one in energy(gpus=2).not_known_texts
    )
    assert any("tenant_label" in one.en for one in energy(label="").not_known_texts)
    none = reckoned(told({}, ""), configured=False, label="", since=SINCE, until=UNTIL, gpus=8)
    assert ["[console.prometheus]" in one.en for one in none.not_known_texts] == [True]
    for one in (*energy(split=3).not_known_texts, *none.not_known_texts):
        assert one.zh
        assert one.zh != one.en


def test_the_answers_are_read_by_the_label() -> None:
    """The use is that of all samples; a tenant without any has none."""
    found = told(
        {
            "kwh": [line({0: 1.0}, namespace="a"), line({1: 2.0})],
            "used": [line({0: 100.0, 1: 50.0}, namespace="a"), line({0: 5.0}, namespace="b")],
            "samples": [line({0: 2.0, 1: 1.0}, namespace="a")],
            "gpus": [line({0: 8.0})],
            "split": [line({0: 1.0, 1: 2.0})],
        },
        "namespace",
    )
    assert found.kwh == {"a": {0: 1.0}, "": {1: 2.0}}
    assert (found.use, found.gpus, found.split) == ({"a": (150.0, 3.0)}, {0: 8.0}, 2)
    assert told({}, "namespace") == EnergyTold(kwh={}, use={}, gpus={}, split=0)


def test_what_is_asked() -> None:
    """By the tenant's label, with the site's matcher, and of whole cards only."""
    asked = queries("hpc_job", 'cluster="a"', 300.0)
    assert asked["kwh"] == (
        'sum by (hpc_job) (increase(DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION{GPU_I_ID="", vgpu="", cluster="a"}[300s])) / 3.6e+09'
    )
    assert 'GPU_I_ID!="", cluster="a"' in asked["split"]
    assert "by (" not in queries("", "", 300.0)["kwh"]


@pytest.mark.parametrize("passed_s", [30.0, 301.0, 1000.4, 3600.0, 8 * HOUR, 30 * 24 * HOUR])
def test_steps(passed_s: float) -> None:
    """Whole seconds, none of the time left out; at most so many, and none shorter than some scrapes if there is time."""
    number, step_s = steps_of(SINCE, SINCE + passed_s)
    assert number <= STEPS
    assert step_s == int(step_s)
    assert passed_s <= number * step_s < passed_s + number
    assert step_s >= min(LEAST_STEP_S, passed_s)


def test_the_table_has_no_formula() -> None:
    """One line for each tenant; the share of GPU time that is known stands in each."""
    rows = list(csv.DictReader(io.StringIO(table(energy()).decode())))
    assert [(row["tenant"], row["kwh"], row["use"]) for row in rows] == [
        ("alice", "12.000", "0.9000"),
        (f"'{XSS}", "3.000", "0.1000"),
        ("", "1.000", ""),
    ]
    assert {row["measured_share_of_gpu_time"] for row in rows} == {"0.5000"}


@pytest.mark.parametrize(
    "name", ["=1", "+1", "-1", "@A1", "\uff1d1", "\uff0b1", "\uff0d1", "\uff201", "a;=1", "a\t=1", 'a"=1']
)
def test_no_spreadsheet_reckons_with_a_name(name: str) -> None:
    """Not where it is a Chinese one and takes wide signs, nor where it parts lines at semicolons: a cell stands in quotes."""
    found = energy(kwh={name: {0: 1.0}})
    for mark in (",", ";"):
        cells = [
            cell for row in csv.reader(io.StringIO(table(found).decode()), delimiter=mark) for cell in row
        ]
        assert not [cell for cell in cells if re.match("[=+@\uff1d\uff0b\uff0d\uff20]|-(?!-)", cell)], cells


def test_how_many_gpus_there_are() -> None:
    """As the nodes have told."""
    state = State()
    assert gpus_of(state) == 0
    for node, models in (("n1", "8 NVIDIA H100"), ("n2", "4 A100, 1 Tesla T4"), ("n3", None)):
        state.peers[f"node.inventory {node}"] = json.dumps(
            {"gpu_models": models} if models else {"driver": "1"}
        )
    assert gpus_of(state) == 13


@pytest.fixture
def whole(tmp_path: Path) -> ToldReport:
    """A report in which nothing but energy stands."""
    model: ReadModel = history_of(Story(), tmp_path / "history")
    return gather.told(model, 900.0, 6000.0, lambda: None, None, energy())


@pytest.mark.parametrize("language", ["en", "zh"])
def test_the_file_and_the_mail_have_it(whole: ToldReport, language: str) -> None:
    """With names as text, in the reader's language, and with what nobody knows; the mail has the table beside it, too."""
    found = Tags(page(language).file(whole).decode())
    assert "img" not in found.tags
    assert XSS in found.text
    assert "12.0 kWh" in found.text
    nobody, known = (
        ("未注明", "已知 4 块 GPU 50 % 的时间")
        if language == "zh"
        else (
            "Nobody is named",
            "50 % of the GPUs’ time is known (GPUs: 4)",
        )
    )
    assert (nobody in found.text, known in found.text) == (True, True)
    for one in energy().not_known_texts:
        assert (one.zh if language == "zh" else one.en) in found.text
    message = composed(whole, language=language)
    plain = message.get_body(("plain",))
    assert plain is not None
    assert "alice: 12.0 kWh, 75 %" in plain.get_content()
    names = [part.get_filename() or "" for part in message.iter_attachments()]
    assert [name.endswith("-energy.csv") for name in names] == [False, False, True]


def test_without_a_prometheus_nothing_of_it_stands_there(whole: ToldReport) -> None:
    """But that nobody knows it."""
    none = reckoned(told({}, ""), configured=False, label="", since=SINCE, until=UNTIL, gpus=8)
    quiet = replace(whole, energy=none)
    text = Tags(page().file(quiet).decode()).text
    assert "Energy of the GPUs" not in text
    assert "no Prometheus is configured" in text
    assert len(list(composed(quiet).iter_attachments())) == 2


@pytest.mark.parametrize(
    "given", [{"tenant_label": "a-b"}, {"only": 'a="b", c="d"'}, {"only": 'a="b"} or x{'}]
)
def test_what_is_refused(given: dict[str, str], tmp_path: Path) -> None:
    """What would be another query."""
    with pytest.raises(ConfigError, match=r"console\.prometheus"):
        config.parse({"console": {"prometheus": {"url": "http://p"} | given}}, "brain.toml", tmp_path)
