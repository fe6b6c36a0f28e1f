"""One module's mutants, made and tried by mutmut: `mutate.py MODULE_PATH`, started by `tests.mutants` in a working folder.

A program by itself, which imports nothing of the project: what it tests is the mutated copy in that folder. It adds
to mutmut what safety code needs (a condition that is turned round, one side of an `and` that is dropped, a statement
that is left out) and takes away what says nothing (sentences for people are not reworded).
"""

import json
import sys
from collections.abc import Iterable
from pathlib import Path

import libcst as cst
from mutmut.__main__ import cli
from mutmut.mutation import mutators
from mutmut.mutation.data import SourceFileMutationData
from mutmut.mutation.diff_apply import get_diff_for_mutant
from mutmut.stats import status_by_exit_code

RESULTS = "results.json"
QUIET = ("_log",)  # what is called on these tells people only


def words(node: cst.BaseString) -> Iterable[cst.BaseString]:
    """Another name in place of a name. A text with a blank in it is a sentence for people: it may be reworded."""
    if isinstance(node, cst.SimpleString) and node.prefix == "" and " " not in node.raw_value:
        yield node.with_changes(value=f"{node.quote}XX{node.raw_value}XX{node.quote}")


def one_side(node: cst.BooleanOperation) -> Iterable[cst.BaseExpression]:
    """`a and b` without the one or the other."""
    for side in (node.left, node.right):
        yield side.with_changes(lpar=[cst.LeftParen()], rpar=[cst.RightParen()])


def turned(node: cst.If | cst.CompIf) -> Iterable[cst.If | cst.CompIf]:
    """The condition turned round, where no other operator does just that."""
    if isinstance(node.test, cst.UnaryOperation):
        return
    inner = node.test.with_changes(lpar=[cst.LeftParen()], rpar=[cst.RightParen()])
    yield node.with_changes(test=cst.UnaryOperation(operator=cst.Not(), expression=inner))


def left_out(node: cst.Expr | cst.Assign | cst.Del) -> Iterable[cst.Pass]:
    """A call, a change of something that lasts, or a deletion does not happen."""
    if isinstance(node, cst.Expr):
        call = node.value.expression if isinstance(node.value, cst.Await) else node.value
        if isinstance(call, cst.Call) and not _quiet(call):
            yield cst.Pass()
    elif isinstance(node, cst.Del) or all(_lasts(target.target) for target in node.targets):
        yield cst.Pass()


def _quiet(call: cst.Call) -> bool:
    return (
        isinstance(call.func, cst.Attribute)
        and isinstance(call.func.value, cst.Name)
        and call.func.value.value in QUIET
    )


def _lasts(target: cst.BaseExpression) -> bool:
    return isinstance(target, (cst.Attribute, cst.Subscript))


OPERATORS: mutators.OPERATORS_TYPE = [
    *(pair for pair in mutators.mutation_operators if pair[1] is not mutators.operator_string),
    (cst.BaseString, words),
    (cst.BooleanOperation, one_side),
    (cst.If, turned),
    (cst.CompIf, turned),
    (cst.Expr, left_out),
    (cst.Assign, left_out),
    (cst.Del, left_out),
]


def results(path: str) -> list[dict[str, str]]:
    """What became of each mutant, and what it changes."""
    data = SourceFileMutationData(path=path)
    data.load()
    return [
        {
            "mutant": name,
            "function": _function(name),
            "status": status_by_exit_code[code],
            "error": data.type_check_error_by_key.get(name) or "",
        }
        | _change(name, path)
        for name, code in data.exit_code_by_key.items()
    ]


def _function(mutant: str) -> str:
    name = mutant.rpartition(".")[2].rpartition("__mutmut_")[0]
    return name.removeprefix("x_") if name.startswith("x_") else name.removeprefix("xǁ").replace("ǁ", ".")


def _change(mutant: str, path: str) -> dict[str, str]:
    lines = get_diff_for_mutant(mutant, path=path).splitlines()[2:]
    parts = {"before": "-", "after": "+"}
    return {
        name: " ".join(word for line in lines if line.startswith(sign) for word in line[1:].split())
        for name, sign in parts.items()
    }


def main(path: str) -> None:
    """Leaves `results.json` in the working folder."""
    # mutmut reads this very list each time: to put other operators in is its way to be extended.
    mutators.mutation_operators[:] = OPERATORS
    cli.main(["run", "--max-children", sys.argv[2]], standalone_mode=False)
    Path(RESULTS).write_text(json.dumps(results(path), indent=1))


if __name__ == "__main__":
    main(sys.argv[1])
