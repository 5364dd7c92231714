"""Samples of messages."""

from __future__ import annotations

import numpy as np

from nearcast.arrays.ragged import take
from nearcast.model import MessageBatch


def sample_messages(messages: MessageBatch, most: int) -> MessageBatch:
    """A copy of at most `most` messages, evenly spaced over the batch."""
    n = min(most, messages.size)
    order = np.arange(n) * messages.size // max(1, n)
    terms, starts = take(messages.terms, messages.term_starts, order)
    return MessageBatch(messages.ids[order], terms, starts, messages.boxes[order], messages.times[order])
