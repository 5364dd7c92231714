from __future__ import annotations

from datetime import UTC, datetime

import numpy as np

from nearcast.model import NO_TIME, Changes
from nearcast.tables.changes import CHANGES_SCHEMA, NO_CHANGES, changes_table, joined_changes


def test_changes_keep_their_order_and_unknown_values_are_null() -> None:
    signs, scores = np.array([1, -1, 1], np.int8), np.array([0.5, np.nan, 0.25])
    changes = Changes(np.array([7, 6, 7]), np.array([1, 2, 1]), signs, scores, np.array([1_000_000, NO_TIME, 0]))
    table = changes_table(changes)
    assert changes.size == 3 and table.schema == CHANGES_SCHEMA
    assert [tuple(row.values()) for row in table.to_pylist()] == [
        (7, 1, 1, 0.5, datetime(1970, 1, 1, 0, 0, 1, tzinfo=UTC)),
        (6, 2, -1, None, None),
        (7, 1, 1, 0.25, datetime(1970, 1, 1, tzinfo=UTC)),
    ]


def test_changes_of_several_steps_are_joined_in_their_order() -> None:
    first = Changes(np.array([7]), np.array([1]), np.array([1], np.int8), np.array([0.5]), np.array([NO_TIME]))
    second = first._replace(signs=np.array([-1], np.int8))
    assert joined_changes([first, NO_CHANGES, second]).signs.tolist() == [1, -1]
    assert changes_table(joined_changes([])).equals(CHANGES_SCHEMA.empty_table())
