"""What evidence about the network holds, by the real `ip`, `nft` and `rdma` in a namespace of its own."""

import asyncio
import json
import shutil
import subprocess
from pathlib import Path

import pytest

from agent.actions.base import Done
from agent.actions.bundle_folder import BundleFolder
from agent.actions.evidence_collect import EvidenceCollect
from agent.actions.evidence_tools import EvidenceTools
from tests.agent.test_evidence import members
from tests.agent.uplink_kit import Clock, FakeHost
from tests.real.netns import missing, namespace

pytestmark = [pytest.mark.root, pytest.mark.component("nftables")]
RULES = "table inet lab { chain input { type filter hook input priority 0; udp dport 4791 drop; }; }"


@pytest.mark.skipif(bool(missing()), reason=missing() or "-")
def test_a_firewall_that_drops_rdma_is_in_the_evidence(tmp_path: Path) -> None:
    """RoCE's port is dropped by a rule: the bundle shows the rule, the links with their counters, and how each tool
    went; what is not there was not asked."""
    there = {name: path for name in ("ip", "rdma", "nft") if (path := shutil.which(name))}
    if "nft" not in there:
        pytest.skip("needs apt-get install nftables")
    tools = EvidenceTools(paths=there | {"nvidia-smi": "/nowhere/nvidia-smi"})
    host = FakeHost(Clock())
    action = EvidenceCollect(host, BundleFolder(host, tmp_path), tools)

    async def collect() -> tuple[list[str], Done]:
        params = {"component": "link/va"}
        return await action.plan(params), await action.run(params)

    with namespace() as lab:
        lab.ip("link", "add", "va", "type", "veth", "peer", "name", "vb")
        with lab.inside():
            subprocess.run([there["nft"], "-f", "-"], input=RULES, text=True, check=True)
            planned, done = asyncio.run(collect())
    assert f"{there['nft']} list ruleset" in planned
    files = members(tmp_path, done.evidence)
    assert b"udp dport 4791 drop" in files["tools/nft-ruleset.txt"]
    assert b"va@vb" in files["tools/ip-link.txt"]
    assert b"RX:" in files["tools/ip-link.txt"]
    how = json.loads(files["about.json"])["tools"]
    assert how["ip -s -d link"] == how["nft list ruleset"] == "ok"
    assert set(how) == {" ".join([Path(line.split()[0]).name, *line.split()[1:]]) for line in planned[1:]}
    assert done.evidence_bytes == (tmp_path / done.evidence).stat().st_size
