"""Nanoseconds that things are taken to cost when shards are planned: estimates, not fitted; their ratios count."""

from __future__ import annotations

MESSAGE_NS, TERM_NS, MATCH_NS = 1_500.0, 60.0, 20.0

RANKED_NS = 2.0
"""For each ranked row under a word of a message."""
