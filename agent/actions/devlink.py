"""What `devlink` of iproute2 reports about a card's health, and the two remedies that it offers (devlink-health(8),
devlink-dev(8)).
"""

from dataclasses import dataclass

import orjson

from agent.contract.errors import ActionError, Refused
from agent.shared import tool

# The names that mlx5 and others give to the parts that they watch. Reporters without a recovery are not judged here.
REPORTERS = ("fw", "fw_fatal", "tx", "rx")
_SHOW_S = 10.0
_RECOVER_S = 60.0  # mlx5 waits for its firmware for up to a minute
_RELOAD_S = 90.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Reporter:
    """One part of a card whose health its driver watches."""

    # The function that it is part of, or a port of it: pci/0000:5e:00.0, pci/0000:5e:00.0/1
    handle: str
    name: str


class Devlink:
    """`path`: of the tool. Every method raises ActionError when the tool, the driver or the card refuses."""

    def __init__(self, path: str) -> None:
        self._path = path

    async def in_error(self, bdf: str) -> list[Reporter]:
        """The reporters of the PCI function (`0000:5e:00.0`) that are in error; none where the driver has none."""
        # Of all cards: to show only one, older versions require the reporter's name too.
        out = await self._run("-j", "health", "show", deadline_s=_SHOW_S)
        try:
            return [
                Reporter(handle=handle, name=row["reporter"])
                for handle, rows in orjson.loads(out or "{}").get("health", {}).items()
                # mlx5 has those of its queues at the ports: pci/0000:5e:00.0/65535.
                if handle == f"pci/{bdf}" or handle.startswith(f"pci/{bdf}/")
                for row in rows
                if row["reporter"] in REPORTERS and row.get("state") == "error"
            ]
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise ActionError(f"devlink printed something unexpected: {out[:200]!r}") from error

    async def recover(self, reporter: Reporter) -> None:
        """Makes the driver recover what the reporter watches."""
        await self._run(
            "health", "recover", reporter.handle, "reporter", reporter.name, deadline_s=_RECOVER_S
        )

    async def reload(self, bdf: str) -> None:
        """Makes the driver release the card and initialise it again; its network interfaces go and come back."""
        await self._run("dev", "reload", f"pci/{bdf}", "action", "driver_reinit", deadline_s=_RELOAD_S)

    async def _run(self, *args: str, deadline_s: float) -> str:
        try:
            ran = await tool.run([self._path, *args], deadline_s=deadline_s)
        except Refused as error:  # not installed: other ways to reset a card remain
            raise ActionError(str(error)) from error
        if ran.status != 0:
            raise ActionError(f"devlink {' '.join(args[:2])}: {ran.last_line}")
        return ran.out
