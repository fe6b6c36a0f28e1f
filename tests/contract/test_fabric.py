"""What is a finding in a fabric: our own recordings of ibqueryerrors and iblinkinfo on a simulated fabric, and what follows."""

import pytest

from agent.contract import fabric
from agent.contract.fabric import Cable, ErrorCounters, LastInspection

QUIET = """
## Summary: 5 nodes checked, 0 bad nodes found
##          12 ports checked, 0 ports have errors beyond threshold
## Thresholds:
## Suppressed:
"""
ERRORS = """Errors for "gpu4 mlx5_0"
   GUID 0x100007 port 1: [LinkDownedCounter == 7]
Errors for 0x200000 "leaf 1"
   GUID 0x200000 port ALL: [SymbolErrorCounter == 120] [PortXmitWait == 99999]
   GUID 0x200000 port 3: [SymbolErrorCounter == 120] [PortXmitWait == 99999 (97.7KB)]

## Summary: 5 nodes checked, 2 bad nodes found
##          12 ports checked, 2 ports have errors beyond threshold
"""
LINE = '0x{near:016x} "{a:>30}" {lid:>6} {p:>4}[  ] ==( {how:>24} {state})==>  0x{far:016x} {lid:>6} {q:>4}[  ] "{b}" ({could})'


def line(near: int, a: str, p: int, far: int, b: str, q: int, **more: str) -> str:
    """One line of iblinkinfo --line."""
    how = {"how": "4X           25.78125 Gbps", "state": "Active/  LinkUp", "could": ""} | more
    return LINE.format(near=near, a=a, p=p, far=far, b=b, q=q, lid=7, **how)


def fabric_of(**second: str) -> list[Cable]:
    """Four hosts on a switch, told from both ends; the second cable as given."""
    lines = []
    for n in range(1, 5):
        more = second if n == 2 else {}
        lines.append(line(0x200000, "leaf 1", n, 0x100000 + n, f"gpu{n} mlx5_0", 1, **more))
        lines.append(line(0x100000 + n, f"gpu{n} mlx5_0", 1, 0x200000, "leaf 1", n, **more))
    lines.append(
        '0x0000000000200000 "leaf 1" 2 5[  ] ==(                Down/ Polling)==>             [  ] "" ( )'
    )
    lines.append("ibwarn: [1] something else")
    return fabric.links("\n".join(lines))


def counted(**values: int) -> ErrorCounters:
    """One reading: these counters of the switch's port 3."""
    words = " ".join(f"[{name} == {value}]" for name, value in values.items())
    return fabric.errors(f'Errors for 0x200000 "leaf 1"\n   GUID 0x200000 port 3: {words}\n{QUIET}')


def found(
    before: ErrorCounters,
    after: ErrorCounters,
    cables: list[Cable] | None = None,
    last: LastInspection | None = None,
) -> list[str]:
    """The findings."""
    return list(fabric.findings(before, after, cables or fabric_of(), last or LastInspection(), 60))


def test_the_tools_are_read() -> None:
    """Names, ports, counters; each cable once with both ends; empty ports are no links."""
    errors = fabric.errors(ERRORS)
    assert errors.ports == 12
    assert errors.counters == {
        "100007/1": {"LinkDownedCounter": 7},
        "200000/3": {"SymbolErrorCounter": 120, "PortXmitWait": 99999},
    }
    assert errors.names["200000/3"].text == "leaf 1 port 3"
    assert [link.text for link in fabric_of()] == [
        f"leaf 1 port {n} to gpu{n} mlx5_0 port 1" for n in range(1, 5)
    ]
    assert fabric.links("rubbish") == []
    assert fabric.errors("rubbish") == ErrorCounters(ports=0, counters={}, names={})


def test_a_quiet_fabric_has_no_findings_however_much_it_has_counted_in_its_life() -> None:
    """Counters that stand still, and congestion, are none."""
    errors = fabric.errors(ERRORS)
    assert found(errors, errors) == []
    assert (
        found(counted(PortXmitWait=1, PortXmitDiscards=1), counted(PortXmitWait=9**9, PortXmitDiscards=900))
        == []
    )


@pytest.mark.parametrize(
    ("last", "before", "after", "says"),
    [
        (None, {"SymbolErrorCounter": 5}, {"SymbolErrorCounter": 6}, "SymbolErrorCounter +1 within 60 s"),
        (None, {}, {"LinkDownedCounter": 1}, "LinkDownedCounter +1 within 60 s"),
        (
            {"SymbolErrorCounter": 5},
            {"SymbolErrorCounter": 15},
            {"SymbolErrorCounter": 15},
            "SymbolErrorCounter +10 since",
        ),
        ({"SymbolErrorCounter": 6}, {"SymbolErrorCounter": 15}, {"SymbolErrorCounter": 15}, ""),
        (
            {"SymbolErrorCounter": 99},
            {"SymbolErrorCounter": 12},
            {"SymbolErrorCounter": 12},
            "SymbolErrorCounter +12 since",
        ),
        ({"PortRcvErrors": 0}, {"PortRcvRemotePhysicalErrors": 99}, {"PortRcvRemotePhysicalErrors": 99}, ""),
        (None, {"SymbolErrorCounter": 900}, {"SymbolErrorCounter": 900}, ""),
    ],
    ids=["grows", "first", "month", "slow", "cleared", "remote", "baseline"],
)
def test_what_grows_is_a_finding(
    last: dict[str, int] | None, before: dict[str, int], after: dict[str, int], says: str
) -> None:
    """While it is watched at once; since the last inspection above the threshold; a cleared counter counts from zero."""
    kept = None if last is None else LastInspection(when="2026-10-01", counters={"200000/3": last})
    findings = found(counted(**before), counted(**after), last=kept)
    assert len(findings) == bool(says)
    assert all(text.startswith(f"leaf 1 port 3 (to gpu3 mlx5_0 port 1): {says}") for text in findings)


def test_links_that_are_slow_untended_or_gone() -> None:
    """One among many; a fabric that is built slower than its parts is none."""
    quiet = fabric.errors(QUIET)
    (slow,) = found(quiet, quiet, fabric_of(how="1X           25.78125 Gbps", could=" Could be 4X"))
    assert slow == "leaf 1 port 2 to gpu2 mlx5_0 port 1: 1X 25.78125 Gbps, Could be 4X"
    (armed,) = found(quiet, quiet, fabric_of(state="Initialize/ LinkUp"))
    assert "has trained but is Initialize" in armed
    built = [line(0x200000, "s", n, 0x100000 + n, "h", 1, could="Could be 12X") for n in range(4)]
    assert found(quiet, quiet, fabric.links("\n".join(built))) == []
    last = fabric.to_remember(quiet, fabric_of(), "2026-10-01")
    assert found(quiet, quiet, fabric_of(), last) == []
    assert found(quiet, quiet, fabric_of()[:3], last) == [
        "leaf 1 port 4 to gpu4 mlx5_0 port 1: the link of 2026-10-01 is gone"
    ]


def test_an_answer_says_how_many() -> None:
    """Its first line is read by the brain."""
    assert fabric.text(4, 12, []) == "4 links, 12 ports, 0 findings"
    assert fabric.count(fabric.text(4, 12, ["a: b"])) == 1
    assert fabric.count("something else") is None
