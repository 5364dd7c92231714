"""A small world for tests of the stream: changing subscriptions, messages in files, and the expected matches."""

from __future__ import annotations

import uuid
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import nearcast as nc

WORDS = ["pizza", "deal", "rain", "road", "closed", "naïve", "音楽", "#sale", "a", "b", "c", "d"]
COLUMNS = pa.schema(
    [
        ("id", pa.int64()),
        ("tokens", pa.list_(pa.string())),
        ("expression", pa.string()),
        *((name, pa.float64()) for name in ("xmin", "ymin", "xmax", "ymax")),
        ("region", pa.string()),
        ("expires", pa.timestamp("us", "UTC")),
        ("kind", pa.string()),
        ("alpha", pa.float64()),
        ("threshold", pa.float64()),
    ]
)
IN_ORDER = [("message", "ascending"), ("subscription", "ascending")]
HOUR = 3_600_000_000


class World:
    """Subscriptions by id, and the messages and changes that were made so far."""

    def __init__(self, seed: int, n_subscriptions: int) -> None:
        self.rng = np.random.default_rng(seed)
        self.live = {k: self.subscription(k) for k in range(n_subscriptions)}
        self.weights = weights_of(self.table())
        self.expected: list[pa.Table] = []
        self._n_messages = 0

    def table(self) -> pa.Table:
        return pa.Table.from_pylist(list(self.live.values()), COLUMNS)

    def subscription(self, number: int) -> dict[str, Any]:
        """Tokens, an expression, a circle, the whole world, or no words at all; some are ranked, some expire."""
        rng, words = self.rng, [str(word) for word in self.rng.choice(WORDS, 3)]
        made: dict[str, Any] = dict.fromkeys(COLUMNS.names) | {"id": number}
        kind = int(rng.integers(0, 8))
        if kind == 0:
            made["expression"] = f'"{words[0]}" OR ("{words[1]}" AND NOT "{words[2]}")'
        else:
            made["tokens"] = words[: int(rng.integers(0, 3))] if kind < 3 else words[:1]
        x, y, reach = *rng.uniform(-50, 50, 2), 10 ** rng.uniform(-1, 1.5)
        if kind == 1:
            made["region"] = f'{{"type": "Circle", "coordinates": [{x}, {y}], "radius": {reach * 50}}}'
        elif kind == 2:
            made |= {"xmin": -180.0, "ymin": -90.0, "xmax": 180.0, "ymax": 90.0}
        else:
            made |= {"xmin": x - reach, "ymin": max(-90.0, y - reach), "xmax": x + reach, "ymax": min(90.0, y + reach)}
        if kind > 5:
            made |= {"kind": "rank", "tokens": words, "alpha": [None, 0.3, 0.8][number % 3]}
            made["threshold"] = [0.3, 0.5, 0.7, 0.9][int(rng.integers(0, 4))]
        if kind in (4, 7):
            made["expires"] = int(rng.integers(0, 48)) * HOUR
        return made

    def messages(self, n: int) -> pa.Table:
        """New messages; their expected matches are added to `expected`."""
        rng = self.rng
        texts = [" ".join(rng.choice(WORDS, int(rng.integers(0, 7)))) for _ in range(n)]
        ids = rng.permutation(n) + self._n_messages
        self._n_messages += n
        made = pa.table(
            {
                "id": ids,
                "text": texts,
                "lon": rng.uniform(-60, 60, n),
                "lat": rng.uniform(-60, 60, n),
                "time": pa.array(rng.integers(0, 48, n) * HOUR, pa.timestamp("us", "UTC")),
            }
        )
        self.expected.append(expected(self.table(), self.weights, made))
        return made

    def change(self, n: int) -> pa.Table:
        """A change file: inserts of new and known ids, removals of known and unknown ones, ids more than once."""
        records = []
        for _ in range(n):
            number = int(self.rng.integers(0, len(self.live) + 20))
            if self.rng.random() < 0.6:
                self.live[number] = self.subscription(number)
                records.append({"op": "insert", **self.live[number]})
            else:
                self.live.pop(number, None)
                records.append({"op": "remove", "id": number})
        return pa.Table.from_pylist(records, COLUMNS.insert(0, pa.field("op", pa.string())))

    def all_expected(self) -> pa.Table:
        return pa.concat_tables(self.expected).sort_by(IN_ORDER)


def weights_of(table: pa.Table) -> pa.Table:
    """The token weights of an index over these subscriptions, in its order. Later changes do not alter them."""
    index = nc.build_index(table, "brute", on_bad="skip")
    tokens = index.vocabulary.tokens(np.arange(len(index.vocabulary)))
    return pa.table({"token": tokens, "weight": index._weights})


def expected(subscriptions: pa.Table, weights: pa.Table, messages: Any) -> pa.Table:
    """The matches of a single index, always with scores."""
    return scored(nc.build_index(subscriptions, "brute", weights).match(messages))


def scored(found: pa.Table) -> pa.Table:
    return found if found.num_columns == 3 else found.append_column("score", pa.nulls(len(found), pa.float64()))


def put(table: pa.Table, folder: Path, name: str | None = None) -> Path:
    """Write a file and move it into a folder whole."""
    folder.mkdir(parents=True, exist_ok=True)
    target = folder / (name or f"{uuid.uuid4().hex}.parquet")
    hidden = folder / f".{target.name}"
    pq.write_table(table, hidden)
    return hidden.rename(target)


def delivered(out: Path) -> pa.Table:
    """All pairs of a stream's table, sorted; repeats are kept, so that they show."""
    return pq.read_table(out).select(["message", "subscription", "score"]).sort_by(IN_ORDER)
