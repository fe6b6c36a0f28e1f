"""NVML, in processes of its own: a call into a sick driver may never return, and then only the child is lost."""
