"""`python -m tests.fuzz TARGET SECONDS`: coverage-guided, with atheris; an input that fails is kept and printed."""

import sys
from pathlib import Path

import atheris

with atheris.instrument_imports(include=["agent"]):
    from tests.fuzz.targets import SEEDS, TARGETS, attempt

CORPUS = Path(".fuzz")  # grows from run to run; ignored by git


def main(name: str, seconds: str) -> None:
    """Never returns: libFuzzer ends the process; exit status 0 when nothing failed."""
    corpus = CORPUS / name
    corpus.mkdir(parents=True, exist_ok=True)
    for number, seed in enumerate(SEEDS):
        (corpus / f"seed-{number:02}").write_text(seed)
    target = TARGETS[name]

    def one(data: bytes) -> None:
        attempt(target, data.decode("utf-8", "replace"))

    atheris.Setup(
        [
            "fuzz",
            f"-max_total_time={seconds}",
            "-max_len=4096",
            "-print_final_stats=1",
            f"-artifact_prefix={corpus}-",
            str(corpus),
        ],
        one,
    )
    atheris.Fuzz()


if __name__ == "__main__":
    main(*sys.argv[1:3])
