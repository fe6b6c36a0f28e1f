"""Slurm with our Prolog and Epilog, as docs/slurm.md has them: `slurm_cluster.cluster(CONF)`, then `install`."""

import sys
from collections.abc import Mapping
from pathlib import Path

from tests.real.slurm_cluster import Cluster

ROOT = Path(__file__).resolve().parents[2]
SCRIPTS = ROOT / "deploy/slurm"
# A job whose Prolog has failed is not held.
CONF = """Prolog=@LAB@/prolog.sh
Epilog=@LAB@/epilog.sh
HealthCheckProgram=@LAB@/healthcheck.sh
HealthCheckInterval=2
SchedulerParameters=sched_interval=1,bf_interval=1,batch_sched_delay=0,sched_min_interval=0,nohold_on_prolog_fail
"""


def install(cluster: Cluster, sockets: Mapping[str, Path], *, most_percent: int = 10) -> Path:
    """Where each node's agent answers. All nodes are this machine, so the command asks that of the node whose Prolog it is.

    Returns the command.
    """
    cases = "".join(f"{node}) socket={socket} ;;\n" for node, socket in sockets.items())
    command = _script(
        cluster.folder / "gpuward-agent",
        f"socket=/nowhere\ncase ${{SLURMD_NODENAME:-gpu1}} in\n{cases}esac\n"
        f'cd {ROOT} && exec {sys.executable} -m agent "$@" --socket "$socket" --timeout 4s',
    )
    for name in ("prolog.sh", "epilog.sh", "healthcheck.sh"):
        # What a site would write at the top of the script. Others' syslog is none of ours.
        _script(
            cluster.folder / name,
            f"export GPUWARD_AGENT={command} GPUWARD_MOST_PERCENT={most_percent}\n"
            f"export GPUWARD_PATH={cluster.folder}/bin:/usr/sbin:/usr/bin:/sbin:/bin\n"
            f"exec {SCRIPTS / name}",
        )
    (cluster.folder / "bin").mkdir()
    _script(cluster.folder / "bin/logger", f'echo "$*" >> {cluster.folder}/log/syslog')
    return command


def syslog(cluster: Cluster) -> str:
    """What the scripts have said."""
    path = cluster.folder / "log/syslog"
    return path.read_text() if path.exists() else ""


def _script(path: Path, text: str) -> Path:
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return path
