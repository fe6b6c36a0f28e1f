"""Kinds that are heard in the kernel log alone (GPUs' own are in gpu.py)."""

from agent.contract.kinds.base import Kind

KINDS: tuple[Kind, ...] = ()
