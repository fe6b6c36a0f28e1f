"""What is expected of a situation, as checks of its outcome. Each gives a sentence when it is not met."""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from brain.core.pack.spec import Priority
from simulations.scenarios.ending import SceneEnd


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """One expectation."""

    # Empty: it is met.
    fails: Callable[[SceneEnd], str]
    # False: it is about people's comfort, not about what must not happen.
    must: bool = True


def wish(check: Check) -> Check:
    """The same, but without it the situation is still mostly as expected."""
    return replace(check, must=False)


def runs_on(node: str, job: str) -> Check:
    """A job still runs at the end: nothing that was done has ended it."""

    def fails(outcome: SceneEnd) -> str:
        return "" if job in outcome.scene.machines[node].state.jobs else f"job {job} no longer runs on {node}"

    return Check(fails=fails)


def sees(expected: Mapping[str, int]) -> Check:
    """People see so many incidents of each cause, and no others."""

    def fails(outcome: SceneEnd) -> str:
        found: dict[str, int] = {}
        for one in outcome.seen:
            found[one.cause] = found.get(one.cause, 0) + 1
        return (
            ""
            if found == dict(expected)
            else f"people see {found or 'nothing'}, not {dict(expected) or 'nothing'}"
        )

    return Check(fails=fails)


def sees_at_most(most: int, cause: str = "") -> Check:
    """People see at most so many incidents."""

    def fails(outcome: SceneEnd) -> str:
        found = [one for one in outcome.seen if cause in ("", one.cause)]
        return "" if len(found) <= most else f"people see {len(found)} incidents {cause}, not at most {most}"

    return Check(fails=fails)


def pages(most: int, *severities: Priority, least: int = 0) -> Check:
    """People are paged at most so often, for these severities or (none) all."""

    def fails(outcome: SceneEnd) -> str:
        found = [one for one in outcome.pages if not severities or one.subject.severity in severities]
        named = " ".join(severities)
        if least <= len(found) <= most:
            return ""
        return f"{len(found)} pages {named}".strip() + f", not {least} to {most}"

    return Check(fails=fails)


def untouched(*names: str) -> Check:
    """Nothing is disturbed on these nodes, or (none) anywhere."""

    def fails(outcome: SceneEnd) -> str:
        found = [one for one in outcome.touched if not names or one in names]
        return f"{', '.join(found[:3])} were disturbed: {outcome.actions(found[0])}" if found else ""

    return Check(fails=fails)


def touches_at_most(most: int) -> Check:
    """Something is disturbed on at most so many nodes."""

    def fails(outcome: SceneEnd) -> str:
        found = len(outcome.touched)
        return "" if found <= most else f"{found} nodes were disturbed, not at most {most}"

    return Check(fails=fails)


def does(node: str, *expected: str) -> Check:
    """Exactly this is done on a node: what disturbs it, and its return."""

    def fails(outcome: SceneEnd) -> str:
        found = outcome.actions(node)
        return "" if found == list(expected) else f"{node}: {found} was done, not {list(expected)}"

    return Check(fails=fails)


def never(*actions: str, after_s: float = 0.0, until_s: float = math.inf, node: str = "") -> Check:
    """None of these actions is performed (within a time, on a node)."""

    def fails(outcome: SceneEnd) -> str:
        for one in outcome.scene.done:
            if one.step.action in actions and after_s <= one.at_s < until_s and node in ("", one.step.node):
                return f"{one.step.action} on {one.step.node} at {one.at_s:.0f} s"
        return ""

    return Check(fails=fails)


def quiet_after(after_s: float, *names: str) -> Check:
    """Nothing is disturbed after a time (on these nodes)."""

    def fails(outcome: SceneEnd) -> str:
        for one in outcome.scene.done:
            if one.disturbs and one.at_s > after_s and (not names or one.step.node in names):
                return f"{one.step.action} on {one.step.node} at {one.at_s:.0f} s"
        return ""

    return Check(fails=fails)


def out(*names: str) -> Check:
    """Exactly these nodes are out of service at the end."""

    def fails(outcome: SceneEnd) -> str:
        return (
            ""
            if outcome.out == list(names)
            else f"{outcome.out or 'no node'} is out of service, not {list(names)}"
        )

    return Check(fails=fails)


def ends(cause: str, *states: str) -> Check:
    """Every incident of this cause that people see ends so, and there is one."""

    def fails(outcome: SceneEnd) -> str:
        found = [one for one in outcome.seen if one.cause == cause]
        wrong = [one for one in found if one.state.value not in states]
        if not found:
            return f"no incident of {cause}"
        return (
            f"{cause} at {wrong[0].scope} is {wrong[0].state.value}, not {' or '.join(states)}"
            if wrong
            else ""
        )

    return Check(fails=fails)


def said(kind: str, *words: str) -> Check:
    """A note of this kind has all these words."""

    def fails(outcome: SceneEnd) -> str:
        texts = outcome.reasons(kind)
        if any(all(word in text for word in words) for text in texts):
            return ""
        return f"no note {kind} says {' '.join(words)}"

    return Check(fails=fails)


def told(*words: str) -> Check:
    """A page has all these words, in what it says or why it was opened."""

    def fails(outcome: SceneEnd) -> str:
        texts = []
        for one in outcome.pages:
            about = one.subject
            texts.append(
                " ".join([one.text, about.because, about.cause, about.scope, *about.stops, *about.common])
            )
        if any(all(word in text for word in words) for text in texts):
            return ""
        return f"no page says {' '.join(words)}"

    return Check(fails=fails)


def never_told(*words: str) -> Check:
    """No page has all these words, repeats and resolutions included."""

    def fails(outcome: SceneEnd) -> str:
        found = [one.text for _, one in outcome.scene.paged if all(word in one.text for word in words)]
        return f"a page says: {found[0]}" if found else ""

    return Check(fails=fails)


def counts(node: str, action: str, times: int) -> Check:
    """An action is performed so often on a node."""

    def fails(outcome: SceneEnd) -> str:
        found = outcome.actions(node)
        return (
            "" if found.count(action) == times else f"{node}: {action} {found.count(action)} times in {found}"
        )

    return Check(fails=fails)


def no_page_after(after_s: float) -> Check:
    """Nobody is paged after a time, repeats included."""

    def fails(outcome: SceneEnd) -> str:
        late = [one for at_s, one in outcome.scene.paged if at_s > after_s and one.what != "resolve"]
        return f"{len(late)} pages after {after_s:.0f} s: {late[0].what}: {late[0].text}" if late else ""

    return Check(fails=fails)
