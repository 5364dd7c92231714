"""Where the messages of a stream come from: invented words and places, a file of real messages, or the sample."""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import lru_cache
from importlib.resources import as_file, files
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from nearcast.arrays.ragged import sorted_sets
from nearcast.bench.streams.stream_workload import StreamWorkload
from nearcast.bench.workloads.corpus import Corpus, DrawnItems, SyntheticCorpus
from nearcast.bench.workloads.random_numbers import table_generator, zipf_table
from nearcast.bench.workloads.subscriptions import draw_subscriptions
from nearcast.bench.workloads.text_corpus import SAMPLE, TextCorpus, text_corpus
from nearcast.tables import as_arrow

DATA_FOLDER = "NEARCAST_DATA"
"""The environment variable that names the folder of real data."""
_MOST_REAL_MESSAGES = 150_000  # the last ones of a file: reading more takes longer than measuring


class Source(NamedTuple):
    """Messages by number, and subscriptions drawn from such messages."""

    name: str  # "drawn", or the name of a file
    corpus: Corpus
    messages: Callable[[np.ndarray], DrawnItems]


def find_real_file(name: str, folder: str | os.PathLike[str] | None = None) -> Path | None:
    """A file of real data in a folder, or in the folder that NEARCAST_DATA names; None if it is not there."""
    found = folder or os.environ.get(DATA_FOLDER)
    path = Path(found) / name if found and name else None
    return path if path is not None and path.is_file() else None


def source_of(workload: StreamWorkload, folder: str | os.PathLike[str] | None, within: np.ndarray | None) -> Source:
    """The source of a workload. `within` (xmin, ymin, xmax, ymax) leaves out real messages elsewhere."""
    if not workload.messages_file:
        corpus = SyntheticCorpus(workload)
        return Source("drawn", corpus, lambda numbers: corpus.messages("stream", numbers, workload.short))
    path = find_real_file(workload.messages_file, folder)
    if path is None:
        with as_file(files("nearcast") / "demo" / "sample" / SAMPLE) as sample:
            texts = _real_corpus(sample, None, workload.seed, workload.common_share)
        return Source(f"{SAMPLE} (the shipped sample)", texts, texts.in_order)
    box = None if within is None else tuple(within.tolist())
    texts = _real_corpus(path, box, workload.seed, workload.common_share)
    return Source(path.name, texts, texts.in_order)


@lru_cache(maxsize=4)
def _real_corpus(path: Path, within: tuple[float, ...] | None, seed: int, common_share: float) -> TextCorpus:
    table = as_arrow(path)
    if within is not None:
        lon, lat = (table[name].to_numpy() for name in ("lon", "lat"))
        inside = (lon >= within[0]) & (lon <= within[2]) & (lat >= within[1]) & (lat <= within[3])
        table = table.filter(pa.array(inside))
    table = table.slice(max(0, table.num_rows - _MOST_REAL_MESSAGES))
    return text_corpus(table, StreamWorkload(space=None, seed=seed, common_share=common_share))


def stream_subscriptions(source: Source, workload: StreamWorkload) -> DrawnItems:
    """All subscriptions: some tokens of a message each, and a box (kind `top`: the point) of its place."""
    points = {"tiny_share": 1.0} if workload.kind == "top" else {}
    drawn = draw_subscriptions(source.corpus, workload.but(**points), 0, workload.subscriptions)
    if not workload.zipf_words:
        return drawn
    chances = table_generator(workload.seed, "zipf-words").random(len(drawn.terms))
    words = np.searchsorted(zipf_table(source.corpus.n_words, 1.0).cumulative, chances, side="right")
    terms, starts = sorted_sets(words.clip(max=source.corpus.n_words - 1).astype(np.int32), drawn.starts)
    return drawn._replace(terms=terms, starts=starts)
