"""Which commands somebody may give about something, by their role and its limits."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from brain.console.access.people import Person
from brain.console.access.two_persons import needs_second
from brain.console.api.needs_shapes import VerbShape
from brain.console.api.verbs import ROLES, VERBS
from brain.console.touched import least, touched
from brain.core.pack.spec import Place, Scalar
from brain.core.state import State


@dataclass(frozen=True, slots=True, kw_only=True)
class Allowed:
    """What one person may say now."""

    person: Person
    state: State
    # console.two_persons
    chosen: Collection[str]

    def of(self, *wanted: tuple[str, Mapping[str, Scalar]]) -> list[VerbShape]:
        """Returns those of some commands that the person may give: (verb, arguments). A node's name may be in several."""
        if not self.person.how:
            return []
        places: Mapping[str, Place] = self.state.pack.places if self.state.pack else {}
        found = []
        for verb, args in wanted:
            about = touched(verb, args, self.state, self.person.name)
            if not self.person.refuses(least(verb, args, ROLES), about, places):
                found.append(
                    VerbShape(
                        verb=verb,
                        args=dict(args),
                        asks=[name for name in VERBS[verb][0] if name not in args],
                        two_persons=needs_second(verb, args, self.chosen),
                    )
                )
        return found
