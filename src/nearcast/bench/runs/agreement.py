"""Comparison of answers: all methods must find the same pairs on the messages that they have in common."""

from __future__ import annotations

import hashlib

import numpy as np

from nearcast.arrays.jit import kernel
from nearcast.errors import NearcastError
from nearcast.model import Hits


class Disagreement(NearcastError):
    """Two methods gave different answers, so the measurements of the run are worthless."""


def sorted_hits(hits: Hits) -> Hits:
    """The hits with the rows of each message ascending. Repeats stay, so that they are detected as faults."""
    rows = np.array(hits.rows)
    _sort_each(rows, hits.starts)
    return Hits(rows, hits.starts)


@kernel
def _sort_each(rows, starts):
    for i in range(len(starts) - 1):
        rows[starts[i] : starts[i + 1]].sort()


def digest(found: Hits) -> str:
    """A hash of the sorted (message, row) pairs, for comparing runs."""
    pairs = b"".join(array.astype(np.int64).tobytes() for array in (found.starts, found.rows))
    return hashlib.blake2b(pairs, digest_size=8).hexdigest()


def require_agreement(found: dict[str, Hits], what: str) -> None:
    """Raise Disagreement at the first difference. Hits are sorted; some methods may have had fewer messages."""
    reference = max(found, key=lambda name: (len(found[name].starts), name == "brute"))
    theirs = found[reference]
    for name, mine in found.items():
        n = len(mine.starts) - 1
        same_counts = np.array_equal(mine.starts, theirs.starts[: n + 1])
        if not (same_counts and np.array_equal(mine.rows, theirs.rows[: theirs.starts[n]])):
            raise Disagreement(_difference(name, reference, found, what))


def _difference(name: str, reference: str, found: dict[str, Hits], what: str) -> str:
    mine, theirs = found[name], found[reference]
    for message in range(len(mine.starts) - 1):
        a = mine.rows[mine.starts[message] : mine.starts[message + 1]]
        b = theirs.rows[theirs.starts[message] : theirs.starts[message + 1]]
        if not np.array_equal(a, b):
            break
    repeated = np.unique(a[:-1][a[1:] == a[:-1]])
    missing, extra = np.setdiff1d(b, a), np.setdiff1d(a, b)
    return (
        f"'{name}' and '{reference}' disagree on {what}, message {message}: "
        f"{len(a)} against {len(b)} subscriptions; "
        f"only '{reference}' has {missing[:5].tolist()}, only '{name}' has {extra[:5].tolist()}, "
        f"'{name}' repeats {repeated[:5].tolist()}"
    )
