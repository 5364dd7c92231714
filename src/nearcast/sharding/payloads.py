"""Tables on their way through a shuffle: a whole table is one row, one for each (batch, shard) instead of one for each
message. Nothing is converted to Spark's own rows and back, and column types that Spark lacks pass unchanged.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.ipc

NO_SHARD = -1
"""In place of a shard: the payload holds rejects and counts."""
PAYLOAD_SCHEMA = pa.schema(
    [("partition", pa.int32()), ("shard", pa.int32()), ("content", pa.binary()), ("note", pa.binary())]
)
_MOST_BYTES = 8 << 20  # of one row: Spark keeps several rows in memory


class ArrowPayload(NamedTuple):
    """A table on its way to a partition, with a note. A table that is cut has its note on the first piece."""

    partition: int
    shard: int
    table: pa.Table
    note: bytes = b""


def join_tables(payloads: Sequence[ArrowPayload]) -> pa.Table:
    """The tables of some payloads as one; columns that a table lacks are null."""
    return pa.concat_tables([payload.table for payload in payloads], promote_options="permissive")


def pack_payload(payload: ArrowPayload) -> Iterator[pa.RecordBatch]:
    """A payload as batches of one row; a large table is cut into several rows."""
    n_pieces = max(1, -(-payload.table.nbytes // _MOST_BYTES))
    edges = np.linspace(0, payload.table.num_rows, n_pieces + 1).astype(int)
    for k in range(n_pieces):
        content = as_arrow_stream(payload.table.slice(edges[k], edges[k + 1] - edges[k]))
        values = (payload.partition, payload.shard, content, payload.note if k == 0 else b"")
        yield pa.record_batch([[value] for value in values], schema=PAYLOAD_SCHEMA)


def payloads_in(batches: Iterable[pa.RecordBatch]) -> Iterator[ArrowPayload]:
    """The payloads in rows that `pack_payload` made."""
    for batch in batches:
        for k in range(batch.num_rows):
            partition, shard, content, note = (batch.column(name)[k] for name in PAYLOAD_SCHEMA.names)
            with pa.ipc.open_stream(content.as_buffer()) as source:
                yield ArrowPayload(partition.as_py(), shard.as_py(), source.read_all(), note.as_py())


def payloads_by_shard(batches: Iterable[pa.RecordBatch]) -> dict[int, list[ArrowPayload]]:
    """The payloads of each shard, ascending. A partition has one shard unless Spark merged partitions."""
    found: dict[int, list[ArrowPayload]] = {}
    for payload in payloads_in(batches):
        found.setdefault(payload.shard, []).append(payload)
    return dict(sorted(found.items()))


def as_arrow_stream(table: pa.Table) -> bytes:
    """A table in Arrow's stream format."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as out:
        out.write_table(table)
    return bytes(sink.getvalue())
