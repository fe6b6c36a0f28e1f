"""Runs link.bounce inside a network namespace (`ip netns exec`) and prints what came of it, one JSON line.

python -m tests.real.link_probe run|plan|cancel|recover COMPONENT PEER [DOWN_S]
"""

import asyncio
import json
import sys

from agent.actions.link_bounce import LinkBounce
from agent.contract.errors import ActionError
from agent.host import Host


async def main(what: str, component: str, peer: str, down_s: float) -> dict[str, object]:
    """The outcome."""
    host, _, port = peer.rpartition(":")
    action = LinkBounce(Host(), lambda: (host, int(port)) if host else None, carrier_s=1.5)
    params: dict[str, str | float] = {"link": component, "down_s": down_s}
    try:
        if what == "plan":
            return {"plan": await action.plan(params)}
        if what == "recover":
            await action.recover(params)
            return {"recovered": True}
        if what == "cancel":
            loop = asyncio.get_running_loop()
            began_s = loop.time()
            try:
                async with asyncio.timeout(0.3):
                    await action.run(params)
            except TimeoutError:
                return {"cancelled in the pause": loop.time() - began_s < down_s}
        return {"done": (await action.run(params)).text}
    except ActionError as error:
        return {"error": type(error).__name__, "why": str(error)}


if __name__ == "__main__":
    print(json.dumps(asyncio.run(main(sys.argv[1], sys.argv[2], sys.argv[3], float(sys.argv[4])))))
