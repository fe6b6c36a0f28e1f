"""Paging: who is paged, when and how often; alert groups in a storm; delivery queues that lose no page."""
