"""The state of a `MovingSet` as arrays and a header. The method is built anew when the state is restored."""

from __future__ import annotations

from typing import Any

import numpy as np

from nearcast.geo.shapes.table import ShapeTable
from nearcast.geo.space import Space
from nearcast.matching.row_params import MatchParams
from nearcast.matching.store import RowStore
from nearcast.matching.subscription_set import part_of
from nearcast.model import MessageBatch
from nearcast.moving.moving_set import MovingSet
from nearcast.moving.subscribers import KnownOwners


def moving_state(live: MovingSet) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
    """Arrays and a header, enough for `restored_set`."""
    store = live.subscribers.store
    store_arrays, store_header = store.state()
    batch, expires = live.messages.batch(live.messages.slots())
    parts = {
        "store": store_arrays,
        "owners": live.subscribers.owners.state(),
        "shapes": store.shape_table.arrays(),
        "messages": batch._asdict() | {"expires": expires},
        "known": {"without_rows": np.array(sorted(live.subscribers.without_rows), np.int64)},
    }
    arrays = {f"{part}.{name}": array for part, own in parts.items() for name, array in own.items()}
    header = {
        "method": live.method.name,
        "options": live.options,
        "space": live.space.header(),
        "now": live.now,
        "store": store_header,
        "shapes": store.shape_table.header(),
    }
    return arrays, header


def restored_set(arrays: dict[str, np.ndarray], header: dict[str, Any]) -> MovingSet:
    """The set of a saved state."""
    space = Space.from_header(header["space"])
    made = MovingSet(header["method"], space, header["options"])
    shapes = ShapeTable.from_arrays(part_of(arrays, "shapes"), header["shapes"])
    own = made.subscribers
    stored = part_of(arrays, "store")
    own.store = RowStore.restored(stored, header["store"], shapes, MatchParams(), space, reuses_numbers=True)
    owners = KnownOwners.restored(part_of(arrays, "owners"))
    assert isinstance(owners, KnownOwners)
    own.owners = owners
    own.without_rows = set(arrays["known.without_rows"].tolist())
    columns = part_of(arrays, "messages")
    expires = columns.pop("expires")
    made.messages.add(MessageBatch(**columns), expires)
    made.now = header["now"]
    made.rebuild_method()
    return made
