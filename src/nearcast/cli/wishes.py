"""Who listens in the demo: a few subscriptions written by hand, and many drawn from the messages themselves."""

from __future__ import annotations

import json
from importlib.resources import as_file, files
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    import numpy as np
    import pyarrow as pa

SAMPLE = "calgary_traffic_2024.csv.gz"
LICENCE = "Contains information licensed under the Open Government Licence - City of Calgary."
FIRST_DRAWN = 1001
SEED = 2024
KM_PER_DEGREE = 111.2  # of latitude; of longitude 69.9 at Calgary's 51 degrees
LON_PER_LAT = 1.59
_BOX = ("xmin", "ymin", "xmax", "ymax")


class Wish(NamedTuple):
    """A subscription with a name."""

    id: int
    name: str
    expression: str
    where: str
    region: str


def _polygon(*corners: tuple[float, float]) -> str:
    return json.dumps({"type": "Polygon", "coordinates": [[*corners, corners[0]]]})


WISHES = (
    Wish(
        1,
        "Airport shuttle",
        "incident AND (deerfoot OR stoney OR airport) NOT shoulder",
        "5 km round the airport",
        "circle(-114.013, 51.122, 5km)",
    ),
    Wish(
        2,
        "Safe walking downtown",
        "pedestrian OR cyclist",
        "3 km round the Calgary Tower",
        "circle(-114.063, 51.044, 3km)",
    ),
    Wish(3, "University desk", "", "1.5 km round the university", "circle(-114.130, 51.078, 1.5km)"),
    Wish(
        4,
        "Tow truck, south",
        "stalled OR (two vehicle blocking)",
        "south of Anderson Road",
        _polygon((-114.16, 50.86), (-113.90, 50.86), (-113.90, 50.953), (-114.16, 50.953)),
    ),
    Wish(
        5,
        "Deerfoot commuter",
        "deerfoot AND (northbound OR nb) AND blocking NOT shoulder",
        "along Deerfoot Trail",
        _polygon((-114.05, 51.15), (-113.99, 51.15), (-113.97, 50.96), (-113.96, 50.88), (-114.02, 50.88), (-114.02, 51.03)),
    ),
    Wish(6, "Signal crew", "signals AND (flashing OR blank)", "everywhere", "world"),
    Wish(7, "Ring road desk", "stoney multi-vehicle", "everywhere", "world"),
    Wish(8, "Anything unusual", "NOT incident", "4 km round the city hall", "circle(-114.057, 51.046, 4km)"),
)


def sample_messages() -> pa.Table:
    """The shipped messages: id, text, lon, lat, time."""
    from nearcast.tables import as_arrow

    with as_file(files("nearcast.cli") / "sample" / SAMPLE) as path:
        return as_arrow(path)


def subscriptions_table(messages: pa.Table, n_drawn: int) -> pa.Table:
    """The wishes and `n_drawn` others, as one subscriptions table."""
    import pyarrow as pa

    written = {
        "id": [wish.id for wish in WISHES],
        "name": [wish.name for wish in WISHES],
        "expression": [wish.expression for wish in WISHES],
        "region": [wish.region for wish in WISHES],
    }
    return pa.concat_tables([pa.table(written), _drawn(messages, n_drawn)], promote_options="default")


def _drawn(messages: pa.Table, n: int) -> pa.Table:
    """One to three words of some message, and a box of 1 to 8 km round its place: somebody who lives there and cares."""
    import numpy as np
    import pyarrow as pa

    from nearcast.text.analyser import Analyser

    rng = np.random.default_rng(SEED)
    sources = rng.integers(0, messages.num_rows, n)
    texts = messages["text"].combine_chunks().take(pa.array(sources))
    words = Analyser(stop_words="en").tokens_batch(texts).to_pylist()
    boxes = _boxes(rng, np.column_stack([messages["lon"], messages["lat"]])[sources])
    columns: dict[str, Any] = {
        "id": np.arange(FIRST_DRAWN, FIRST_DRAWN + n),
        "tokens": pa.array([_some(rng, found) for found in words], pa.list_(pa.string())),
    }
    return pa.table(columns | dict(zip(_BOX, boxes.T, strict=True)))


def _some(rng: np.random.Generator, words: list[str]) -> list[str]:
    distinct = sorted(set(words))
    wanted = min(int(rng.integers(1, 4)), len(distinct))
    return [distinct[k] for k in rng.choice(len(distinct), wanted, replace=False)]


def _boxes(rng: np.random.Generator, places: np.ndarray) -> np.ndarray:
    import numpy as np

    sides_km = np.exp(rng.uniform(np.log(1.0), np.log(8.0), (len(places), 2)))
    half = sides_km / 2 / KM_PER_DEGREE * np.array([LON_PER_LAT, 1.0])
    middles = places + (rng.random((len(places), 2)) - 0.5) * half
    return np.hstack([middles - half, middles + half])
