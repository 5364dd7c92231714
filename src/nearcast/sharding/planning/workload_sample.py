"""What the plan of the shards is made from: samples, what they match, and what that costs."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from nearcast.model import MessageBatch, RowBatch
from nearcast.sharding.planning.costs import MATCH_NS, MESSAGE_NS, TERM_NS
from nearcast.sharding.planning.keyword_routing import RoutedKeywords
from nearcast.text.vocabulary import Vocabulary


class WorkloadSample(NamedTuple):
    """Subscriptions, messages, and which concern which."""

    rows: RowBatch
    messages: MessageBatch  # the terms are the vocabulary's
    vocabulary: Vocabulary
    match_rows: np.ndarray  # int64[...]  a row of the subscription, for each match
    match_starts: np.ndarray  # int64[n+1]  where each message's matches start
    scale: float  # how many subscriptions each one of the sample stands for
    keywords: RoutedKeywords

    def costs(self, counts: np.ndarray) -> np.ndarray:
        """float64[n]: the nanoseconds of each message, with the matches of those rows that count."""
        n_before = np.concatenate([[0], np.cumsum(counts[self.match_rows])])
        matches = n_before[self.match_starts[1:]] - n_before[self.match_starts[:-1]]
        return message_costs(np.diff(self.messages.term_starts), matches * self.scale)

    @property
    def visit_ns(self) -> np.ndarray:
        """float64[n]: what a visit of each message costs before anything is found."""
        return message_costs(np.diff(self.messages.term_starts), np.zeros(self.messages.size))


def message_costs(n_terms: np.ndarray, n_matches: np.ndarray) -> np.ndarray:
    return np.asarray(MESSAGE_NS + TERM_NS * n_terms + MATCH_NS * n_matches)
