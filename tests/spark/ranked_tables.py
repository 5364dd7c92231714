"""Ranked subscriptions beside boolean ones, with all that goes wrong: any alpha, thresholds at the edges, no words."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from spark.nasty_tables import WORDS, nasty_subscriptions

SHARES = [0.0, 0.25, 0.3, 0.5, 0.6, 0.75, 1.0]


def ranked_subscriptions(seed: int, n: int, share: float = 0.6) -> pa.Table:
    """The nasty ones, of which a share is ranked; half of the thresholds are such that words or place alone will do."""
    rng = np.random.default_rng(seed + 1_000_000)
    rows = nasty_subscriptions(seed, n).to_pylist()
    for row in rows:
        row |= {"kind": None, "alpha": None, "threshold": None}
        if rng.random() < share and row["region"] is None:
            row |= {"kind": "rank", "expression": None, "threshold": float(rng.choice(SHARES))}
            row["tokens"] = rng.choice(WORDS, rng.integers(0, 6), replace=False).tolist()
            row["alpha"] = None if rng.random() < 0.2 else float(rng.choice(SHARES))
        elif rng.random() < 0.5:
            row["kind"] = "match"
    kinds = {"kind": pa.string(), "alpha": pa.float64(), "threshold": pa.float64()}
    schema = nasty_subscriptions(seed, 1).schema
    for name, kind in kinds.items():
        schema = schema.append(pa.field(name, kind))
    return pa.Table.from_pylist(rows, schema)


def random_weights(seed: int) -> pa.Table:
    """Of some of the words; one weighs nothing, and sums of these are not exact."""
    rng = np.random.default_rng(seed)
    weights = rng.random(9) * 3
    weights[3] = 0.0
    return pa.table({"token": WORDS[:9], "weight": weights})
