"""Workloads as Arrow tables and as Parquet files."""

from __future__ import annotations

import itertools
import json
import os
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from nearcast.arrays.bundle import write_whole
from nearcast.bench.workloads.corpus import Corpus, DrawnItems, message_group
from nearcast.bench.workloads.expressions import ExpressionShapes, draw_shapes, expression_texts, has_expressions
from nearcast.bench.workloads.regions import draw_regions, region_texts
from nearcast.bench.workloads.subscriptions import CHUNK, draw_subscriptions
from nearcast.bench.workloads.text_corpus import SAMPLE_SOURCE
from nearcast.bench.workloads.times import expiry_times, message_times
from nearcast.bench.workloads.workload import Workload
from nearcast.errors import InvalidInput
from nearcast.geo.space import BOX_COLUMNS
from nearcast.model import NEVER

OnChunk = Callable[[str, int], None]
"""Called with (file name, rows just written) while files are written."""

_CHUNK_OF_MESSAGES = 1 << 14  # a long message has 550 tokens: 36 MB of terms


_TIME = pa.timestamp("us", "UTC")


def subscriptions_table(
    drawn: DrawnItems, words: pa.Array, first_id: int = 0, shapes: ExpressionShapes | None = None
) -> pa.Table:
    """A subscriptions table: id, tokens (with shapes: expression), xmin, ymin, xmax, ymax."""
    return pa.table(_ids_and_words(drawn, words, first_id, shapes) | _box_columns(drawn.boxes))


def _ids_and_words(
    drawn: DrawnItems, words: pa.Array, first_id: int, shapes: ExpressionShapes | None
) -> dict[str, pa.Array]:
    columns = _ids_and_tokens(drawn, words, first_id)
    if shapes is not None:
        columns["expression"] = pa.array(expression_texts(drawn, shapes, words), pa.string())
        del columns["tokens"]
    return columns


def workload_table(workload: Workload, drawn: DrawnItems, words: pa.Array, first: int) -> pa.Table:
    """The drawn subscriptions from number `first` on, as the workload writes them.

    The columns are id, tokens or expression, the box, and where some have one, region and expires. In kilometres
    (`radius_km`) every place is a region and there is no box.
    """
    shapes = draw_shapes(workload, drawn, first) if has_expressions(workload) else None
    columns = _ids_and_words(drawn, words, first, shapes)
    regions = draw_regions(workload, drawn, first)
    in_km = workload.radius_km[1] > 0
    if not in_km:
        columns |= _box_columns(drawn.boxes)
    if in_km or workload.circle_share or workload.polygon_share:
        texts = region_texts(regions, drawn.boxes, workload.geometry)
        is_box = np.full(drawn.size, not in_km)
        is_box[regions.positions] = False
        columns["region"] = pa.array(texts, pa.string(), mask=is_box)
    if workload.expiring_share:
        expires = expiry_times(workload, first, drawn.size)
        columns["expires"] = pa.array(expires, pa.int64(), mask=expires == NEVER).cast(_TIME)
    return pa.table(columns)


def messages_table(
    drawn: DrawnItems, words: pa.Array, group: str, first_id: int = 0, times: np.ndarray | None = None
) -> pa.Table:
    """A messages table: id, tokens, time if given, and x, y (point group) or xmin, ymin, xmax, ymax (range group)."""
    columns = _ids_and_tokens(drawn, words, first_id)
    if times is not None:
        columns["time"] = pa.array(times).cast(_TIME)
    if group.endswith("range"):
        return pa.table(columns | _box_columns(drawn.boxes))
    return pa.table(columns | {"x": pa.array(drawn.boxes[:, 0]), "y": pa.array(drawn.boxes[:, 1])})


def _ids_and_tokens(drawn: DrawnItems, words: pa.Array, first_id: int) -> dict[str, pa.Array]:
    ids = np.arange(first_id, first_id + drawn.size)
    tokens = words.cast(pa.string()).take(pa.array(drawn.terms))
    lists = pa.ListArray.from_arrays(pa.array(drawn.starts.astype(np.int32)), tokens)
    return {"id": pa.array(ids), "tokens": lists}


def _box_columns(boxes: np.ndarray) -> dict[str, pa.Array]:
    return {name: pa.array(boxes[:, k].copy()) for k, name in enumerate(BOX_COLUMNS)}


def subscription_tables(corpus: Corpus, workload: Workload) -> Iterator[pa.Table]:
    """All subscriptions, chunk by chunk. There is at least one table; it may be empty."""
    words = corpus.words()
    for first in range(0, max(1, workload.subscriptions), CHUNK):
        drawn = draw_subscriptions(corpus, workload, first, min(first + CHUNK, workload.subscriptions))
        yield workload_table(workload, drawn, words, first)


def message_tables(corpus: Corpus, workload: Workload, group: str) -> Iterator[pa.Table]:
    """All messages of a group, chunk by chunk. There is at least one table; it may be empty."""
    words = corpus.words()
    for first in range(0, max(1, workload.messages), _CHUNK_OF_MESSAGES):
        indices = np.arange(first, min(first + _CHUNK_OF_MESSAGES, workload.messages))
        drawn = message_group(corpus, workload, group, indices)
        yield messages_table(drawn, words, group, first, message_times(workload, indices))


def write_workload(
    corpus: Corpus,
    workload: Workload,
    folder: str | os.PathLike[str],
    source: dict[str, str] | None = None,
    on_chunk: OnChunk | None = None,
) -> dict[str, Any]:
    """Write subscriptions.parquet, messages-<group>.parquet and, last, workload.json; return the content of that file.

    `source` names the origin and the licence of real texts; it is copied to workload.json.
    """
    target = Path(folder)
    try:
        target.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InvalidInput(f"{target} cannot be used as the output folder: {error}") from None
    files = {"subscriptions.parquet": subscription_tables(corpus, workload)}
    files |= {f"messages-{group}.parquet": message_tables(corpus, workload, group) for group in workload.groups}
    rows = {name: _write(target / name, tables, on_chunk) for name, tables in files.items()}
    about = {
        "workload": workload.parameters(),
        "bounds": corpus.bounds.tolist(),
        "source": source or (SAMPLE_SOURCE if workload.texts == "sample" else {"corpus": "made up"}),
        "rows": rows,
    }
    write_whole(target / "workload.json", (json.dumps(about, indent=2) + "\n").encode(), is_private=False)
    return about


def _write(path: Path, tables: Iterator[pa.Table], on_chunk: OnChunk | None) -> int:
    """Write one row group for each table under a temporary name, then rename the file; return the number of rows."""
    temporary = path.with_name(f".{path.name}.{uuid.uuid4().hex[:8]}")
    first = next(tables)
    rows = 0
    try:
        with pq.ParquetWriter(temporary, first.schema, compression="zstd") as writer:
            for table in itertools.chain([first], tables):
                writer.write_table(table)
                rows += table.num_rows
                if on_chunk is not None:
                    on_chunk(path.name, table.num_rows)
        os.replace(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)
    return rows
