"""The row store: numbers, and what is known of all rows."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from nearcast.geo.space import Space
from nearcast.matching.store import RowStore
from nearcast.model import NEVER, NO_SHAPE, RowBatch

UNIT = Space.of((0.0, 0.0, 1.0, 1.0))


def rows_of(ids: list[int]) -> RowBatch:
    """One term and one NOT term each, both the id."""
    n, terms, starts = len(ids), np.array(ids, np.int32), np.arange(len(ids) + 1)
    boxes = np.array(ids, np.float64)[:, None] + np.array([[0.0, 0.0, 1.0, 1.0]])
    none, never = np.full(n, NO_SHAPE, np.int32), np.full(n, NEVER)
    return RowBatch(np.array(ids, np.int64), terms, starts, terms, starts, boxes, none, never)


@given(st.lists(st.lists(st.integers(0, 8), max_size=4, unique=True), max_size=8), st.booleans())
def test_rows_keep_their_content_whether_numbers_are_reused_or_not(steps: list[list[int]], reuses: bool) -> None:
    store, live = RowStore(UNIT, reuses_numbers=reuses), dict[int, int]()
    most = 0
    for ids in steps:
        store.remove(np.array([live.pop(number) for number in ids if number in live], np.int32))
        rows = store.add(rows_of(ids))
        live |= dict(zip(ids, rows.tolist(), strict=True))
        most = max(most, len(live))
        batch, _ = store.batch(np.array(sorted(live.values()), np.int32))
        assert (batch.owner_ids == batch.terms).all()
        assert sorted(batch.owner_ids.tolist()) == sorted(live) and (batch.boxes[:, 0] == batch.owner_ids).all()
        assert (batch.not_terms == batch.terms).all()
        assert store.live == store.live_unverified == len(live) and len(store.live_rows()) == len(live)
        if store.in_id_order:
            assert (np.diff(store.owner_ids[store.live_rows()]) > 0).all()
        if store.id_step is not None:
            rows = store.live_rows()
            assert (store.owner_ids[rows] - rows == store.id_step).all()
    assert store.high == (most if reuses else sum(map(len, steps)))


def test_a_restored_store_reuses_the_numbers_of_removed_rows() -> None:
    store = RowStore(UNIT, reuses_numbers=True)
    rows = store.add(rows_of([1, 2, 3]))
    store.remove(rows[1:2])
    again = RowStore.restored(*store.state(), store.shape_table, store.params, UNIT, reuses_numbers=True)
    assert again.add(rows_of([4])).tolist() == [1] and again.high == 3
