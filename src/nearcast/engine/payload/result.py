"""The matches table with the columns that `keep=` names."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import pyarrow as pa

from nearcast.engine.payload.computed import distances_km, matched_words
from nearcast.engine.payload.keep import COMPUTED, DISTANCE, Kept, carried, read_keep
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
    at, numbers = pairs.messages(), pairs.subscriptions
    columns = carried(kept, read.table, read.table_rows(at), published.sources, numbers)
    for each in kept:
        if each.side == COMPUTED and each.column == DISTANCE:
            columns[each.name] = distances_km(sets, read.batch, at, numbers)
        elif each.side == COMPUTED:
            columns[each.name] = matched_words(sets, published.vocabulary, read.batch, at, numbers)
        result = result.append_column(each.name, columns[each.name])
    return result
