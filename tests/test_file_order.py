"""No file of tests is lost by the order, and what its lists name is there."""

from pathlib import Path

from tests.file_order import COMPUTING, FIRST, WAITING, in_order

FILES = sorted(str(path) for path in Path(__file__).parent.rglob("test_*.py"))


def test_every_file_is_run_once() -> None:
    for files in (FILES, FILES[:1], []):
        assert sorted(in_order(files)) == files


def test_wherever_the_checkout_lies() -> None:
    """Folders above it may have the names that the lists have."""
    for above in ("/home/ann/replay/gpuward", "/tests/real/test_kube_drains/laws/test_planted"):
        moved = [f"{above}/tests{path.rpartition('/tests')[2]}" for path in FILES]
        assert [path.removeprefix(above) for path in in_order(moved)] == [
            path.removeprefix(str(Path(__file__).parents[1])) for path in in_order(FILES)
        ]


def test_files_that_wait_are_spread_among_those_that_compute() -> None:
    order = in_order(FILES)
    waits = [n for n, path in enumerate(order) if any(part in path for part in WAITING)]
    assert waits[:FIRST] == list(range(FIRST))
    assert all(after - before > 2 for before, after in zip(waits[FIRST - 1 :], waits[FIRST:], strict=False))
    assert waits[-1] < 0.75 * len(order)


def test_the_lists_name_files_that_there_are() -> None:
    for part in (*WAITING, *COMPUTING):
        assert any(part in path for path in FILES), part
