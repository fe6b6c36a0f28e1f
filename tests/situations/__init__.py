"""Situations that a fleet gets into, and what an on-call engineer expects of gpuward in each: `python -m tests.situations`.

A situation is data: a timeline of what happens to simulated machines and of what people do, and what is expected of it.
The real engine plays it in virtual time with the shipped rules and runbooks in auto mode. docs/safety.md is written from it.
"""
