"""Counters over time, of the exporters that a site has: asked of its Prometheus."""
