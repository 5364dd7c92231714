"""Every method against `brute` on real texts at real places. Skipped where the large files are absent."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pytest

import nearcast as nc
from nearcast.arrays.jit import JIT_DISABLED

N_MESSAGES, N_SUBSCRIPTIONS = (60, 150) if JIT_DISABLED else (3_000, 10_000)
FILES = ["airbnb_nyc_2019", "osm_notes", "geonames_cities500", "calgary_traffic_2024", "simplegeo_us_pois"]


def sampled(folder: Path, name: str) -> pa.Table:
    table = pyarrow.csv.read_csv(
        folder / f"{name}.csv.gz", parse_options=pyarrow.csv.ParseOptions(newlines_in_values=True)
    )
    rows = np.random.default_rng(1).permutation(table.num_rows)[:N_MESSAGES]
    part = table.take(pa.array(np.sort(rows)))
    return pa.table(
        {"id": np.arange(len(rows)), "text": part["text"].cast(pa.string()), "lon": part["lon"], "lat": part["lat"]}
    )


def drawn_subscriptions(messages: pa.Table) -> pa.Table:
    """One to four words of a message, in a box of 100 m to 200 km round its place."""
    rng = np.random.default_rng(2)
    tokens = nc.Analyser().tokens_batch(messages["text"]).to_pylist()
    picked = rng.integers(0, messages.num_rows, N_SUBSCRIPTIONS)
    words = [sorted(set(rng.permutation(tokens[k] or ["none"])[: rng.integers(1, 5)].tolist())) for k in picked]
    reach = 10 ** rng.uniform(-3, 0.3, N_SUBSCRIPTIONS)
    lon, lat = messages["lon"].to_numpy()[picked], messages["lat"].to_numpy()[picked]
    return pa.table(
        {
            "id": rng.permutation(N_SUBSCRIPTIONS),
            "tokens": words,
            "xmin": np.maximum(-180, lon - reach),
            "ymin": np.maximum(-90, lat - reach),
            "xmax": np.minimum(180, lon + reach),
            "ymax": np.minimum(90, lat + reach),
        }
    )


@pytest.mark.data
@pytest.mark.parametrize("name", FILES)
def test_every_method_agrees_with_brute_on_real_data(large_data: Path, name: str) -> None:
    messages = sampled(large_data, name)
    subscriptions = drawn_subscriptions(messages)
    wanted = nc.build_index(subscriptions, method="brute").match(messages)
    assert wanted.num_rows > N_SUBSCRIPTIONS / 2, "each subscription matches at least its own message, mostly"
    for info in nc.methods():
        found = nc.build_index(subscriptions, method=info.name).match(messages)
        assert found.equals(wanted), info.name
