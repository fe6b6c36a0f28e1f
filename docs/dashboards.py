"""Writes deploy/grafana/*.json from docs/panels.py, with Grafana's own builders (grafana-foundation-sdk). `make dashboards`."""

from pathlib import Path

from grafana_foundation_sdk.builders import common, dashboard, prometheus, stat, timeseries
from grafana_foundation_sdk.cog.encoder import JSONEncoder
from grafana_foundation_sdk.models.common import BigValueColorMode, LegendDisplayMode, LegendPlacement
from grafana_foundation_sdk.models.dashboard import (
    DashboardCursorSync,
    DataSourceRef,
    Threshold,
    ThresholdsMode,
    VariableRefresh,
)

from docs.panels import BOARDS, Board, Panel

FOLDER = Path(__file__).resolve().parents[1] / "deploy/grafana"
SOURCE = DataSourceRef(type_val="prometheus", uid="${datasource}")
_HEIGHT = {"stat": 4, "lines": 8}


def text(name: str) -> str:
    """The JSON of one dashboard."""
    encoded: str = JSONEncoder(sort_keys=True, indent=1).encode(_board(name, BOARDS[name]).build())
    return encoded + "\n"


def _board(name: str, board: Board) -> dashboard.Dashboard:
    built = (
        dashboard.Dashboard(board.title)
        .uid(f"gpuward-{name.removesuffix('.json')}")
        .description(board.about)
        .tags(["gpuward", "generated"])
        .refresh("30s")
        .time("now-6h", "now")
        .timezone("browser")
        .tooltip(DashboardCursorSync.CROSSHAIR)
        .with_variable(dashboard.DatasourceVariable("datasource").label("Prometheus").type("prometheus"))
    )
    for variable, query in board.variables.items():
        built = built.with_variable(
            dashboard.QueryVariable(variable)
            .datasource(SOURCE)
            .query(query)
            .refresh(VariableRefresh.ON_TIME_RANGE_CHANGED)
            .multi(True)
            .include_all(True)
            .all_value(".*")
        )
    for title, panels in board.rows.items():
        built = built.with_row(dashboard.Row(title))
        for panel in panels:
            built = built.with_panel(_number(panel) if panel.kind == "stat" else _lines(panel))
    return built


def _number(panel: Panel) -> stat.Panel:
    steps = [Threshold(value=None, color="green")]
    if panel.bad_from is not None:
        steps.append(Threshold(value=panel.bad_from, color="red"))
    made = (
        stat.Panel()
        .title(panel.title)
        .description(panel.about)
        .datasource(SOURCE)
        .unit(panel.unit)
        .height(_HEIGHT[panel.kind])
        .span(panel.wide)
        .color_mode(BigValueColorMode.VALUE)
        .thresholds(dashboard.ThresholdsConfig().mode(ThresholdsMode.ABSOLUTE).steps(steps))
    )
    for target in _targets(panel):
        made = made.with_target(target.instant())
    return made


def _lines(panel: Panel) -> timeseries.Panel:
    legend = (
        common.VizLegendOptions()
        .display_mode(LegendDisplayMode.LIST)
        .placement(LegendPlacement.BOTTOM)
        .show_legend(True)
    )
    made = (
        timeseries.Panel()
        .title(panel.title)
        .description(panel.about)
        .datasource(SOURCE)
        .unit(panel.unit)
        .height(_HEIGHT[panel.kind])
        .span(panel.wide)
        .min(0)
        .legend(legend)
    )
    for target in _targets(panel):
        made = made.with_target(target.range())
    return made


def _targets(panel: Panel) -> list[prometheus.Dataquery]:
    return [
        prometheus.Dataquery().expr(query.expr).legend_format(query.legend).ref_id(chr(ord("A") + number))
        for number, query in enumerate(panel.queries)
    ]


def main() -> None:
    """Writes each dashboard."""
    for name in BOARDS:
        (FOLDER / name).write_text(text(name), encoding="utf-8")


if __name__ == "__main__":
    main()
