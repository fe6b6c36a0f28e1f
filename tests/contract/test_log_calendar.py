"""Times of logs in the words of the reader's locale: as `dmesg -T`, `dmesg -e` and journalctl print them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.contract.coverage import Coverage
from agent.contract.kernel_text import Clock, has_unknown_form, parse

XID = "NVRM: Xid (PCI:0000:3b:00): 79, pid=1234, name=python, GPU has fallen off the bus."
WALL_S = 1795180655.0  # 2026-11-20 13:17:35 UTC
# Locale -> %b from January to December, and %a from Monday to Sunday, as glibc 2.36's locales print them.
LOCALES = {
    "C": ("Jan Feb Mar Apr May Jun Jul Aug Sep Oct Nov Dec", "Mon Tue Wed Thu Fri Sat Sun"),
    "de_DE": ("Jan Feb Mär Apr Mai Jun Jul Aug Sep Okt Nov Dez", "Mo Di Mi Do Fr Sa So"),
    "de_AT": ("Jän Feb Mär Apr Mai Jun Jul Aug Sep Okt Nov Dez", "Mo Di Mi Do Fr Sa So"),
    "fr_FR": ("janv. févr. mars avril mai juin juil. août sept. oct. nov. déc.", "lun. mar. mer. jeu. ven. sam. dim."),
    "fr_CA": ("jan fév mar avr mai jun jui aoû sep oct nov déc", "lun mar mer jeu ven sam dim"),
    "ru_RU": ("янв фев мар апр мая июн июл авг сен окт ноя дек", "Пн Вт Ср Чт Пт Сб Вс"),
}  # fmt: skip


@pytest.mark.parametrize("locale", LOCALES)
def test_every_month_and_day_is_read(locale: str) -> None:
    """In the order of the year: each month at its place, with each day of the week."""
    months, days = (names.split() for names in LOCALES[locale])
    assert (len(months), len(days)) == (12, 7)
    for day in days:
        read = [parse(f"[{day} {month} 20 13:17:35 2026] {XID}") for month in months]
        assert [line.text if line else "" for line in read] == [XID] * 12
        at = [line.mono_s for line in read if line is not None]
        assert at == sorted(set(at))
        assert at[10] == WALL_S


@pytest.mark.parametrize("month", ["Nov", "nov.", "nov", "ноя"])
def test_every_form_that_names_a_month(month: str) -> None:
    """journalctl, with a day of one digit or two; `dmesg -e`; with what stands before and behind a time."""
    for written, mono_s in (
        (f"{month} 20 13:17:35 gpu-17 kernel: {XID}", 974726255.0),
        (f"{month} 02 13:17:35 gpu-17 kernel: {XID}", 973171055.0),
        (f"{month}  2 13:17:35 gpu-17 kernel: [  T812] {XID}", 973171055.0),
        (f"[{month}20 13:17] {XID}", 974726220.0),
        (f"[{month} 2 13:17] {XID}", 973171020.0),
        (f"kern  :err   : [Fr {month} 20 13:17:35 2026] [  T812] {XID}", WALL_S),
        (f"> [пт {month} 20 13:17:35 2026] {XID}".replace("пт", "Пт"), WALL_S),
        (f"[ven. {month} 20 13:17:35 2026 <    0.000012>] {XID}", WALL_S),
    ):
        line = parse(written)
        assert line is not None
        assert (line.text, line.clock, line.mono_s) == (XID, Clock.WALL, mono_s), written


def test_a_log_in_german_is_read_whole() -> None:
    """No doubt is left about it, and what it says is found at its time."""
    log = [
        "[Do Mär  5 06:00:00 2026] Linux version 6.1.0-18-amd64",
        f"[Do Mär  5 06:10:00 2026] {XID}",
        "[Fr Okt 30 07:00:00 2026] usb 1-1: new high-speed USB device number 2 using xhci_hcd",
    ]
    coverage = Coverage()
    read = [line for _, line in coverage.records(log)]
    assert [line.text for line in read][1] == XID
    assert read[1].mono_s - read[0].mono_s == 600
    assert (coverage.unread, coverage.timed, coverage.blind) == (0, 3, "")


@pytest.mark.parametrize(
    "text",
    [
        "mar 3 channels found",  # a word that is a month somewhere, and no time behind it
        "marvell 88e1510 phy",
        "Sa 20 13:17:35 x",
        "[Fr 20. Nov 13:17:35 2026] x",
        "[Fr Nov 32 13:17:35 2026] x",
        "[Пт ноябрь 20 13:17:35 2026] x",
        "nov 20 1317 x",
    ],
)
def test_what_is_no_time_is_none(text: str) -> None:
    """Its text is left as it is."""
    line = parse(text)
    assert line is not None
    assert (line.clock, line.text) == (Clock.NONE, text)
    assert not has_unknown_form(line) or text.startswith("[")


_NAMES = [name for months, days in LOCALES.values() for name in (*months.split(), *days.split())]
_PIECES = st.sampled_from(
    [*_NAMES, "[", "] ", " ", "  ", "20", " 2", "13:17:35", "99:99:99", "2026", ".", "x"]
)


@given(st.lists(st.one_of(_PIECES, st.text(max_size=8)), max_size=16).map("".join))
def test_no_mix_of_names_can_break_it(text: str) -> None:
    """Names of any language at any place."""
    line = parse(text)
    assert line is None or line.mono_s >= 0
