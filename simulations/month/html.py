"""The report of a month as one HTML file: nothing is loaded from elsewhere, no script; for phones, screens and print."""

from collections.abc import Iterable, Sequence
from html import escape
from typing import Any

from simulations.month import plots, report
from simulations.month.play import Played

_CSS = """
:root { color-scheme: light; }
body { font: 16px/1.45 system-ui, sans-serif; max-width: 75rem; margin: 0 auto; padding: 1rem; color: #111; background: #fff; }
h1 { font-size: 1.5rem; } h2 { font-size: 1.15rem; margin: 1.6rem 0 .4rem; }
.plots { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 22rem), 1fr)); gap: 1.2rem; }
figure { margin: 0; break-inside: avoid; } figcaption { font-weight: 600; margin-bottom: .3rem; }
svg { width: 100%; height: auto; max-width: 34rem; }
.wide { overflow-x: auto; } table { border-collapse: collapse; font-size: .9rem; font-variant-numeric: tabular-nums; }
th, td { padding: .2rem .6rem; text-align: right; border-bottom: 1px solid #ddd; white-space: nowrap; }
th:first-child, td:first-child { text-align: left; position: sticky; left: 0; background: #fff; }
.reached::before { content: "\\2713  "; color: #00664a; } .missed::before { content: "\\2717  "; color: #b03a00; }
ul.goals { list-style: none; padding: 0; } ul.goals li { margin: .3rem 0; }
@media print { body { font-size: 10pt; max-width: none; padding: 0; } .plots { grid-template-columns: 1fr 1fr; }
  .wide { overflow: visible; } table { font-size: 7.5pt; } th, td { padding: .1rem .3rem; } }
"""


def page(found: dict[str, Any], played: Played) -> str:
    """The whole file."""
    faults = found["faults"]
    head = f"{found['title']}: {found['nodes']} nodes, {found['days']:g} days, seed {found['seed']}"
    goals = "".join(
        f'<li class="{"reached" if goal["reached"] else "missed"}">{escape(report.goal_text(goal))}</li>'
        for goal in found["goals"]
    )
    policies = "".join(
        f"<li><b>{escape(policy['policy'])}</b>: {escape(policy['summary'])}</li>"
        for policy in found["policies"]
    )
    why = "".join(f"<li>{row['faults']} × {escape(row['why'])}</li>" for row in found["people_needed"])
    body = f"""<p>Simulated by gpuward. Source: {escape(found["source"])}. {faults["drawn"]} faults were drawn
({faults["expected"]:.0f} expected), {faults["need_hands"]} of them need hands; {faults["look_alikes"]} look-alikes;
{faults["holds"]} holds of people. All policies met the same faults with the same luck.</p>
<h2>Goals</h2>
<ul class="goals">{goals}</ul>
<div class="plots">{figures(plots.all_of_them(found, played))}</div>
<h2>Policies</h2>
<div class="wide">{table(report.rows(found["policies"]), ["", *(one["policy"] for one in found["policies"])])}</div>
<ul>{policies}</ul>
<h2>Why gpuward called people though no hands were needed</h2>
<ul>{why or "<li>It did not.</li>"}</ul>
<h2>Causes</h2>
<div class="wide">{_causes(found["causes"])}</div>
<h2>Left out</h2>
<p>{escape("; ".join(found["leaves_out"]))}. A simulation shows what follows from what is known; it is no measurement.</p>"""
    return whole(head, body)


def whole(title: str, body: str) -> str:
    """A file of that title."""
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; img-src data:; style-src 'unsafe-inline'">
<title>{escape(title)}</title>
<style>{_CSS}</style>
</head>
<body>
<h1>{escape(title)}</h1>
{body}
</body>
</html>
"""


def figures(drawn: Iterable[tuple[str, str]]) -> str:
    """(what it shows, SVG) of each."""
    return "".join(f"<figure><figcaption>{escape(title)}</figcaption>{svg}</figure>" for title, svg in drawn)


def table(rows: Sequence[tuple[str, ...]], head: Sequence[str]) -> str:
    """Rows of cells under their heads."""
    top = "".join(f"<th>{escape(cell)}</th>" for cell in head)
    body = "".join(f"<tr>{''.join(f'<td>{escape(cell)}</td>' for cell in row)}</tr>" for row in rows)
    return f"<table><thead><tr>{top}</tr></thead><tbody>{body}</tbody></table>"


def _causes(causes: list[dict[str, Any]]) -> str:
    head = ["cause", "published", "expected", "drawn", "no hands", "no people"]
    return table(
        [
            (
                row["cause"],
                f"{row['published']:g}",
                f"{row['expected']:.1f}",
                str(row["drawn"]),
                str(row["without_hands"]),
                str(row["without_people"]),
            )
            for row in causes
        ],
        head,
    )
