"""`python -m tests.mutants [MODULE ...]`: do the tests notice when the safety core is wrong?

Each module of modules.py is changed in many small ways (mutate.py); a mutant that no test notices survives. At least
95 of 100 must be killed, and each survivor stands in survivors.toml with its reason.
"""

import sys

from tests.mutants import report, survivors, workplace
from tests.mutants.modules import MODULES


def main(wanted: list[str]) -> int:
    """Exit 1 when a module's tests are not good enough, or the list of survivors is not true."""
    unknown = sorted(set(wanted) - {module.name for module in MODULES})
    if unknown:
        print(f"no such module: {', '.join(unknown)} (have: {', '.join(one.name for one in MODULES)})")
        return 2
    listed = survivors.load()
    findings = survivors.of_unknown_modules(listed)
    print(report.HEAD)
    for module in MODULES:
        if not wanted or module.name in wanted:
            mutants, took_s = workplace.tried(module)
            print(report.line(module, mutants, took_s), flush=True)
            findings += report.judged(module, mutants, [one for one in listed if one.module == module.name])
    print("\n".join(findings) or "every survivor is listed with its reason")
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
