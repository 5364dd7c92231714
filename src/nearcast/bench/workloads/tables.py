"""What is drawn as Arrow tables of the contract, and a whole workload as Parquet files."""

from __future__ import annotations

import json
import os
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from nearcast.bench.workloads.corpus import Corpus, Drawn, message_group
from nearcast.bench.workloads.expressions import Shapes, expression_texts, has_expressions, shapes_of
from nearcast.bench.workloads.subscriptions import CHUNK, subscription_chunks
from nearcast.bench.workloads.workload import Workload
from nearcast.errors import InvalidInput
from nearcast.geo.space import BOX_COLUMNS

OnChunk = Callable[[str, int], None]
"""Told (what, how many rows more) while files are written."""

_CHUNK_OF_MESSAGES = 1 << 14  # a long one has 550 tokens: 36 MB of terms


def subscriptions_table(drawn: Drawn, words: pa.Array, first_id: int = 0, shapes: Shapes | None = None) -> pa.Table:
    """id, tokens (an expression where shapes are given), xmin, ymin, xmax, ymax."""
    columns = _ids_and_tokens(drawn, words, first_id)
    if shapes is not None:
        columns["expression"] = pa.array(expression_texts(drawn, shapes, words), pa.string())
        del columns["tokens"]
    return pa.table(columns | _box_columns(drawn.boxes))


def messages_table(drawn: Drawn, words: pa.Array, group: str, first_id: int = 0) -> pa.Table:
    """id, tokens, and x, y in a point group, xmin, ymin, xmax, ymax in a range group."""
    columns = _ids_and_tokens(drawn, words, first_id)
    if group.endswith("range"):
        return pa.table(columns | _box_columns(drawn.boxes))
    return pa.table(columns | {"x": pa.array(drawn.boxes[:, 0]), "y": pa.array(drawn.boxes[:, 1])})


def _ids_and_tokens(drawn: Drawn, words: pa.Array, first_id: int) -> dict[str, pa.Array]:
    ids = np.arange(first_id, first_id + drawn.size)
    tokens = words.cast(pa.string()).take(pa.array(drawn.terms))
    lists = pa.ListArray.from_arrays(pa.array(drawn.starts.astype(np.int32)), tokens)
    return {"id": pa.array(ids), "tokens": lists}


def _box_columns(boxes: np.ndarray) -> dict[str, pa.Array]:
    return {name: pa.array(boxes[:, k].copy()) for k, name in enumerate(BOX_COLUMNS)}


def subscription_tables(corpus: Corpus, workload: Workload) -> Iterator[pa.Table]:
    """All subscriptions, chunk by chunk; at least one table, if an empty one."""
    words = corpus.words()
    for first, drawn in subscription_chunks(corpus, workload, CHUNK) if workload.subscriptions else [(0, _nothing())]:
        shapes = shapes_of(workload, drawn, first) if has_expressions(workload) else None
        yield subscriptions_table(drawn, words, first, shapes)


def message_tables(corpus: Corpus, workload: Workload, group: str) -> Iterator[pa.Table]:
    """All messages of a group, chunk by chunk; at least one table, if an empty one."""
    words = corpus.words()
    if not workload.messages:
        yield messages_table(_nothing(), words, group)
    for first in range(0, workload.messages, _CHUNK_OF_MESSAGES):
        indices = np.arange(first, min(first + _CHUNK_OF_MESSAGES, workload.messages))
        yield messages_table(message_group(corpus, workload, group, indices), words, group, first)


def _nothing() -> Drawn:
    return Drawn(np.empty(0, np.int32), np.zeros(1, np.int64), np.empty((0, 4)))


def write_workload(
    corpus: Corpus,
    workload: Workload,
    folder: str | os.PathLike[str],
    source: dict[str, str] | None = None,
    on_chunk: OnChunk | None = None,
) -> dict[str, Any]:
    """Write subscriptions.parquet, messages-<group>.parquet and, last, workload.json; return its content.

    `source` says where real texts come from and their licence; it goes into workload.json as it is.
    """
    target = Path(folder)
    try:
        target.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InvalidInput(f"{target} is no folder to write to: {error}") from None
    tell = on_chunk or (lambda what, rows: None)
    files = {"subscriptions.parquet": subscription_tables(corpus, workload)}
    files |= {f"messages-{group}.parquet": message_tables(corpus, workload, group) for group in workload.groups}
    rows = {name: _write(target / name, tables, tell) for name, tables in files.items()}
    about = {
        "workload": workload.parameters(),
        "bounds": corpus.bounds.tolist(),
        "source": source or {"corpus": "made up"},
        "rows": rows,
    }
    temporary = target / f".workload.{uuid.uuid4().hex[:8]}"
    temporary.write_text(json.dumps(about, indent=2) + "\n", encoding="utf-8")
    os.replace(temporary, target / "workload.json")
    return about


def _write(path: Path, tables: Iterator[pa.Table], tell: OnChunk) -> int:
    """One row group for each table, under a temporary name, then renamed."""
    temporary = path.with_name(f".{path.name}.{uuid.uuid4().hex[:8]}")
    first = next(tables)
    rows = 0
    try:
        with pq.ParquetWriter(temporary, first.schema, compression="zstd") as writer:
            for table in _chained(first, tables):
                writer.write_table(table)
                rows += table.num_rows
                tell(path.name, table.num_rows)
        os.replace(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)
    return rows


def _chained(first: pa.Table, rest: Iterator[pa.Table]) -> Iterator[pa.Table]:
    yield first
    yield from rest
