"""What the mutants of a module say of its tests."""

from tests.mutants.modules import Module
from tests.mutants.survivors import Survivor
from tests.mutants.workplace import Mutant

LEAST = 95.0  # per cent killed
MOST_REFUSED = 9  # for one mutant that is tried
HEAD = f"{'module':<12}{'mutants':>8}{'killed':>8}{'survived':>10}{'killed %':>10}{'seconds':>9}"


def line(module: Module, mutants: list[Mutant], took_s: float) -> str:
    """A line of the table."""
    counted = [one for one in mutants if not one.refused]
    killed = sum(one.killed for one in counted)
    left = len(counted) - killed
    return f"{module.name:<12}{len(counted):>8}{killed:>8}{left:>10}{_share(counted):>10.1f}{took_s:>9.0f}"


def judged(module: Module, mutants: list[Mutant], listed: list[Survivor]) -> list[str]:
    """What is wrong: too few killed, a survivor that is not listed, an entry that is not true any more."""
    counted = [one for one in mutants if not one.refused]
    alive = [one for one in counted if not one.killed]
    findings = []
    if _share(counted) < LEAST:
        findings.append(f"{module.name}: {_share(counted):.1f} % killed, at least {LEAST:.0f} % must be")
    for one in alive:
        if not any(entry.names(one) for entry in listed):
            findings.append(_unlisted(module, one))
    if len(counted) * MOST_REFUSED < len(mutants) - len(counted):
        findings.append(
            f"{module.name}: {len(mutants) - len(counted)} of {len(mutants)} were refused: is mypy broken?"
        )
    for entry in dict.fromkeys(listed):
        times = sum(entry.names(one) for one in alive)
        if times > listed.count(entry):
            findings.append(f"survivors.toml: names {times} mutants that survive, with one reason: {entry}")
        if not any(entry.names(one) for one in alive):
            gone = "is killed now" if any(entry.names(one) for one in counted) else "does not exist any more"
            findings.append(f"survivors.toml: {gone}: {entry}")
    return findings


def _share(counted: list[Mutant]) -> float:
    return 100 * sum(one.killed for one in counted) / len(counted) if counted else 0.0


def _unlisted(module: Module, one: Mutant) -> str:
    """Ready to be listed, should nobody want to kill it."""
    fields = {"module": module.name, "function": one.function, "before": one.before, "after": one.after}
    entry = "\n".join(f"{name} = '''{text}'''" for name, text in fields.items())
    return f"\n# {one.status}: {one.mutant}\n[[survivor]]\n{entry}\nreason = ''"
