"""`gpuward check`: reads and lints rules and runbooks, and runs their examples."""

import sys
from dataclasses import asdict, dataclass, field
from pathlib import Path

import click

from agent.shared.words import many, t
from brain.adapters import pack as packs
from brain.cli.terminal import print_json
from brain.core.pack import lint
from brain.core.pack.actions import ACTIONS
from brain.core.pack.rulebook import MATCHER
from brain.core.pack.spec import Pack
from brain.core.rehearsal import examples
from brain.marked_yaml import Diagnostic

_BESIDE = Path(__file__).resolve().parents[2]  # rules/ and runbooks/ are installed beside this package


@dataclass(slots=True, kw_only=True)
class Report:
    """The result of a check; its fields are the keys of the JSON output."""

    # Of the pack; empty when it could not be read
    version: str = ""
    # The key of these errors in the JSON output is older than their name here
    faults: list[Diagnostic] = field(default_factory=list)
    # Old names: they are still read
    warnings: list[Diagnostic] = field(default_factory=list)
    symptoms: int = 0
    rules: int = 0
    runbooks: int = 0
    examples: int = 0
    examples_passed: int = 0
    matcher: str = str(MATCHER)
    # Rules with a positive and a negative example
    rules_with_examples: int = 0
    symptoms_used: int = 0
    runbooks_reachable: int = 0


@click.command()
@click.option("--rules", type=click.Path(path_type=Path), help="Folder of the rules; default: gpuward's own.")
@click.option(
    "--runbooks", type=click.Path(path_type=Path), help="Folder of the runbooks; default: gpuward's own."
)
@click.option("--json", "as_json", is_flag=True, help="JSON, for scripts.")
def check(rules: Path | None, runbooks: Path | None, as_json: bool) -> None:
    """Validates rules and runbooks, runs their examples, counts coverage. Exit status 1 on any error."""
    report = examine(rules or _BESIDE / "rules", runbooks or _BESIDE / "runbooks")
    print_json(_data(report)) if as_json else click.echo(_text(report))
    if report.faults:
        sys.exit(1)


def examine(rules_dir: Path, runbooks_dir: Path) -> Report:
    """Reads and lints the pack in two folders, and runs its examples."""
    sources = packs.scan(rules_dir, runbooks_dir)
    report = Report(
        faults=list(sources.errors),
        warnings=list(sources.warnings),
        symptoms=len(sources.symptoms),
        rules=len(sources.rules),
        runbooks=len(sources.runbooks),
    )
    if report.faults:
        return report  # every reference to a part that could not be read would be reported as well
    pack = packs.assemble(sources)
    report.version = pack.version
    report.faults += [sources.locate(found.path, found.text) for found in lint.findings(pack, ACTIONS)]
    _count(report, pack)
    if report.faults:
        return report
    for outcome in examples.run_all(pack, ACTIONS):
        report.examples += 1
        report.examples_passed += outcome.ok
        if not outcome.ok:
            where = ("rules", outcome.rule, "examples", outcome.number)
            report.faults.append(sources.locate(where, f"{outcome.example}: {outcome.text}"))
    return report


def _count(report: Report, pack: Pack) -> None:
    from_rules = {name for rule in pack.rules for name in lint.symptoms_of(rule)}
    counted = {symptom.of for symptom in pack.symptoms}
    counted |= {name for one in pack.runbooks for name in (one.alone_if, one.only_while)}
    report.symptoms_used = sum(symptom.name in from_rules | counted for symptom in pack.symptoms)
    led_to = {rule.runbook for rule in pack.rules if rule.runbook}
    led_to |= {one.for_several for one in pack.runbooks if one.for_several and one.name in led_to}
    report.runbooks_reachable = len(led_to | {runbook.name for runbook in pack.runbooks if runbook.request})
    report.rules_with_examples = sum(
        any(example.expect.nothing for example in rule.examples)
        and any(not example.expect.nothing for example in rule.examples)
        for rule in pack.rules
    )


def _data(report: Report) -> dict[str, object]:
    return {"ok": not report.faults, **asdict(report)}


def _text(report: Report) -> str:
    lines = [str(fault) for fault in report.faults]
    lines += [
        t(
            "{file}:{line}: warning: {key}: {text}",
            file=fault.file,
            line=fault.line,
            key=fault.key,
            text=fault.text,
        )
        for fault in report.warnings
    ]
    if report.version:
        lines += [
            t("pack {version}", version=report.version),
            t(
                "  {rules}, {rules_with_examples} with a positive and a negative example",
                rules=many(report.rules, "rule"),
                rules_with_examples=report.rules_with_examples,
            ),
            t(
                "  {symptoms}, {symptoms_used} used by rules",
                symptoms=many(report.symptoms, "symptom"),
                symptoms_used=report.symptoms_used,
            ),
            t(
                "  {runbooks}, {runbooks_reachable} reachable",
                runbooks=many(report.runbooks, "runbook"),
                runbooks_reachable=report.runbooks_reachable,
            ),
            t(
                "  {examples} examples run, {examples_passed} passed; matched by {matcher}",
                examples=report.examples,
                examples_passed=report.examples_passed,
                matcher=report.matcher,
            ),
        ]
    if report.faults:
        lines.append(
            t(
                "{errors}: no brain will load these rules and runbooks",
                errors=many(len(report.faults), "error"),
            )
        )
    else:
        lines.append(t("all well"))
    return "\n".join(lines)
