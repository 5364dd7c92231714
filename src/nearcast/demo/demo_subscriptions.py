"""Messages and subscriptions of the demo: the shipped sample; a few subscriptions by hand, and many drawn from it."""

from __future__ import annotations

import json
from importlib.resources import files
from typing import Any, NamedTuple

import pyarrow as pa

from nearcast.bench.workloads.subscriptions import draw_subscriptions
from nearcast.bench.workloads.tables import subscriptions_table as drawn_table
from nearcast.bench.workloads.text_corpus import text_corpus
from nearcast.bench.workloads.workload import Workload
from nearcast.tables import as_arrow

SAMPLE = "calgary_traffic_2024.csv.gz"
LICENCE = "Contains information licensed under the Open Government Licence - City of Calgary."
FIRST_DRAWN = 1001
SEED = 2024
KM_PER_DEGREE = 111.2  # of latitude; of longitude 69.9 at Calgary's 51 degrees
LON_PER_LAT = 1.59


class DemoSubscription(NamedTuple):
    """A subscription with a name and its place in words."""

    id: int
    name: str
    expression: str
    where: str
    region: str

    def row(self) -> dict[str, Any]:
        """The row of a subscriptions table."""
        return {"id": self.id, "expression": self.expression, "region": self.region}


def _polygon(*corners: tuple[float, float]) -> str:
    return json.dumps({"type": "Polygon", "coordinates": [[*corners, corners[0]]]})


# A strip of about 2 km: south along its western side, north along its eastern side.
_DEERFOOT = (
    (-114.018, 51.170), (-114.045, 51.150), (-114.060, 51.125), (-114.060, 51.095), (-114.045, 51.070),
    (-114.030, 51.045), (-114.018, 51.030), (-114.022, 51.017), (-114.050, 51.005), (-114.052, 50.955),
    (-114.035, 50.938), (-113.992, 50.930), (-113.990, 50.900), (-113.982, 50.855), (-113.950, 50.855),
    (-113.958, 50.900), (-113.958, 50.950), (-114.010, 50.963), (-114.020, 50.985), (-113.990, 51.005),
    (-113.986, 51.035), (-114.003, 51.060), (-114.018, 51.080), (-114.033, 51.100), (-114.033, 51.120),
    (-114.010, 51.145), (-113.990, 51.170),
)  # fmt: skip

_SOUTH = ((-114.16, 50.86), (-113.90, 50.86), (-113.90, 50.953), (-114.16, 50.953))

DEMO_SUBSCRIPTIONS = (
    DemoSubscription(
        1,
        "Airport shuttle",
        "incident AND (deerfoot OR stoney OR airport) NOT shoulder",
        "5 km round the airport",
        "circle(-114.013, 51.122, 5km)",
    ),
    DemoSubscription(
        2,
        "Safe walking downtown",
        "pedestrian OR cyclist",
        "3 km round the Calgary Tower",
        "circle(-114.063, 51.044, 3km)",
    ),
    DemoSubscription(3, "University desk", "", "1.5 km round the university", "circle(-114.130, 51.078, 1.5km)"),
    DemoSubscription(
        4, "Tow truck, south", "stalled OR (two vehicle blocking)", "south of Anderson Road", _polygon(*_SOUTH)
    ),
    DemoSubscription(
        5,
        "Deerfoot commuter",
        "deerfoot AND (northbound OR nb) AND blocking NOT shoulder",
        "along Deerfoot Trail",
        _polygon(*_DEERFOOT),
    ),
    DemoSubscription(6, "Signal crew", "signals AND (flashing OR blank)", "everywhere", "world"),
    DemoSubscription(7, "Ring road desk", "stoney multi-vehicle", "everywhere", "world"),
    DemoSubscription(
        8, "Anything unusual", "NOT incident", "3 km round Chinook Centre", "circle(-114.074, 50.998, 3km)"
    ),
)

REPLACED_SUBSCRIPTION = DemoSubscription(
    7, "Ring road desk", "stoney AND (multi-vehicle OR stalled)", "everywhere", "world"
)
NEW_SUBSCRIPTION = DemoSubscription(
    9, "Hospital entrance", "incident OR pedestrian", "2 km round Foothills", "circle(-114.133, 51.064, 2km)"
)
REMOVED_ID = 3
"""The changes in the middle of the stream: one subscription is replaced, one is added, one is removed."""


def changes_table() -> pa.Table:
    """The change log of the demo's stream."""
    inserts = [{"op": "insert", **each.row()} for each in (REPLACED_SUBSCRIPTION, NEW_SUBSCRIPTION)]
    return pa.Table.from_pylist([*inserts, {"op": "remove", "id": REMOVED_ID, "expression": None, "region": None}])


def sample_path() -> str:
    """The path of the shipped messages."""
    return str(files("nearcast.demo") / "sample" / SAMPLE)


def sample_messages() -> pa.Table:
    """The shipped messages: id, text, lon, lat, time."""
    return as_arrow(sample_path())


def subscriptions_table(messages: pa.Table, n_drawn: int) -> pa.Table:
    """The subscriptions written by hand and `n_drawn` others, as one table."""
    names = ("id", "name", "expression", "region")
    by_hand = pa.table({name: [getattr(each, name) for each in DEMO_SUBSCRIPTIONS] for name in names})
    return pa.concat_tables([by_hand, _drawn(messages, n_drawn)], promote_options="default")


def _drawn(messages: pa.Table, n: int) -> pa.Table:
    """Subscriptions to one to three words of a message, in a box of 0.2 to 20 km2 around its place."""
    workload = Workload("demo", n, seed=SEED, space=None, tokens=(1, 3), box_share=(2e-4, 2e-2))
    corpus = text_corpus(messages, workload)
    return drawn_table(draw_subscriptions(corpus, workload, 0, n), corpus.words(), FIRST_DRAWN)
