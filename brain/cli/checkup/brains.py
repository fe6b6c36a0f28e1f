"""The brains of a cell: do those that are connected have alike what they must have alike?"""

from collections import Counter
from collections.abc import AsyncIterator, Mapping

from nats.aio.client import Client

from agent.shared.words import t
from brain.adapters import brain_settings
from brain.adapters.brain_settings import Settings
from brain.cli.checkup.lines import HealthLine, ok, some, warn
from brain.config import BrainConfig

ANSWER_S = 1.0


async def brains(client: Client, config: BrainConfig) -> AsyncIterator[HealthLine]:
    """A line for each brain that runs with other values than this brain.toml has, also for its own that was not restarted."""
    name, ours = "brains", brain_settings.of(config)
    answers = await brain_settings.told(client, config.cell, within_s=ANSWER_S)
    told = dict(answers)
    for brain, many in sorted(Counter(one for one, _ in answers).items()):
        if many > 1:
            yield warn(
                name,
                t("{many} brains that run are called {brain}", many=many, brain=brain),
                t(
                    "give each brain of the cell a name of its own (`brain` in brain.toml, and restart it). Where one backup was "
                    "restored on two machines, say `systemctl disable --now gpuward` on one of them"
                ),
            )
    other = {
        brain: differing for brain, theirs in sorted(told.items()) if (differing := _other(theirs, ours))
    }
    for brain, keys in other.items():
        yield warn(
            name,
            t(
                "{brain} runs with {theirs}, and this brain.toml says {ours}",
                brain=brain,
                theirs=_shown(keys, told[brain]),
                ours=_shown(keys, ours),
            ),
            t(
                "write the same into brain.toml of each brain of the cell, and restart those that run with something else: "
                "`systemctl restart gpuward`"
            ),
        )
    if len(told) > 1 and not other and len(told) == len(answers):
        yield ok(
            name, t("{brains} have the same [log], [evidence] and nats.replicas", brains=some(sorted(told)))
        )


def _other(theirs: Settings, ours: Settings) -> list[str]:
    """Keys whose values differ; one that another version does not tell is none of them."""
    return [key for key, value in ours.items() if theirs.get(key, value) != value]


def _shown(keys: list[str], settings: Mapping[str, float]) -> str:
    return ", ".join(f"{key} = {settings[key]:.15g}" for key in keys)
