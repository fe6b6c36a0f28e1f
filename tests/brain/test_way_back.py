"""The way back into service, requests, schedules, approvals that lapse, cancelled steps, gates of issue four."""
