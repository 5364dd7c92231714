"""Arrow tables as rows of Spark's: a shuffle moves them whole, whatever their columns.

A row for each (batch, shard) instead of one for each message: nothing is taken apart into Spark's own rows and put
together again, and column types that Spark lacks pass.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

import numpy as np
import pyarrow as pa

PAYLOAD_SQL = "partition int, shard int, content binary, note binary"
_ARROW = pa.schema([("partition", pa.int32()), ("shard", pa.int32()), ("content", pa.binary()), ("note", pa.binary())])
_MOST_BYTES = 8 << 20  # of one row: Spark holds some of them at a time


class ArrowPayload(NamedTuple):
    """A table on its way to a partition, with a note about it. A table that is cut has its note on the first part."""

    partition: int
    shard: int
    table: pa.Table
    note: bytes = b""


def pack_payloads(payloads: Iterable[ArrowPayload]) -> Iterator[pa.RecordBatch]:
    """Parcels as batches of Spark's, one row each."""
    for payload in payloads:
        n_parts = max(1, -(-payload.table.nbytes // _MOST_BYTES))
        edges = np.linspace(0, payload.table.num_rows, n_parts + 1).astype(int)
        for k in range(n_parts):
            part = payload.table.slice(edges[k], edges[k + 1] - edges[k])
            row = ([payload.partition], [payload.shard], [as_bytes(part)], [payload.note if k == 0 else b""])
            columns = [pa.array(values, field.type) for values, field in zip(row, _ARROW, strict=True)]
            yield pa.RecordBatch.from_arrays(columns, schema=_ARROW)


def unpack_payloads(batches: Iterable[pa.RecordBatch]) -> Iterator[ArrowPayload]:
    """The parcels that arrived."""
    for batch in batches:
        for k in range(batch.num_rows):
            partition, shard, content, note = (batch.column(name)[k] for name in _ARROW.names)
            yield ArrowPayload(partition.as_py(), shard.as_py(), from_bytes(content.as_buffer()), note.as_py())


def as_bytes(table: pa.Table) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as out:
        out.write_table(table)
    return bytes(sink.getvalue())


def from_bytes(content: bytes | pa.Buffer) -> pa.Table:
    with pa.ipc.open_stream(content) as source:
        return source.read_all()
