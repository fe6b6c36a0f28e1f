"""The EventService of the Redfish server of the tests: a stream of events (DSP0266, "Server-sent events") that misbehaves on
request.

bmc.events.offered = True
bmc.events.does = "floods"
await bmc.events.say("Critical")
"""

import asyncio
import json
from contextlib import suppress
from typing import Any

from aiohttp import web

from tests.real.redfish_resources import SYSTEM, error

EVENTS, STREAM = "/redfish/v1/EventService", "/redfish/v1/EventService/SSE"


class RedfishEvents:
    """The event service of one BMC."""

    def __init__(self) -> None:
        self.offered = False  # an EventService with a stream of events
        self.does = "well"  # or "hangs", "closes", "floods", "refuses", "leads away", "shows a page"
        self.stream_url = STREAM
        self.begun = 0  # streams that were asked for
        self._streams: set[web.StreamResponse] = set()
        self._end = asyncio.Event()

    @property
    def listeners(self) -> int:
        """How many hear its events."""
        return len(self._streams)

    async def say(self, severity: str, *, kind: str = "Alert", ends: str = "\n") -> None:
        """Sends an event to those who hear its stream (DSP0266, "Server-sent events"; DSP0268, Event)."""
        event = {
            "@odata.type": "#Event.v1_7_0.Event",
            "Id": "1",
            "Name": "Event Array",
            "Events": [
                {
                    "EventType": kind,
                    "EventId": "1",
                    "MemberId": "0",
                    "EventTimestamp": "2026-11-30T10:14:00+00:00",
                    "Severity": severity,
                    "MessageSeverity": severity,
                    "Message": "something is so",
                    "MessageId": "Platform.1.0.Something",
                    "OriginOfCondition": {"@odata.id": f"{SYSTEM}/Memory/9"},
                }
            ],
        }
        if kind == "MetricReport":
            event = {"@odata.type": "#MetricReport.v1_4_2.MetricReport", "Id": "1", "MetricValues": []}
        lines = ["id: 1", *(f"data: {line}" for line in json.dumps(event, indent=1).splitlines()), "", ""]
        for one in list(self._streams):
            await one.write(ends.join(lines).encode())

    def hang_up(self) -> None:
        """Ends all streams; new ones may begin."""
        self._end.set()
        self._end = asyncio.Event()

    def close(self) -> None:
        """Ends all streams, those that begin later too."""
        self._end.set()

    def service(self) -> dict[str, Any]:
        """The resource that says where the stream is."""
        return {
            "Id": "EventService",
            "ServiceEnabled": True,
            "ServerSentEventUri": self.stream_url,
            "Subscriptions": {"@odata.id": f"{EVENTS}/Subscriptions"},
        }

    async def stream(self, request: web.Request) -> web.StreamResponse:
        """Answers a request for the stream, until somebody ends it."""
        self.begun += 1
        if self.does == "refuses":
            return error(403, "no more streams")
        if self.does == "leads away":
            return web.Response(status=302, headers={"Location": f"{request.url.origin()}/elsewhere"})
        if self.does == "shows a page":
            return web.Response(text="<html>", content_type="text/html")
        if self.does == "hangs":
            await self._end.wait()
        answer = web.StreamResponse(
            headers={"Content-Type": "text/event-stream", "Cache-Control": "no-store"}
        )
        await answer.prepare(request)
        await answer.write(b": stream keep-alive\n\n")
        ends = self._end
        self._streams.add(answer)
        try:
            while self.does == "well" and not ends.is_set() and request.transport is not None:
                with suppress(TimeoutError):
                    await asyncio.wait_for(ends.wait(), 0.05)
            while self.does == "floods" and not ends.is_set():
                await self.say("Critical")
                await asyncio.sleep(0)
        except ConnectionError:
            pass  # nobody reads on
        finally:
            self._streams.discard(answer)
        return answer
