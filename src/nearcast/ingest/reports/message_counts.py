"""Statistics of messages as counts that fit a page: tasks count their messages into small arrays, which add up."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from nearcast.tables.faults import Faults
from nearcast.tables.messages import message_tokens
from nearcast.text.analyser import Analyser

CELLS = 192  # of the density map, on its longer side
MOST_TOKENS = 200  # the last bin of the lengths holds all longer messages
MOST_BINS = 400  # of the times
DAY, _HOUR = 86_400_000_000, 3_600_000_000  # us
_TOP_WORDS = 30
_ZIPF_POINTS = 200


class Frequencies(NamedTuple):
    """In how many messages each token occurs, the most frequent first."""

    tokens: pa.ChunkedArray
    counts: np.ndarray  # int64[n]
    n_documents: int
    analyser: Analyser | None


class Extent(NamedTuple):
    """The box around all places, and the first and last day (days since 1970; None without times)."""

    xmin: float
    ymin: float
    xmax: float
    ymax: float
    first_day: int | None
    last_day: int | None

    @property
    def n_days(self) -> int:
        return 0 if self.first_day is None or self.last_day is None else self.last_day - self.first_day + 1

    @property
    def days_each(self) -> int:
        """Days per bin, so that there are at most MOST_BINS bins."""
        return max(1, -(-self.n_days // MOST_BINS))

    @property
    def shape(self) -> tuple[int, int]:
        """Cells in x and y, about square."""
        width, height = self.xmax - self.xmin, self.ymax - self.ymin
        longer = max(width, height)
        if not longer:
            return 1, 1
        return max(1, round(CELLS * width / longer)), max(1, round(CELLS * height / longer))


class Counted(NamedTuple):
    """Counts of some messages, which add up."""

    density: np.ndarray  # int64[cells in y, cells in x]
    tokens: np.ndarray  # int64[MOST_TOKENS + 1]  messages by their number of tokens
    characters: np.ndarray  # int64[32]  messages by the bits of their text's length
    days: np.ndarray  # int64[...]  messages by day, or by several days
    hours: np.ndarray  # int64[24]
    n_occurrences: int

    def plus(self, other: Counted) -> Counted:
        pairs: Iterable[tuple[Any, Any]] = zip(self, other, strict=True)
        return Counted(*(mine + theirs for mine, theirs in pairs))


def count_messages(table: pa.Table, extent: Extent, analyser: Analyser) -> Counted:
    tokens = message_tokens(table, analyser, Faults(table.num_rows, "skip"))
    n_tokens = pc.fill_null(pc.list_value_length(tokens), 0).to_numpy(zero_copy_only=False)
    days, hours = _days(table, extent)
    return Counted(
        _density(table, extent),
        np.bincount(np.minimum(n_tokens, MOST_TOKENS), minlength=MOST_TOKENS + 1),
        _characters(table),
        days,
        hours,
        int(n_tokens.sum()),
    )


def _density(table: pa.Table, extent: Extent) -> np.ndarray:
    """int64[cells in y, cells in x]: messages by cell; a range counts at its centre."""
    nx, ny = extent.shape
    xs = _binned(_middle(table, "x"), extent.xmin, extent.xmax, nx)
    ys = _binned(_middle(table, "y"), extent.ymin, extent.ymax, ny)
    return np.bincount(ys * nx + xs, minlength=nx * ny).reshape(ny, nx)


def _middle(table: pa.Table, axis: str) -> np.ndarray:
    if f"{axis}min" in table.column_names:
        low, high = (table[f"{axis}{end}"].to_numpy() for end in ("min", "max"))
        return np.asarray(low + (high - low) / 2)
    return np.asarray(table[axis].to_numpy())


def _binned(values: np.ndarray, low: float, high: float, n_bins: int) -> np.ndarray:
    scaled = (values - low) / (high - low) * n_bins if high > low else np.zeros(len(values))
    return np.asarray(np.clip(scaled.astype(np.int64), 0, n_bins - 1))


def _characters(table: pa.Table) -> np.ndarray:
    """int64[32]: texts by length; element k counts lengths from 2**(k-1) to 2**k - 1, element 0 empty texts."""
    if "text" not in table.column_names:
        return np.zeros(32, np.int64)
    lengths = pc.fill_null(pc.utf8_length(table["text"]), 0).to_numpy()
    bits = np.ceil(np.log2(lengths + 1.0)).astype(np.int64)
    return np.bincount(bits, minlength=32)


def _days(table: pa.Table, extent: Extent) -> tuple[np.ndarray, np.ndarray]:
    n_bins = -(-extent.n_days // extent.days_each)
    if extent.first_day is None or "time" not in table.column_names:
        return np.zeros(n_bins, np.int64), np.zeros(24, np.int64)
    micros = table["time"].drop_null().cast(pa.timestamp("us")).cast(pa.int64()).to_numpy()
    bins = (micros // DAY - extent.first_day) // extent.days_each
    return np.bincount(bins, minlength=n_bins), np.bincount(micros // _HOUR % 24, minlength=24)


def places_of(density: np.ndarray, extent: Extent) -> dict[str, Any]:
    crowded = np.sort(density[density > 0])[::-1]
    n_top = max(1, len(crowded) // 100)
    return {
        "box": list(extent[:4]),
        "density": density.tolist(),
        "cells": density.size,
        "cells_in_use": len(crowded),
        "share_of_densest_hundredth": float(crowded[:n_top].sum() / crowded.sum()),
    }


def words_of(found: Frequencies, counts: Counted) -> dict[str, Any]:
    n = len(found.counts)
    ranks = np.unique(np.geomspace(1, n, _ZIPF_POINTS).astype(np.int64)) if n else np.empty(0, np.int64)
    return {
        "occurrences": counts.n_occurrences,
        "different": n,
        "in_one_message": int((found.counts == 1).sum()),
        "different_per_message": float(found.counts.sum() / found.n_documents),
        "top": list(zip(found.tokens[:_TOP_WORDS].to_pylist(), found.counts[:_TOP_WORDS].tolist(), strict=True)),
        "zipf_ranks": ranks.tolist(),
        "zipf_counts": found.counts[ranks - 1].tolist() if n else [],
    }


def times_counted(counts: Counted, extent: Extent) -> dict[str, Any] | None:
    if extent.first_day is None:
        return None
    return {
        "first_day": str(np.datetime64(extent.first_day, "D")),
        "days_each": extent.days_each,
        "messages": counts.days.tolist(),
        "hours": counts.hours.tolist(),
    }
