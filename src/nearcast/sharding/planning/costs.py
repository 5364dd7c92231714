"""The cost model of the shard plan: estimated nanoseconds, not fitted ones. Only their ratios matter."""

from __future__ import annotations

import numpy as np

MESSAGE_NS, TERM_NS, MATCH_NS = 1_500.0, 60.0, 20.0

RANKED_NS = 2.0
"""For each ranked row stored under a keyword of a message."""


def message_costs(n_terms: np.ndarray, n_matches: np.ndarray) -> np.ndarray:
    """float64[n]: the cost of reading each message, looking up its terms and writing its matches."""
    return np.asarray(MESSAGE_NS + TERM_NS * n_terms + MATCH_NS * n_matches)
