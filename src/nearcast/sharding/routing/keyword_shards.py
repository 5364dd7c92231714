"""Routing by keyword: the shards of ranked rows that keywords alone can deliver, wherever the message is.

Such a row is stored under each of its keywords. The shard plan gives a keyword a *code*. A code below the number of
shards is the one shard of the keyword's rows. A keyword that many messages contain would bring all of them to one
shard, so it gets a *span* of neighbouring shards (the first follows the last): each of them stores all rows, and a
message visits one of them. If the span is all shards, no message needs an extra visit. If a keyword has too many rows
for a span, its rows are *spread*: each shard stores some of them, and a message visits all shards. A keyword without a
code goes to a shard by its hash.
"""

from __future__ import annotations

import numpy as np

from nearcast.arrays.intmap import ABSENT, find
from nearcast.arrays.jit import kernel
from nearcast.sharding.routing.areas import EVERYWHERE_AREA, NO_KEY, mix_hash

SPREAD_OVER_ALL = 0
"""In place of the size of a span: each shard stores some of the rows."""

MOST_SHARDS = 46_000
"""Up to this number of shards, the codes of spans fit in 31 bits."""

_FIRST_FILED = -2  # keywords are filed under numbers from here down; all other keys, and NO_KEY, are above


@kernel
def code_of_span(first, size, n_shards):
    """The code of a span, at least n_shards + 1: n_shards itself means "not divided" for keys of rows by place."""
    return n_shards + 1 + first * (n_shards + 1) + size


@kernel
def shards_of_keyword(placements, n_shards, keyword):
    """(first shard, size of the span) of a keyword, given by its hash."""
    filed = filed_keyword(keyword)
    code = np.int64(find(placements, filed))
    if code == ABSENT:
        return (_FIRST_FILED - filed) % n_shards, np.int64(1)
    if code < n_shards:
        return code, np.int64(1)
    return span_of(code, n_shards)


@kernel
def span_of(code, n_shards):
    """(first shard, size) of the code of a span."""
    rest = code - n_shards - 1
    return rest // (n_shards + 1), rest % (n_shards + 1)


@kernel
def filed_keyword(keyword):
    """The number under which a keyword is filed, from its hash."""
    return _FIRST_FILED - (mix_hash(keyword, EVERYWHERE_AREA) >> 1)


@kernel
def file_keywords(keywords):
    """int64[n]: the numbers under which keywords are filed."""
    out = np.empty(len(keywords), np.int64)
    for k in range(len(keywords)):
        out[k] = filed_keyword(keywords[k])
    return out


def are_keywords(filed: np.ndarray) -> np.ndarray:
    """bool[n]: which filed numbers are keywords."""
    return np.asarray(filed <= _FIRST_FILED)


@kernel
def file_by_keyword(placements, n_shards, rows, owners, keywords):
    """int64[k,3]: (row, shard, filed keyword or, where all shards store the row, NO_KEY) for each row and keyword."""
    out = np.empty((len(keywords) + n_shards, 3), np.int64)
    n = 0
    for k in range(len(keywords)):
        first, size = shards_of_keyword(placements, n_shards, keywords[k])
        filed = NO_KEY if size == n_shards else filed_keyword(keywords[k])
        if size == SPREAD_OVER_ALL:
            first, size = mix_hash(owners[k], keywords[k]) % n_shards, np.int64(1)
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
