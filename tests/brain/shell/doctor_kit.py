"""An installation for the checks of the doctor, what a brain answers, and what a check says."""

from collections.abc import AsyncIterator, Iterator, Mapping
from pathlib import Path
from typing import Any

from agent import __version__
from brain import config as brain_config
from brain.cli.checkup.installation import BrainAnswers, Installation
from brain.cli.checkup.lines import Health, HealthLine

NOW = 1_790_000_000.0
DAY_S = 86_400.0
NOBODY = "http://127.0.0.1:1"


def site(folder: Path, *, brain: BrainAnswers | None = None, now: float = NOW, **keys_: Any) -> Installation:
    """An installation with these keys of brain.toml, and a data folder as the brain would have made it."""
    data = folder / "data"
    data.mkdir(mode=0o750, exist_ok=True)
    (data / "cell").mkdir(mode=0o750, exist_ok=True)
    found = brain_config.parse({"data_dir": str(data)} | keys_, "brain.toml", folder)
    return Installation(
        file=None, config=found, warnings=(), brain=brain, silent_why="refused", login=False, now=now
    )


def node(name: str, **more: Any) -> dict[str, Any]:
    """What `/api/v1/nodes` says of a node that is well."""
    return {"name": name, "alive": True, "version": __version__, "dropped": 0, "clock_ahead_s": 0.01} | more


def answers(*nodes: Mapping[str, Any], here: bool = False, **more: Any) -> BrainAnswers:
    """What a brain says that leads, with these nodes. `here`: it runs on this machine."""
    status = {
        "brain": "b1", "version": __version__, "cell": "default", "leads": True, "leader": "b1", "stopped": "",
        "troubles": [], "modes": [], "holds": [], "pack": "", "rules": 1, "runbooks": 1,
    }  # fmt: skip
    return BrainAnswers(status=status | more, nodes=nodes, here=here)


def lines(found: Iterator[HealthLine], health: Health, check: str = "") -> list[str]:
    """`text → action` of the lines with this health, and about this."""
    return [
        f"{one.text} → {one.action}" for one in found if one.health is health and check in ("", one.check)
    ]


async def gathered(found: AsyncIterator[HealthLine]) -> Iterator[HealthLine]:
    """The same of a check that asks others."""
    return iter([line async for line in found])


PUBLIC = "UDXU4RCSJNZOIQHZNWXHXORDPRTGNJAHAHFRGZNEEJCPQTT2M7NLCNF4"
