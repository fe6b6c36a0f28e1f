"""What the command line says where no brain answers."""

from agent.contract.inert import inert
from agent.shared import reasons, unit_start
from agent.shared.unit_start import UnitStart
from agent.shared.words import language, t
from brain import sentences

_ON_THE_WAY = (reasons.Trouble.NO_WAY, reasons.Trouble.NO_ANSWER, reasons.Trouble.UNKNOWN_NAME)


def why(url: str, error: Exception, *, local: bool) -> str:
    """Why nobody answers at an address, and who must do what. `local`: it is one of this machine."""
    reason = inert(sentences.told(reasons.what(error), language()))
    if reasons.trouble(error) in _ON_THE_WAY:
        return t(
            "nothing comes from {url} ({reason}): look whether that machine and its brain are up, and at the network and "
            "the firewalls between; or set --url or GPUWARD_URL to where the brain is",
            url=url,
            reason=reason,
        )
    if local and unit_start.at_boot("gpuward.service") is not UnitStart.NONE:
        return t(
            "no brain answers at {url} ({reason}): `gpuward doctor` says why; where somebody has stopped it, start it: "
            "`systemctl start gpuward`. Or set --url or GPUWARD_URL",
            url=url,
            reason=reason,
        )
    return t(
        "no brain answers at {url} ({reason}): start one with `gpuward up` or `gpuward run`, or "
        "set --url or GPUWARD_URL",
        url=url,
        reason=reason,
    )
