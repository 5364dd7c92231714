"""Which rows belong to which subscription: id -> first row, and each row's next."""

from __future__ import annotations

import numpy as np

from nearcast.arrays.growable import grown
from nearcast.arrays.intmap import ABSENT, IntMap, IntMapArrays
from nearcast.arrays.jit import kernel
from nearcast.arrays.ragged import starts_of

NO_ROW = -1


class Owners:
    """Chains of rows by subscription id. The next-row array exists only once some subscription has two rows."""

    def __init__(self) -> None:
        self._first = IntMap()
        self._next = np.empty(0, np.int32)

    def __len__(self) -> int:
        return self._first.size

    @property
    def nbytes(self) -> int:
        return self._first.nbytes + int(self._next.nbytes)

    def add(self, owner_ids: np.ndarray, rows: np.ndarray, high: int) -> np.ndarray:
        """File new rows under their ids (neighbours of one id make a chain); return the rows that are in a chain."""
        if len(rows) == 1 and not len(self._next):
            self._first.put(owner_ids, rows)
            return rows[:0]
        follows = np.zeros(len(rows), bool)
        follows[1:] = owner_ids[1:] == owner_ids[:-1]
        self._first.put(owner_ids[~follows], rows[~follows])
        if len(self._next) or follows.any():
            self._next = grown(self._next, high, fill=NO_ROW)
            self._next[rows] = NO_ROW
            self._next[rows[:-1][follows[1:]]] = rows[1:][follows[1:]]
        in_chain = follows.copy()
        in_chain[:-1] |= follows[1:]
        return np.asarray(rows[in_chain])

    def rows(self, ids: np.ndarray) -> np.ndarray:
        """All rows of these ids, each once; ids must not repeat. Unknown ids give none."""
        firsts: np.ndarray = self._first.get(ids)
        if len(ids) == 1 and firsts.item(0) == ABSENT:
            return firsts[:0]  # most new subscriptions
        firsts = np.asarray(firsts[firsts != ABSENT])
        if not len(self._next):
            return firsts
        starts = starts_of(_chain_lengths(self._next, firsts))
        out: np.ndarray = np.empty(starts[-1], np.int32)
        _fill_chains(self._next, firsts, starts, out)
        return out

    def remove(self, ids: np.ndarray) -> None:
        self._first.remove(ids)

    def state(self) -> dict[str, np.ndarray]:
        return {
            "owner_keys": self._first.arrays.keys,
            "owner_rows": self._first.arrays.values,
            "owner_next": self._next,
        }

    @classmethod
    def restored(cls, arrays: dict[str, np.ndarray]) -> Owners:
        made = cls()
        made._first = IntMap.from_arrays(IntMapArrays(arrays["owner_keys"], arrays["owner_rows"]))
        made._next = arrays["owner_next"]
        return made


@kernel
def _chain_lengths(next_rows, firsts):
    lengths = np.zeros(len(firsts), np.int64)
    for i in range(len(firsts)):
        row = firsts[i]
        while row != NO_ROW:
            lengths[i] += 1
            row = next_rows[row]
    return lengths


@kernel
def _fill_chains(next_rows, firsts, starts, out):
    for i in range(len(firsts)):
        row = firsts[i]
        for k in range(starts[i], starts[i + 1]):
            out[k] = row
            row = next_rows[row]
