"""Do the tables of brain.toml's [settings] agree with each other, and with its groups?"""

from collections.abc import Iterator, Mapping, Sequence

from brain import setting_ranges
from brain.all_wrong import AllWrong
from brain.core.pack.spec import ONCALL, Digest, EscalationStep, Priority, Settings, Tickets


def check(settings: Settings, groups: Mapping[str, Sequence[str]]) -> None:
    """ValueError: a line for each key that does not fit the others."""
    wrong, those = AllWrong(), GroupSettings(settings, groups)
    with wrong.also():
        setting_ranges.check(settings)
    for line in those.wrong():
        wrong.add(line)
    wrong.end(ValueError)


class GroupSettings:
    """The settings that name a group: chains, digests, tickets."""

    def __init__(self, settings: Settings, groups: Mapping[str, Sequence[str]]) -> None:
        self._settings = settings
        self._groups = groups
        self._have = f"(have: {', '.join(groups)})"

    def wrong(self) -> Iterator[str]:
        """A line for each."""
        settings = self._settings
        for severity, chain in settings.escalation.items():
            yield from self._chain(f"settings.escalation.{severity.value}", chain)
        for fault, wait in settings.drains.items():
            if not 0 <= wait.wait_s <= 30 * 86400:
                yield f"settings.drains.{fault}: wait_s must be 0 to 30 days (2,592,000 s)"
        for severity, digest in settings.digests.items():
            yield from self._digest(severity, digest)
        if settings.tickets is not None:
            yield from self._tickets(settings.tickets)

    def _tickets(self, tickets: Tickets) -> Iterator[str]:
        where, to = "settings.tickets.to", tickets.to
        if to in (ONCALL, *self._called, *(one.to for one in self._settings.digests.values())):
            yield f"{where}: {to} is paged, too: give a group of its own"
        elif to not in self._groups:
            yield f"{where}: there is no group {to!r} {self._have}"

    @property
    def _called(self) -> tuple[str, ...]:
        """The groups of the chains."""
        return tuple(step.to for chain in self._settings.escalation.values() for step in chain)

    def _digest(self, severity: Priority, digest: Digest) -> Iterator[str]:
        where = f"settings.digests.{severity.value}"
        if severity in (Priority.P0, Priority.P1):
            yield f"{where}: what is so urgent does not wait (P2 and P3 may)"
        if severity in self._settings.escalation:
            yield f"{where}: {severity.value} has a chain in settings.escalation: give one of the two"
        if digest.to in (ONCALL, *self._called):
            yield f"{where}: {digest.to} is paged at once for other severities: give a group of its own"
        elif digest.to not in self._groups:
            yield f"{where}: there is no group {digest.to!r} {self._have}"
        if digest.every_s < 0:
            yield f"{where}: every_s must not be negative"
        for entry in digest.hours:
            if not entry.days or not 0 <= entry.from_hour < entry.until_hour <= 24:
                yield f"{where}: hours need days, and 0 <= from_hour < until_hour <= 24"

    def _chain(self, where: str, chain: tuple[EscalationStep, ...]) -> Iterator[str]:
        if not chain or chain[0].after_s > 0:
            yield f"{where}: the first group is paged immediately: it needs one without after_s"
        times = [step.after_s for step in chain]
        if times and (times != sorted(times) or times[0] < 0):
            yield f"{where}: after_s counts from the first page and must not decrease"
        for step in chain:
            if step.to not in (ONCALL, *self._groups):
                yield f"{where}: there is no group {step.to!r} (have: {', '.join([ONCALL, *self._groups])})"
