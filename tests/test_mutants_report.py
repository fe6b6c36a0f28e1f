"""What `make mutants` complains of. The mutants themselves take minutes; the judgement is made here of made-up ones."""

from tests.mutants.modules import MODULES
from tests.mutants.report import judged
from tests.mutants.survivors import Survivor
from tests.mutants.workplace import Mutant

GATES = MODULES[0]


def mutant(number: int, status: str = "killed", before: str = "") -> Mutant:
    """A mutant of one function."""
    return Mutant(
        mutant=f"m{number}",
        function="hold",
        status=status,
        error="",
        before=before or f"a{number}",
        after="b",
    )


def entry(before: str) -> Survivor:
    """A survivor of that function that is listed."""
    return Survivor(module="gates", function="hold", before=before, after="b", reason="it is the same")


KILLED = [mutant(number) for number in range(40)]


def test_all_is_well() -> None:
    """Each survivor is listed, each that is listed survives; what mypy refuses does not count."""
    assert judged(GATES, KILLED, []) == []
    refused = mutant(41, "caught by type check")
    assert judged(GATES, [*KILLED, mutant(40, "survived"), refused], [entry("a40")]) == []


def test_what_is_wrong_is_named() -> None:
    """Too few killed, one that is not listed, one that is killed by now or is not there any more."""
    (unlisted,) = judged(GATES, [*KILLED, mutant(40, "survived")], [])
    assert "before = '''a40'''" in unlisted
    assert "is killed now" in judged(GATES, KILLED, [entry("a3")])[0]
    assert "does not exist any more" in judged(GATES, KILLED, [entry("a99")])[0]
    assert "0.0 % killed" in judged(GATES, [], [])[0], "nothing was tried"
    many = [mutant(number, "survived") for number in range(40, 50)]
    listed = [entry(f"a{number}") for number in range(40, 50)]
    assert "80.0 % killed, at least 95 % must be" in judged(GATES, [*KILLED, *many], listed)[0]


def test_a_mutant_without_a_test_survives() -> None:
    """So does one that was not tried: mutmut's other words for 'nobody noticed'."""
    for status in ("no tests", "skipped", "suspicious", "not checked"):
        assert judged(GATES, [*KILLED, mutant(40, status)], []) != [], status


def test_one_entry_is_one_survivor() -> None:
    """The same change to the same words at another place of the function is another mutant, with a reason of its own."""
    twice = [mutant(40, "survived", "x"), mutant(41, "survived", "x")]
    (complaint,) = judged(GATES, [*KILLED, *twice], [entry("x")])
    assert "names 2 mutants that survive" in complaint
    assert judged(GATES, [*KILLED, *twice], [entry("x"), entry("x")]) == []


def test_most_mutants_must_be_programs() -> None:
    """When mypy refuses nearly all of them, it is broken, and the few that are left prove nothing."""
    refused = [mutant(number, "caught by type check") for number in range(40, 500)]
    assert "refused" in judged(GATES, [*KILLED, *refused], [])[0]
