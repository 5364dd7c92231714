"""Document frequencies of tokens: how many messages of some tables contain each token."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np
import pyarrow as pa

from nearcast.arrays.arrow import list_parts
from nearcast.errors import InvalidInput
from nearcast.tables.faults import Faults
from nearcast.tables.messages import message_tokens
from nearcast.text.analyser import Analyser
from nearcast.text.vocabulary import Vocabulary

FREQUENCIES = pa.schema([("token", pa.string()), ("frequency", pa.int64())])
_BATCH = 1 << 16  # tokens per batch for Spark


def count_documents(tables: Iterable[pa.Table], analyser: Analyser) -> Iterator[pa.RecordBatch]:
    """The distinct tokens of all tables together, each with the number of messages that contain it."""
    vocabulary = Vocabulary()
    for table in tables:
        if "tokens" in table.column_names and not table["tokens"].null_count:
            table = table.select(["tokens"])  # the text is not needed
        flat, starts = list_parts(message_tokens(table, analyser, Faults(table.num_rows, "skip")))
        if flat.null_count:
            raise InvalidInput("a token is null", column="tokens")
        vocabulary.count_documents(vocabulary.add(flat), starts)
    for first in range(0, len(vocabulary), _BATCH):
        terms = np.arange(first, min(first + _BATCH, len(vocabulary)))
        tokens = vocabulary.tokens(terms)
        yield pa.RecordBatch.from_arrays([tokens, pa.array(vocabulary.frequencies[terms])], schema=FREQUENCIES)
