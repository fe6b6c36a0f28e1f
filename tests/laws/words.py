"""What operators say, sense or nonsense."""

import random

from agent.contract.messages import Scalar
from brain.core.pack.spec import Pack
from brain.core.state import State

_VERBS = {
    "hold": 3,
    "release": 2,
    "approve": 5,
    "deny": 1,
    "ack": 2,
    "close": 2,
    "mode": 2,
    "return": 2,
    "forget": 0.5,
    "start": 2,
    "reset": 1,
    "sing": 0.3,
}


def said(chance: random.Random, state: State, pack: Pack, node: str) -> tuple[str, dict[str, Scalar]]:
    """A verb and its arguments; `node` is one that it may be about."""
    ids = [
        *list(state.incidents)[:20],
        *list(state.runs)[:20],
        *list(state.alert_groups)[:5],
        "inc-nobody",
    ]
    waiting = [run.id for run in state.runs.values() if run.state == "approval"]
    runbooks = [one.name for one in pack.runbooks]
    verb = chance.choices(list(_VERBS), list(_VERBS.values()))[0]
    args: dict[str, Scalar] = {"id": chance.choice(waiting if verb == "approve" and waiting else ids)}
    if verb in ("hold", "release"):
        args = {"scope": chance.choice((f"node/{node}", "leaf/l1", "rack/r0", "all", "cell"))}
        if verb == "hold":
            args |= {"why": "because"} | (
                {"for_s": chance.choice((60, 1200))} if chance.random() < 0.7 else {}
            )
    elif verb == "mode":
        args = {
            "runbook": chance.choice([*runbooks, "*"]),
            "mode": chance.choice(("observe", "approve", "auto")),
        }
        args |= {"nodes": chance.choice(("*", "n00*", node))} if chance.random() < 0.5 else {}
    elif verb == "return":
        args = {"node": node}
    elif verb == "forget":  # `revoked`: as the brain says it itself
        args = {"node": node} | ({"revoked": True} if chance.random() < 0.4 else {})
    elif verb == "start":
        args = {"runbook": chance.choice(runbooks), "node": node, "why": "a look"}
    elif verb == "reset":
        args = {}
    return verb, args
