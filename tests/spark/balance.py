"""What tests of the balance between shards have in common."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv

from nearcast.sharding.planning.workload_sample import MATCH_NS, MESSAGE_NS

MOST_UNEVEN = 1.5
N_MESSAGES = 12_000
FILES = ["airbnb_nyc_2019", "osm_notes", "geonames_cities500", "calgary_traffic_2024", "simplegeo_us_pois"]
_NODE_NS, _CANDIDATE_NS = 60.0, 1.0


def work_of(index: Any, visitors: pa.Table) -> float:
    """Nanoseconds of these messages, by the work that the index counts."""
    index.match(visitors)
    done = index.stats
    found = _NODE_NS * done.nodes + _CANDIDATE_NS * done.candidates + MATCH_NS * done.matches
    return float(MESSAGE_NS * visitors.num_rows + found)


def shuffled(messages: pa.Table) -> pa.Table:
    return messages.take(pa.array(np.random.default_rng(1).permutation(messages.num_rows)[:N_MESSAGES]))


def read_real(folder: Path, name: str) -> pa.Table:
    """One of FILES, as messages."""
    options = pyarrow.csv.ParseOptions(newlines_in_values=True)
    table = pyarrow.csv.read_csv(folder / f"{name}.csv.gz", parse_options=options)
    table = table.select(["text", "lon", "lat"]).append_column("id", pa.array(np.arange(table.num_rows)))
    return table.set_column(0, "text", table["text"].cast(pa.string()))


def reach_of(name: str) -> tuple[float, float]:
    """How far subscriptions over one of FILES reach, in degrees."""
    return (0.001, 0.03) if name in ("airbnb_nyc_2019", "calgary_traffic_2024") else (0.003, 0.3)
