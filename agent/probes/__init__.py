"""Probes between the agents of a fleet over the data network. Loaded only where `probe_hosts` is set."""
