"""Runs of runbooks: rung by rung, through the gates, verified, back into service."""
