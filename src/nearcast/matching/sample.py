"""A few messages that stand for many."""

from __future__ import annotations

import numpy as np

from nearcast.arrays.ragged import take
from nearcast.model import MessageBatch


def few_of(messages: MessageBatch, most: int) -> MessageBatch:
    """A copy of at most so many of them, from all over the batch."""
    n = min(most, messages.size)
    order = np.arange(n) * messages.size // max(1, n)
    terms, starts = take(messages.terms, messages.term_starts, order)
    return MessageBatch(messages.ids[order], terms, starts, messages.boxes[order], messages.times[order])
