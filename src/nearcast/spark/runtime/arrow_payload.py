"""Arrow tables as rows of Spark.

An ArrowPayload moves a whole table through a shuffle as one row, one for each (batch, shard) instead of one for each
message. Nothing is converted to Spark's own rows and back, and column types that Spark lacks pass unchanged.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from nearcast.ingest.broker_values import as_arrow_stream

PAYLOAD_SCHEMA = pa.schema(
    [("partition", pa.int32()), ("shard", pa.int32()), ("content", pa.binary()), ("note", pa.binary())]
)
NO_SHARD = -1
"""In place of a shard: the payload holds rejects and counts."""
_MOST_BYTES = 8 << 20  # of one row: Spark keeps several rows in memory


class ArrowPayload(NamedTuple):
    """A table on its way to a partition, with a note. A table that is cut has its note on the first piece."""

    partition: int
    shard: int
    table: pa.Table
    note: bytes = b""


def pack_payload(payload: ArrowPayload) -> Iterator[pa.RecordBatch]:
    """A payload as batches of one row; a large table is cut into several rows."""
    n_pieces = max(1, -(-payload.table.nbytes // _MOST_BYTES))
    edges = np.linspace(0, payload.table.num_rows, n_pieces + 1).astype(int)
    for k in range(n_pieces):
        piece = payload.table.slice(edges[k], edges[k + 1] - edges[k])
        note = payload.note if k == 0 else b""
        yield one_row(PAYLOAD_SCHEMA, [payload.partition, payload.shard, as_arrow_stream(piece), note])


def one_row(schema: pa.Schema, values: Sequence[Any]) -> pa.RecordBatch:
    columns = [pa.array([value], field.type) for value, field in zip(values, schema, strict=True)]
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def payloads_by_shard(batches: Iterable[pa.RecordBatch]) -> dict[int, list[ArrowPayload]]:
    """The payloads of each shard, ascending. A partition has one shard unless Spark merged partitions."""
    found: dict[int, list[ArrowPayload]] = {}
    for batch in batches:
        for k in range(batch.num_rows):
            partition, shard, content, note = (batch.column(name)[k] for name in PAYLOAD_SCHEMA.names)
            table = read_arrow_stream(content.as_buffer())
            payload = ArrowPayload(partition.as_py(), shard.as_py(), table, note.as_py())
            found.setdefault(payload.shard, []).append(payload)
    return dict(sorted(found.items()))


def join_tables(payloads: Sequence[ArrowPayload]) -> pa.Table:
    """The tables of some payloads as one; columns that a table lacks are null."""
    return pa.concat_tables([payload.table for payload in payloads], promote_options="permissive")


def read_arrow_stream(content: bytes | pa.Buffer) -> pa.Table:
    with pa.ipc.open_stream(content) as source:
        return source.read_all()
