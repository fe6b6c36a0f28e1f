"""A report as one file of HTML: no script, nothing that is loaded, its style in it; what it names is text. Pure.

The console's button and the mails have the same file.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from urllib.parse import quote
from zoneinfo import ZoneInfo

from agent import __version__
from brain.console.api.base import TwoLanguagesShape
from brain.console.api.energy_shapes import EnergyShape, TenantEnergyShape
from brain.console.api.needs_shapes import HealedShape, NeedShape
from brain.console.api.report_shapes import (
    CauseFiguresShape,
    HitFiguresShape,
    ReportFiguresShape,
    ReportShape,
    SpreadShape,
)
from brain.console.reports.elements import Html, joined, tag
from brain.console.reports.gather import HandOver, ToldReport
from brain.console.words import Words

POLICY = "default-src 'none'; style-src 'unsafe-inline'"
_COST = ("detect", "decide", "heal", "hours", "saved")  # columns of jobs and tenants
_LANG = {"en": "en", "zh": "zh-Hans"}
_STYLE = Html("""
body { font: 15px/1.45 system-ui, "Noto Sans", "Noto Sans CJK SC", "PingFang SC", "Microsoft YaHei", sans-serif; color: #13232a; background: #f4f7f8; margin: 0; padding: 16px }
main { max-width: 960px; margin: 0 auto } h1 { font-size: 22px; margin: 0 0 4px } h2 { font-size: 16px; margin: 0 0 8px }
section { background: #fff; border: 1px solid #d3dde1; border-radius: 8px; padding: 12px 14px; margin: 12px 0 }
p, li { margin: 4px 0; overflow-wrap: anywhere } ul { list-style: none; margin: 0; padding: 0 } a { color: #0b6a7d }
.small { color: #4a5f68; font-size: 13px } .good { color: #1d6b3a; font-weight: 600 } .count { color: #4a5f68; font-weight: 400 }
.late { border: 1px solid #8a5200; border-radius: 8px; padding: 8px 14px; color: #8a5200; font-weight: 600; background: #fff3dc }
.severity { font-weight: 700; font-size: 12px; border: 1px solid; border-radius: 4px; padding: 0 5px } .P0, .P1 { color: #b3261e } .P2 { color: #8a5200 }
code { font-family: ui-monospace, "DejaVu Sans Mono", monospace; font-size: 13px }
.tiles { display: flex; flex-wrap: wrap; gap: 8px; margin: 0 } .tile { border: 1px solid #d3dde1; border-radius: 6px; padding: 6px 10px; min-width: 120px }
dt { color: #4a5f68; font-size: 13px } dd { margin: 0 } dd strong { font-size: 20px; display: block } dd span { display: block }
.wide { overflow-x: auto } .wide th, .wide td { white-space: nowrap } table { border-collapse: collapse; width: 100% } th, td { text-align: left; padding: 5px 10px 5px 0; border-top: 1px solid #d3dde1; vertical-align: top }
thead th { border-top: 0; color: #4a5f68; font-size: 13px; font-weight: 600 } thead td { border: 0 } tbody th { font-weight: 600; white-space: normal; overflow-wrap: anywhere; min-width: 9em } .bar-of { fill: #0b6a7d }
@media print { body { background: #fff; padding: 0 } section { break-inside: avoid } }
""")  # noqa: E501 - of a style sheet


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportPage:
    """How a report is told: in which language, by whose clocks, and where its names lead."""

    words: Words
    zone: ZoneInfo
    cell: str
    # of the console, without a slash at its end; empty: names lead nowhere
    console_url: str = ""

    @property
    def title(self) -> str:
        """Of the file and its first line."""
        return f"gpuward · {self.cell} · {self.words('nav-reports')}"

    def period(self, told: ToldReport) -> str:
        """From when until when, with the zone."""
        since, until = (datetime.fromtimestamp(at, self.zone) for at in (told.since, told.until))
        first = since.strftime("%Y-%m-%d %H:%M" + ("" if since.tzname() == until.tzname() else " %Z"))
        same_day = since.date() == until.date()
        return f"{first} – {until.strftime('%H:%M %Z' if same_day else '%Y-%m-%d %H:%M %Z')}"

    def moment(self, at: float | str | None) -> str:
        """A time: seconds since 1970, or as the API has it."""
        if at is None:
            return ""
        when = datetime.fromtimestamp(at, self.zone) if isinstance(at, float) else datetime.fromisoformat(at)
        return when.astimezone(self.zone).strftime("%Y-%m-%d %H:%M")

    def file(self, told: ToldReport, above: Sequence[str] = ()) -> bytes:
        """Returns the file. `above`: sentences that come first."""
        words = self.words
        body = tag(
            "main",
            tag("h1", self.title),
            tag("p", tag("strong", self.period(told)), *self._limits(told.report)),
            *(tag("p", one, class_="late") for one in above),
            self._hand_over(told.hand_over) if told.hand_over else None,
            self._figures(told.report, told.before.total if told.before else None),
            self._causes(told.report),
            self._nodes(told.report),
            self._tenants(told.report),
            self._jobs(told.report),
            self._energy(told.energy) if told.energy and told.energy.configured else None,
            self._not_known(
                [*told.report.not_known_texts, *(told.energy.not_known_texts if told.energy else ())]
            ),
            tag("p", words("report-made", version=__version__), class_="small"),
        )
        head = joined(
            Html(
                '<meta charset="utf-8"/><meta name="viewport" content="width=device-width, initial-scale=1"/>'
            ),
            Html(f'<meta http-equiv="Content-Security-Policy" content="{POLICY}"/>'),
            tag("title", self.title),
            tag("style", _STYLE),
        )
        whole = tag("html", tag("head", head), tag("body", body), lang=_LANG[words.language])
        return f"<!doctype html>\n{whole}\n".encode()

    def summary(self, told: ToldReport) -> list[str]:
        """The same in short, as lines of text: the figures, and what needs a person."""
        lines = [f"{name}: {value}" for name, value, _ in self._tiles(told.report.total)]
        if told.hand_over is not None:
            lines += ["", f"{self.words('report-needs')}: {told.hand_over.needs_count}"]
            lines += [f"- [{one.severity}] {one.text}" for one in told.hand_over.needs]
        return lines

    def energy(self, told: ToldReport) -> list[str]:
        """What the GPUs have used, as lines of text: all of it, and by tenant."""
        found = told.energy
        if found is None or not found.configured:
            return []
        lines = [f"{self.words('report-energy')}: {_kwh(found.kwh)}{self._measured(found)}"]
        lines += [f"- {self._tenant(one)}: {_kwh(one.kwh)}, {_share(one.share)}" for one in found.tenants]
        return [*lines, *(f"- {self.words('plots-failed')} {one}" for one in found.failed)]

    def _measured(self, found: EnergyShape) -> str:
        if found.measured is None:
            return ""
        return f" ({self.words('report-energy-measured', share=_share(found.measured), gpus=found.gpus)})"

    def _tenant(self, one: TenantEnergyShape) -> str:
        return one.tenant or self.words("report-energy-nobody")

    def _energy(self, found: EnergyShape) -> Html:
        words = self.words
        head = tag("p", tag("strong", _kwh(found.kwh)), self._measured(found))
        failed = [tag("p", f"{words('plots-failed')} {one}", class_="small") for one in found.failed]
        if not found.tenants:
            none = tag("p", words("report-energy-none"))
            return tag("section", tag("h2", words("report-energy")), none if not failed else None, *failed)
        most = max(one.kwh for one in found.tenants)
        rows = [
            (self._tenant(one), _kwh(one.kwh), _bar_of(one.kwh, most), _share(one.share), _share(one.use))
            for one in found.tenants
        ]
        more = tag("p", words("plots-more", n=found.more), class_="small") if found.more else None
        table = self._rows("report-energy", ("tenant", "energy", "", "share", "use"), rows)
        return tag("section", tag("h2", words("report-energy")), head, table, more, *failed)

    def _limits(self, report: ReportShape) -> Iterable[Html]:
        if report.reaches and report.since and report.reaches > report.since:
            yield tag(
                "span", f" {self.words('report-reaches')} {self.moment(report.reaches)}", class_="small"
            )
        if not report.whole:
            yield tag("span", f" {self.words('report-not-whole')}", class_="small")

    def _hand_over(self, shift: HandOver) -> Html:
        words = self.words
        needs = [self._need(one) for one in shift.needs]
        holds = [
            tag(
                "li",
                tag("strong", one.who),
                " · ",
                tag("code", one.scope),
                f" · {one.why} ",
                self._since(one.since, one.until),
            )
            for one in shift.holds
        ]
        healed = [self._healed(one) for one in shift.healed]
        said = [
            tag("li", tag("span", self.moment(one.at), class_="small"), f" {one.text}") for one in shift.said
        ]
        return joined(
            self._list(
                "report-needs",
                needs,
                tag("p", f"✓ {words('report-needs-none')}", class_="good"),
                shift.needs_count,
            ),
            self._list("report-holds", holds, tag("p", words("report-holds-none")), len(shift.holds)),
            self._list(
                "report-healed",
                healed,
                tag("p", words("report-healed-none")),
                len(healed),
                more=shift.healed_more,
            ),
            self._list("report-said", said, tag("p", words("report-said-none")), 0, more=shift.said_more),
        )

    def _list(self, title: str, lines: Sequence[Html], none: Html, count: int, *, more: bool = False) -> Html:
        number = tag("span", f" {count}", class_="count") if count else None
        rest = tag("p", self.words("report-more"), class_="small") if more or count > len(lines) else None
        return tag(
            "section", tag("h2", self.words(title), number), tag("ul", *lines) if lines else none, rest
        )

    def _need(self, one: NeedShape) -> Html:
        what = (
            self._incident(one.severity, one.id, one.cause)
            if one.state
            else tag("strong", self.words(f"need-{one.kinds[0].value}"))
        )
        acked = f" · ✓ {one.acked_by}" if one.acked_by else ""
        since = f"{self.words('since')} {self.moment(one.since)} · " if one.since else ""
        return tag(
            "li",
            what,
            " ",
            self._scope(one.scope, one.node),
            " ",
            tag("span", f"{since}{one.text}{acked}", class_="small"),
        )

    def _healed(self, one: HealedShape) -> Html:
        how = " · ".join(part for part in (self.moment(one.closed_at), one.runbook, one.text) if part)
        return tag(
            "li", self._incident(one.severity, one.id, one.cause), " ", self._scope(one.scope, one.node), " ",
            tag("span", how, class_="small"),
        )  # fmt: skip

    def _since(self, since: str | None, until: str | None) -> Html:
        end = f"{self.words('until')} {self.moment(until)}" if until else self.words("report-no-end")
        return tag("span", f"{self.words('since')} {self.moment(since)}, {end}", class_="small")

    def _incident(self, severity: str, id_: str, cause: str) -> Html:
        mark = tag("span", severity, class_=f"severity {severity}")
        return joined(mark, " ", self._link(f"incidents/{quote(id_, safe='')}", cause))

    def _scope(self, scope: str, node: str) -> Html:
        return (
            tag("code", self._link(f"nodes/{quote(node, safe='')}", scope) if node else scope)
            if scope
            else Html()
        )

    def _link(self, path: str, text: str) -> Html:
        return tag("a", text, href=f"{self.console_url}/{path}") if self.console_url else tag("strong", text)

    def _tiles(self, now: ReportFiguresShape) -> list[tuple[str, str, str]]:
        """(name, value, how far nine in ten are)."""
        spreads = (("detect", now.detect), ("decide", now.decide), ("heal", now.heal))
        return [
            *(
                (self.words(f"report-figure-{name}"), value, "")
                for name, value in (
                    ("incidents", str(now.incidents)),
                    ("open", str(now.open)),
                    ("healed-by", str(now.healed)),
                    ("alone", _share(now.without_people)),
                    ("hours", _hours(now.node_hours)),
                    ("saved", _hours(now.node_hours_saved)),
                )
            ),
            *(
                (self.words(f"report-figure-{name}"), self._took(one), self._nine(one))
                for name, one in spreads
            ),
        ]

    def _figures(self, report: ReportShape, before: ReportFiguresShape | None) -> Html:
        now = report.total
        was = self._tiles(before) if before else []
        tiles = []
        for number, (name, value, nine) in enumerate(self._tiles(now)):
            old = self.words("report-before", value=was[number][1]) if was else ""
            small = [tag("span", one, class_="small") for one in (nine, old) if one]
            tiles.append(tag("div", tag("dt", name), tag("dd", tag("strong", value), *small), class_="tile"))
        how = tag("p", self.saved_how(report), class_="small")
        return tag("section", tag("h2", self.words("report-figures")), tag("dl", *tiles, class_="tiles"), how)

    def saved_how(self, report: ReportShape) -> str:
        """How the hours saved are estimated."""
        if not report.people_begin_s:
            return self.words("report-saved-off")
        return self.words("report-saved-how", span=self.words.span(report.people_begin_s))

    def _causes(self, report: ReportShape) -> Html:
        if not report.causes:
            quiet = tag("p", f"✓ {self.words('report-quiet')}", class_="good")
            return tag("section", tag("h2", self.words("report-causes")), quiet)
        most = max(one.incidents for one in report.causes)
        head = ("cause", "incidents", "", "healed-by", "alone", "detect", "decide", "heal", "hours", "saved")
        rows = [
            (one.cause, one.incidents, _bar(one.incidents, most), one.healed, _share(one.without_people),
             *self._cost(one))
            for one in report.causes
        ]  # fmt: skip
        return self._table("report-causes", head, rows)

    def _nodes(self, report: ReportShape) -> Html | None:
        most = max((one.incidents for one in report.nodes), default=0)
        rows = [
            (
                self._link(f"nodes/{quote(one.node, safe='')}", one.node),
                one.incidents,
                _bar(one.incidents, most),
                _hours(one.node_hours),
            )
            for one in report.nodes
        ]
        return self._table("report-nodes", ("node", "incidents", "", "hours"), rows) if rows else None

    def _jobs(self, report: ReportShape) -> Html | None:
        most = max((one.incidents for one in report.jobs), default=0)
        rows = [
            (one.job, one.tenant or "–", one.incidents, _bar(one.incidents, most), *self._cost(one))
            for one in report.jobs
        ]
        return self._table("report-jobs", ("job", "tenant", "incidents", "", *_COST), rows) if rows else None

    def _cost(self, one: HitFiguresShape | CauseFiguresShape) -> tuple[str, ...]:
        took = (self._took(spread) for spread in (one.detect, one.decide, one.heal))
        return (*took, _hours(one.node_hours), _hours(one.node_hours_saved))

    def _tenants(self, report: ReportShape) -> Html | None:
        most = max((one.incidents for one in report.tenants), default=0)
        rows = [
            (
                one.tenant or self.words("report-energy-nobody"),
                one.incidents,
                _bar(one.incidents, most),
                one.jobs,
                *self._cost(one),
            )
            for one in report.tenants
        ]
        return (
            self._table("report-tenants", ("tenant", "incidents", "", "jobs", *_COST), rows) if rows else None
        )

    def _table(self, title: str, head: Sequence[str], rows: Iterable[Sequence[object]]) -> Html:
        return tag("section", tag("h2", self.words(title)), self._rows(title, head, rows))

    def _rows(self, title: str, head: Sequence[str], rows: Iterable[Sequence[object]]) -> Html:
        heads = [
            tag("th", self.words(f"report-figure-{one}"), scope="col") if one else tag("td") for one in head
        ]
        lines = [
            tag("tr", tag("th", first, scope="row"), *(tag("td", one) for one in rest))
            for first, *rest in rows
        ]
        table = tag("table", tag("thead", tag("tr", *heads)), tag("tbody", *lines))
        # wider than a phone: the keyboard scrolls it, too
        return tag("div", table, class_="wide", role="region", tabindex="0", aria_label=self.words(title))

    def _not_known(self, lines: Sequence[TwoLanguagesShape]) -> Html:
        said = (one.zh if self.words.language == "zh" else one.en for one in lines)
        listed = tag("ul", *(tag("li", one) for one in said), class_="small")
        return tag("section", tag("h2", self.words("report-not-known")), listed)

    def _took(self, spread: SpreadShape) -> str:
        return "–" if spread.median_s is None else self.words.span(spread.median_s)

    def _nine(self, spread: SpreadShape) -> str:
        return "" if spread.p90_s is None else self.words("report-p90", span=self.words.span(spread.p90_s))


def _bar(value: int, most: int) -> Html:
    """The number stands beside it: to see is enough."""
    width = max(1, round(100 * value / max(most, 1)))
    rect = tag("rect", width=str(width), height="10", rx="1")
    return tag(
        "svg",
        rect,
        class_="bar-of",
        viewBox="0 0 100 10",
        width="100",
        height="10",
        preserveAspectRatio="none",
        aria_hidden="true",
    )


def _bar_of(value: float, most: float) -> Html:
    return _bar(round(1000 * value), round(1000 * most))


def _kwh(value: float) -> str:
    return (
        f"{value:.2f} kWh"
        if value < 10
        else f"{value:.1f} kWh"
        if value < 1000
        else f"{value / 1000:.2f} MWh"
    )


def _share(value: float | None) -> str:
    return "–" if value is None else f"{round(100 * value)} %"


def _hours(value: float) -> str:
    return f"{value:.1f} h" if value < 10 else f"{round(value)} h"
