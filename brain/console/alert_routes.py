"""POST /alerts/alertmanager: alerts of a site's Alertmanager become events that rules can use (decision 52)."""

import time
from collections.abc import Callable

from aiohttp import hdrs, web

from agent.contract.counted import counted
from agent.contract.errors import Unreachable
from brain.console.access.door import Door
from brain.console.access.limits import Limits
from brain.console.access.people import OWN_AFFAIR
from brain.console.access.route import BODY, Route, person
from brain.console.alerts_in import NoAlerts, found
from brain.console.answers import json_answer
from brain.console.brain_view import BrainView
from brain.console_config import Role

PATH = "/alerts/alertmanager"
LARGEST = 4_194_304  # bytes of a body: a thousand alerts with labels and annotations of 4 KB each
AT_ONCE_S = 300.0  # so many seconds' worth of alerts may come at once
NOTE_EVERY_S = 600.0  # a note of what was left out


def routes(brain: BrainView, door: Door, *, clock: Callable[[], float] = time.time) -> list[Route]:
    """Returns the route; none: [alerts.alertmanager] is not in brain.toml."""
    want = brain.config.alerts.alertmanager
    if want is None:
        return []
    pace = Limits(want.alerts_per_s, max(1.0, want.alerts_per_s * AT_ONCE_S))
    notes = Limits(1 / NOTE_EVERY_S, 1)

    async def take(request: web.Request) -> web.Response:
        """Alertmanager sends a body again that is answered with 503: what it has sent before counts once."""
        who = person(request)
        door.demand(request, who, Role.VIEWER, OWN_AFFAIR)
        if who.name != want.user or not who.token:
            door.refused(
                f"alerts {who.name}", f"{who.name} may not report alerts: only the token of {want.user} may"
            )
            raise web.HTTPForbidden(
                text=f"only the token of {want.user} (alerts.alertmanager.user) reports alerts"
            )
        if not brain.live.caught_up or brain.live.state.pack is None:
            raise _again(5, "this brain has not read its log yet")
        state, now = brain.live.state, clock()
        known = {*state.nodes, *(state.pack.places if state.pack else ())}
        try:
            them = found(request.get(BODY, b""), want, known, now)
        except NoAlerts as error:
            raise web.HTTPBadRequest(text=str(error)) from error
        if (owed_s := pace.owed_s("", now)) > 0:
            raise _again(owed_s, "too many alerts")
        pace.spent("", len(them.reports), now)
        try:
            for one in them.reports:
                await brain.report(one)
        except Unreachable as error:
            raise web.HTTPServiceUnavailable(text=str(error)) from error
        if (them.unplaced or them.left_out) and not notes.too_many("", now):
            brain.note(
                "alerts.left_out",
                f"{counted(them.unplaced, 'alert')} of no node that is known and {them.left_out} that could not be read or were "
                f"too many are no events (see alerts.alertmanager.node_labels)",
            )
        return json_answer(
            {
                "taken": len(them.reports),
                "unplaced": them.unplaced,
                "own": them.own,
                "left_out": them.left_out,
            }
        )

    return [Route(method="POST", path=PATH, least=Role.VIEWER, handler=take, largest=LARGEST)]


def _again(seconds: float, why: str) -> web.HTTPServiceUnavailable:
    """Alertmanager tries again what is answered with 5xx, and drops what is answered with 429 or any other 4xx."""
    return web.HTTPServiceUnavailable(
        text=f"{why}: send it again", headers={hdrs.RETRY_AFTER: str(int(seconds) + 1)}
    )
