"""Where ranked rows lie that are found by words wherever a message is: under each of their key words.

The plan gives a word a *code*. A number below that of the shards is the one shard of its rows. Words that many messages
have would bring them all there, so such a word has a *span* of neighbouring shards (past the last comes the first):
each holds all of its rows, and a message visits one of them; where the span is all shards, every message is there
already. Words that too many rows have for that are *spread*: each shard holds some of the rows, and a message visits
all. A word without a code goes by its hash.
"""

from __future__ import annotations

import numpy as np

from nearcast.arrays.intmap import ABSENT, find
from nearcast.arrays.jit import kernel
from nearcast.sharding.routing.areas import EVERYWHERE_AREA, NO_KEY, mix_hash

SPREAD_OVER_ALL = 0
"""In place of the size of a span: each shard holds some of the rows."""

MOST_SHARDS = 46_000
"""For which the codes of spans fit in 31 bits."""

_FIRST_FILED = -2  # words are filed under numbers from here down: all other keys, and NO_KEY, are above


@kernel
def code_of_span(first, size, n_shards):
    """From n_shards + 1 on: n_shards itself stands for something else among keys of rows that go by place."""
    return n_shards + 1 + first * (n_shards + 1) + size


@kernel
def shards_of_word(placements, n_shards, word):
    """(first shard, size of the span: 1 is one shard), by the word's hash."""
    filed = filed_word(word)
    code = np.int64(find(placements, filed))
    if code == ABSENT:
        return (_FIRST_FILED - filed) % n_shards, np.int64(1)
    if code < n_shards:
        return code, np.int64(1)
    return span_of(code, n_shards)


@kernel
def span_of(code, n_shards):
    """(first shard, size) of a code that is not that of one shard."""
    rest = code - n_shards - 1
    return rest // (n_shards + 1), rest % (n_shards + 1)


@kernel
def filed_word(word):
    """The number under which a word is filed, by its hash."""
    return _FIRST_FILED - (mix_hash(word, EVERYWHERE_AREA) >> 1)


@kernel
def file_words(words):
    """int64[n]: the same of many."""
    out = np.empty(len(words), np.int64)
    for k in range(len(words)):
        out[k] = filed_word(words[k])
    return out


def are_words(filed: np.ndarray) -> np.ndarray:
    """bool[n]: which numbers are those of words."""
    return np.asarray(filed <= _FIRST_FILED)


@kernel
def file_by_words(placements, n_shards, rows, owners, words):
    """int64[k,3]: (row, shard, filed word, or NO_KEY where all shards hold the row) for each row and word of its."""
    out = np.empty((len(words) + n_shards, 3), np.int64)
    n = 0
    for k in range(len(words)):
        first, size = shards_of_word(placements, n_shards, words[k])
        filed = NO_KEY if size == n_shards else filed_word(words[k])
        if size == SPREAD_OVER_ALL:
            first, size = mix_hash(owners[k], words[k]) % n_shards, np.int64(1)
        if n + size > len(out):
            larger = np.empty((2 * len(out) + n_shards, 3), np.int64)
            larger[:n] = out[:n]
            out = larger
        for at in range(size):
            out[n, 0] = rows[k]
            out[n, 1] = (first + at) % n_shards
            out[n, 2] = filed
            n += 1
    return out[:n].copy()
