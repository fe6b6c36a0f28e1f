"""Operator commands, and the runs that operators and schedules start."""
