"""Subscriptions that someone who writes such messages could have."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

import nearcast as nc


def drawn(messages: pa.Table, n: int, reach_of: tuple[float, float]) -> pa.Table:
    """One to four words of a message, in a box round its place: so many degrees each way."""
    rng = np.random.default_rng(2)
    tokens = nc.Analyser().tokens_batch(messages["text"]).to_pylist()
    picked = rng.integers(0, messages.num_rows, n)
    words = [sorted(set(rng.permutation(tokens[k] or ["none"])[: rng.integers(1, 5)].tolist())) for k in picked]
    reach = 10 ** rng.uniform(*np.log10(reach_of), n)
    lon, lat = messages["lon"].to_numpy()[picked], messages["lat"].to_numpy()[picked]
    low = {"xmin": np.maximum(-180, lon - reach), "ymin": np.maximum(-90, lat - reach)}
    high = {"xmax": np.minimum(180, lon + reach), "ymax": np.minimum(90, lat + reach)}
    return pa.table({"id": rng.permutation(n), "tokens": words, **low, **high})
