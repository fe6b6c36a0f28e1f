"""What NVIDIA's tools, container runtimes and kubelet say when a container has no GPU. Pure.

Texts: nvidia-smi (NVML's nvmlErrorString); libnvidia-container, src/cli; CDI's Go package (`unresolvable CDI devices`); Docker,
daemon/devices.go; containerd, internal/cri. An image that wants a newer CUDA (`requirement error`) is its owner's, and none of
them.
"""

import re

MARKERS = (
    "Failed to initialize NVML",
    "nvidia-container-cli: ",
    "unresolvable CDI devices nvidia.com/",
    "could not select device driver",
    "no runtime for ",
)
# What → how lines say it; the first that fits counts.
_SAID: tuple[tuple[str, re.Pattern[str]], ...] = (
    (
        "version_mismatch",
        re.compile(
            r"(?:Failed to initialize NVML: |nvidia-container-cli: .{0,80}nvml error: )[Dd]river/library version mismatch"
        ),
    ),
    (
        "driver_not_loaded",
        re.compile(
            r"(?:Failed to initialize NVML: |nvidia-container-cli: .{0,80}nvml error: )[Dd]river [Nn]ot [Ll]oaded"
        ),
    ),
    ("access_lost", re.compile(r"Failed to initialize NVML: Unknown Error")),
    ("cdi", re.compile(r"unresolvable CDI devices nvidia\.com/")),
    (
        "toolkit",
        re.compile(
            r"nvidia-container-cli: (?:initialization|detection|device|mount|ldcache|container|permission) error: "
            r'|could not select device driver "[^"]{0,40}" with capabilities: \[\[.{0,40}gpu'
            r'|no runtime for "nvidia[^"]{0,20}" is configured'
        ),
    ),
)


def no_gpu(text: str) -> str:
    """version_mismatch | driver_not_loaded | access_lost | cdi | toolkit; empty: the line says nothing of it."""
    text = text.replace('\\"', '"')  # as in a field of a structured log
    return next((what for what, said in _SAID if said.search(text)), "")
