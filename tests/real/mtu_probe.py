"""Runs mtu.set inside a network namespace (`ip netns exec`) and prints what came of each story, as one JSON list.

python -m tests.real.mtu_probe '[["run", COMPONENT, PEER, MTU], ...]'
"""

import asyncio
import json
import sys

from agent.actions.mtu_set import MtuSet
from agent.contract.errors import ActionError
from agent.host import Host


async def one(what: str, component: str, peer: str, mtu: int) -> dict[str, object]:
    """The outcome of one story."""
    host, _, port = peer.rpartition(":")
    action = MtuSet(Host(), lambda: (host, int(port)) if host else None)
    params: dict[str, str | int] = {"link": component, "mtu": mtu}
    try:
        if what == "plan":
            return {"plan": await action.plan(params)}
        return {"done": (await action.run(params)).text}
    except ActionError as error:
        return {"error": type(error).__name__, "why": str(error)}


if __name__ == "__main__":
    print(json.dumps([asyncio.run(one(*story)) for story in json.loads(sys.argv[1])]))
