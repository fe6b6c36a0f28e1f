"""`gpuward check`: rules and runbooks are read, linted, and shown to do what their examples say."""

import json
import sys
from dataclasses import asdict, dataclass, field
from pathlib import Path

import click

from brain.adapters import pack as packs
from brain.adapters.marked_yaml import Fault
from brain.core import examples, lint
from brain.core.actions import ACTIONS
from brain.core.spec import Pack

_BESIDE = Path(__file__).resolve().parents[2]  # rules/ and runbooks/ are installed beside this package


@dataclass(slots=True, kw_only=True)
class Report:
    """What the check found."""

    version: str = ""  # of the pack; empty when it could not be read
    faults: list[Fault] = field(default_factory=list)
    symptoms: int = 0
    rules: int = 0
    runbooks: int = 0
    examples: int = 0
    examples_passed: int = 0
    rules_with_examples: int = 0  # with a positive and a negative one
    symptoms_used: int = 0
    runbooks_reachable: int = 0


@click.command()
@click.option(
    "--rules", type=click.Path(path_type=Path), help="Folder of the rules; default: those of gpuward."
)
@click.option("--runbooks", type=click.Path(path_type=Path), help="Folder of the runbooks; likewise.")
@click.option("--json", "as_json", is_flag=True, help="JSON, for scripts.")
def check(rules: Path | None, runbooks: Path | None, as_json: bool) -> None:
    """Validates rules and runbooks, runs their examples, counts coverage. Exit status 1 on any error."""
    report = examine(rules or _BESIDE / "rules", runbooks or _BESIDE / "runbooks")
    click.echo(json.dumps(_data(report), indent=2, ensure_ascii=False) if as_json else _text(report))
    if report.faults:
        sys.exit(1)


def examine(rules_dir: Path, runbooks_dir: Path) -> Report:
    """Reads, lints and tries the pack in two folders."""
    reading = packs.scan(rules_dir, runbooks_dir)
    report = Report(
        faults=list(reading.faults),
        symptoms=len(reading.symptoms),
        rules=len(reading.rules),
        runbooks=len(reading.runbooks),
    )
    if report.faults:
        return report  # what was not read would be missed by everything that names it
    pack = packs.assemble(reading)
    report.version = pack.version
    report.faults += [reading.locate(found.path, found.text) for found in lint.findings(pack, ACTIONS)]
    _count(report, pack)
    if report.faults:
        return report
    for outcome in examples.run_all(pack, ACTIONS):
        report.examples += 1
        report.examples_passed += outcome.ok
        if not outcome.ok:
            where = ("rules", outcome.rule, "examples", outcome.number)
            report.faults.append(reading.locate(where, f"{outcome.example}: {outcome.text}"))
    return report


def _count(report: Report, pack: Pack) -> None:
    from_rules = {name for rule in pack.rules for name in lint.symptoms_of(rule)}
    counted = {symptom.of for symptom in pack.symptoms}
    report.symptoms_used = sum(symptom.name in from_rules | counted for symptom in pack.symptoms)
    led_to = {rule.runbook for rule in pack.rules if rule.runbook}
    report.runbooks_reachable = len(led_to | {book.name for book in pack.runbooks if book.request})
    report.rules_with_examples = sum(
        any(example.expect.nothing for example in rule.examples)
        and any(not example.expect.nothing for example in rule.examples)
        for rule in pack.rules
    )


def _data(report: Report) -> dict[str, object]:
    return {"ok": not report.faults, **asdict(report)}


def _text(report: Report) -> str:
    lines = [str(fault) for fault in report.faults]
    if report.version:
        lines += [
            f"pack {report.version}",
            f"  {report.rules} rules, {report.rules_with_examples} with a positive and a negative example",
            f"  {report.symptoms} symptoms, {report.symptoms_used} used by rules",
            f"  {report.runbooks} runbooks, {report.runbooks_reachable} reachable",
            f"  {report.examples} examples run, {report.examples_passed} passed",
        ]
    if report.faults:
        many = len(report.faults)
        lines.append(f"{many} error{'s' if many > 1 else ''}: nothing of this is put into force")
    else:
        lines.append("all well")
    return "\n".join(lines)
