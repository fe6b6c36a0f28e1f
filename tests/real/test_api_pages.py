"""What a console's pages ask of a real brain, each in one request."""

from pathlib import Path

import pytest

from tests.real.brain_kit import lab

pytestmark = pytest.mark.component("nats-server")


async def test_a_fault_is_on_the_map_and_in_the_figures_of_its_rule(tmp_path: Path) -> None:
    """Now, and of a past time as far as there is history; its rule has a source and its runbook a ladder."""
    async with lab(tmp_path) as whole:
        node = await whole.node("n1")
        await node.event("gpu.xid", "gpu/0000:3b:00", code=79)
        (incident,) = (
            await whole.until(lambda found: found["incidents"], "an incident", "/api/v1/incidents")
        )["incidents"]
        found = await whole.until(lambda found: found["incidents"]["id"], "it is on the map", "/api/v1/fleet")
        assert (found["names"], found["incidents"]["id"], found["cards"]["card"]) == (
            ["n1"],
            [incident["id"]],
            ["0000:3b:00"],
        )
        assert found["words"][found["state"][0]] in ("suspect", "healing", "needs_human")
        early = await whole.get(f"/api/v1/fleet?at={found['since'] - 5}")
        assert (early["status"], "before the history" in early["detail"]) == (400, True)
        first = await whole.get(f"/api/v1/fleet?at={found['since']}")
        assert (first["incidents"]["id"], first["words"][first["state"][0]]) == ([], "well")
        assert (await whole.get("/api/v1/fleet?at=99999999999"))["at"] is None
        rule = await whole.get(f"/api/v1/rules/{incident['rule']}")
        assert rule["source"].startswith("rules/")
        listed = (await whole.get("/api/v1/rules?limit=3"))["rules"]
        assert [one["name"] for one in listed] == sorted(
            one["name"] for one in (await whole.get("/api/v1/rules"))["rules"]
        )[:3]
        assert (await whole.get(f"/api/v1/rules?name={rule['name']}"))["rules"][0]["cause"] == rule["cause"]
        assert incident["rule"] in (await whole.get(f"/api/v1/runbooks/{rule['runbook']}"))["rules"]
        await whole.say("mode", runbook=rule["runbook"], mode="approve")
        book = await whole.get(f"/api/v1/runbooks/{rule['runbook']}")
        assert (book["modes"][-1]["who"], book["modes"][-1]["mode"]) == ("ann", "approve")
        assert book["modes"][-1]["at"]
        assert book["source"].startswith(f"runbooks/{rule['runbook']}.yaml:")
        assert {
            (await whole.get(path))["status"] for path in ("/api/v1/rules/none", "/api/v1/runbooks/none")
        } == {404}
