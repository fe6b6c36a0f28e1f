"""The names of days and months in the times of logs, as `dmesg -T` and journalctl write them by the reader's locale. Pure.

By strftime's %a and %b of the GNU C library's locales: C (English), German (de_DE, de_AT), French (fr_FR; fr_CA and fr_CH without
points), Russian; Chinese, Japanese and Korean months are numbers (`11月`, `3월`).
"""

_ENGLISH = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
_MONTHS = (
    _ENGLISH,
    ("Jän", "Feb", "Mär", "Apr", "Mai", "Jun", "Jul", "Aug", "Sep", "Okt", "Nov", "Dez"),
    ("janv.", "févr.", "mars", "avril", "mai", "juin", "juil.", "août", "sept.", "oct.", "nov.", "déc."),
    ("jan", "fév", "mar", "avr", "mai", "jun", "jui", "aoû", "sep", "oct", "nov", "déc"),
    ("янв", "фев", "мар", "апр", "мая", "июн", "июл", "авг", "сен", "окт", "ноя", "дек"),
    ("янв", "фев", "мар", "апр", "май", "июн", "июл", "авг", "сен", "окт", "ноя", "дек"),
)
_DAYS = (
    *("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"),
    *("Mo", "Di", "Mi", "Do", "Fr", "Sa", "So"),
    *("lun", "mar", "mer", "jeu", "ven", "sam", "dim"),
    *("Пн", "Вт", "Ср", "Чт", "Пт", "Сб", "Вс"),
)
_NUMBERS = {name: number for names in _MONTHS for number, name in enumerate(names, start=1)}
_OF_NUMBERS = " ?1?[0-9][月월]"
_LETTERS = "[一二三四五六日月火水木金土월화수목금토일]"

# Regular expressions: of English names and of those that are one letter or a number; and of all.
KNOWN_DAY = f"(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun|{_LETTERS})"
KNOWN_MONTH = f"(?:{'|'.join(_ENGLISH)}|{_OF_NUMBERS})"
# The longest first: `mar` begins `mars`.
DAY = f"(?:(?:{'|'.join(sorted(_DAYS, key=len, reverse=True))})\\.?|{_LETTERS})"
MONTH = f"(?:{'|'.join(name.replace('.', '[.]') for name in sorted(_NUMBERS, key=len, reverse=True))}|{_OF_NUMBERS})"


def number_of(month: str) -> int:
    """1 to 12, of what MONTH has matched; ValueError: `13月`.

    >>> number_of("août"), number_of(" 3月")
    (8, 3)
    """
    return _NUMBERS[month] if month in _NUMBERS else int(month[:-1])
