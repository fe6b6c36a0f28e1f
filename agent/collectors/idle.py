"""For how long a GPU must look unused until it is reported. Not a collector; a part of stuck and gpu_use."""

from dataclasses import dataclass

from agent.options import option

GAP_S = 60.0  # a longer pause between samples (NVML hung) was not watched: the window starts again
REPEAT_S = 300.0  # what lasts is reported again


@dataclass(frozen=True, slots=True, kw_only=True)
class IdleOptions:
    """What an operator can set; the collectors stuck and gpu_use share it."""

    idle_window_s: float = option(
        600.0, "how long a held GPU must show zero utilisation to be reported", unit="s", least=1
    )
