"""An index over a part of the subscriptions, such as a shard: it may have bad rows alone."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from nearcast.engine.index import Index
from nearcast.engine.payload.sources import Sources
from nearcast.geo.space import Space
from nearcast.matching.subscription_set import SubscriptionSet
from nearcast.tables import read_subscriptions, read_weights
from nearcast.tables.messages import Extra
from nearcast.text.analyser import Analyser
from nearcast.text.vocabulary import Vocabulary


def build_part(
    subscriptions: Any,
    method: str = "auto",
    weights: Any = None,
    space: Sequence[float] | None = None,
    *,
    messages: Any = None,
    keep_source: bool = True,
    extra: Extra = "ignore",
    **options: Any,
) -> Index:
    """`build_index` of rows whose table was checked as a whole."""
    analyser = Analyser.of(options.pop("analyser", None))
    on_bad = options.pop("on_bad", "raise")
    sources = Sources() if keep_source else None
    vocabulary = Vocabulary()
    by_term = None if weights is None else read_weights(weights, vocabulary)
    index = Index(SubscriptionSet(method, Space.of(space), options), vocabulary, analyser, by_term, sources=sources)
    read = read_subscriptions(subscriptions, index.vocabulary, index.subscription_dialect(on_bad, extra))
    if messages is not None:
        index.matcher.expect(index.read_messages(messages, on_bad=on_bad))  # known tokens are those just read
    index.rejects = read.rejects
    index.insert_read(read)
    return index
