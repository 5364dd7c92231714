"""The matches table with the columns that `keep=` names."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import pyarrow as pa

from nearcast.engine.payload.keep import COMPUTED, DISTANCE, Kept, read_keep
from nearcast.engine.published import Published
from nearcast.errors import InvalidInput
from nearcast.geo.space import Space
from nearcast.matching.subscription_set import SubscriptionSet
from nearcast.model import Found
from nearcast.tables.matches import pairs_table, sorted_pairs
from nearcast.tables.messages import Messages


def kept_columns(keep: Sequence[str] | None, messages: pa.Table, published: Published, space: Space) -> list[Kept]:
    """What `keep` names, of these messages and of the subscriptions."""
    sources = published.sources
    kept = read_keep(keep, messages.column_names, None if sources is None else sources.column_names)
    if space.planar and any(each.column == DISTANCE for each in kept if each.side == COMPUTED):
        raise InvalidInput(f"'{DISTANCE}' needs longitudes and latitudes; this index has a plane", column="keep")
    return kept


def matches_with(
    kept: list[Kept], read: Messages, found: Found, published: Published, sets: Iterable[SubscriptionSet]
) -> pa.Table:
    """The matches table with the kept columns. Changes are kept out where columns are computed."""
    pairs = sorted_pairs(read.ids.numbers, found, published.names)
    result = pairs_table(pairs, read.ids, published.names)
    if not kept:
        return result
    from nearcast.engine.payload.carried_columns import Origins, with_columns

    origins = Origins(read, published.sources, tuple(sets), published.vocabulary)
    return with_columns(result, kept, pairs, origins)
