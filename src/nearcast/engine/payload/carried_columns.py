"""The columns that matches carry: of messages, of subscriptions, and computed ones."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import pyarrow as pa

from nearcast.arrays.arrow import one_array
from nearcast.engine.payload.computed import distances_km, matched_words
from nearcast.engine.payload.keep import COMPUTED, DISTANCE, MESSAGE, SUBSCRIPTION, Kept
from nearcast.engine.payload.sources import Sources
from nearcast.matching.subscription_set import SubscriptionSet
from nearcast.tables.matches import Pairs
from nearcast.tables.messages import Messages
from nearcast.text.vocabulary import Vocabulary


class Origins(NamedTuple):
    """What the columns are taken from."""

    messages: Messages
    sources: Sources | None
    sets: tuple[SubscriptionSet, ...]
    vocabulary: Vocabulary


def with_columns(matches: pa.Table, kept: Sequence[Kept], pairs: Pairs, origins: Origins) -> pa.Table:
    """The matches with the kept columns. No subscription may change meanwhile if one of them is computed."""
    read, at, numbers = origins.messages, pairs.messages(), pairs.subscriptions
    of_messages = [each for each in kept if each.side == MESSAGE]
    rows = pa.array(read.table_rows(at))
    columns = {each.name: one_array(read.table[each.column].take(rows)) for each in of_messages}
    wanted = [each for each in kept if each.side == SUBSCRIPTION]
    if wanted and origins.sources is not None:
        table = origins.sources.take(numbers, [*dict.fromkeys(each.column for each in wanted)])
        columns |= {each.name: one_array(table[each.column]) for each in wanted}
    for each in kept:
        if each.side == COMPUTED and each.column == DISTANCE:
            columns[each.name] = distances_km(origins.sets, read.batch, at, numbers)
        elif each.side == COMPUTED:
            columns[each.name] = matched_words(origins.sets, origins.vocabulary, read.batch, at, numbers)
        matches = matches.append_column(each.name, columns[each.name])
    return matches
