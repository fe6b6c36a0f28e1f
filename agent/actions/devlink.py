"""What `devlink` of iproute2 says of a card's health, and the two remedies that it offers (devlink-health(8),
devlink-dev(8)).
"""

from dataclasses import dataclass

import orjson

from agent.actions import tool
from agent.contract.errors import ActionError, Refused

# What mlx5 and others call the parts that they watch; those without a recovery of their own are not ours to judge.
REPORTERS = ("fw", "fw_fatal", "tx", "rx")
_LOOK_S = 10.0
_RECOVER_S = 60.0  # mlx5 waits for its firmware for up to a minute
_RELOAD_S = 90.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Reporter:
    """One part of a card whose health its driver watches."""

    handle: str  # what it is part of: pci/0000:5e:00.0, or a port of it: pci/0000:5e:00.0/1
    name: str


class Devlink:
    """`path`: of the tool. Every method raises ActionError when the tool, the driver or the card says no."""

    def __init__(self, path: str) -> None:
        self._path = path

    async def in_error(self, bdf: str) -> list[Reporter]:
        """The reporters of the PCI function (`0000:5e:00.0`) that are in error; none where the driver has none."""
        # Of all cards: asked for one, older versions want the reporter named too.
        said = await self._run("-j", "health", "show", deadline_s=_LOOK_S)
        try:
            return [
                Reporter(handle=handle, name=row["reporter"])
                for handle, rows in orjson.loads(said or "{}").get("health", {}).items()
                # mlx5 has those of its queues at the ports: pci/0000:5e:00.0/65535.
                if handle == f"pci/{bdf}" or handle.startswith(f"pci/{bdf}/")
                for row in rows
                if row["reporter"] in REPORTERS and row.get("state") == "error"
            ]
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise ActionError(f"devlink says something else than expected: {said[:200]!r}") from error

    async def recover(self, reporter: Reporter) -> None:
        """Has the driver recover what the reporter watches."""
        await self._run(
            "health", "recover", reporter.handle, "reporter", reporter.name, deadline_s=_RECOVER_S
        )

    async def reload(self, bdf: str) -> None:
        """Has the driver give up the card and take it anew; its network interfaces go and come back."""
        await self._run("dev", "reload", f"pci/{bdf}", "action", "driver_reinit", deadline_s=_RELOAD_S)

    async def _run(self, *words: str, deadline_s: float) -> str:
        try:
            ran = await tool.run([self._path, *words], deadline_s=deadline_s)
        except Refused as error:  # not installed: of all ways to reset a card only these are not open
            raise ActionError(str(error)) from error
        if ran.status != 0:
            raise ActionError(f"devlink {' '.join(words[:2])}: {ran.says}")
        return ran.out
