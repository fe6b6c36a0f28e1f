"""What `gpuward-agent check` may be asked about. Imports nothing: the command's time is Python's own start."""

SOCKET = "/run/gpuward-agent/check.sock"  # where the agent answers, if its configuration says nothing else
MAX_ANSWER_BYTES = 64 * 1024

GPU = "gpu"
# Group of conditions → what is in it. Only those of the first make a node unfit where the site asks for no more.
GROUPS = {
    GPU: "GPUs and their driver: lost or missing, hung, waiting for a reset or a reboot, not in the NVSwitch fabric",
    "degraded": "GPUs that work, but not as they should: memory to replace, NVLinks or PCIe lanes missing, throttled",
    "software": "NVIDIA's user space, kernel modules beside the driver, watched services",
    "network": "InfiniBand and Ethernet: devices, ports, links, bonds",
    "storage": "file systems: hung, gone, full; NVMe disks: read-only, unreliable, silent",
    "host": "memory that runs out, pressure, the clock",
}
