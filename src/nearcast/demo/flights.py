"""Real tracks and invented weather: aircraft over Switzerland for 45 minutes, and ten reports in their way."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from importlib.resources import files

import pyarrow as pa

from nearcast.tables import as_arrow

FLIGHTS = "flights_switzerland_20180801.csv.gz"
ONE_O_CLOCK = datetime(2018, 8, 1, 13, 0, tzinfo=UTC)

_REPORTS = (
    (1, "Thunderstorm, tops above flight level 380", 6.95, 46.95, 30, 55),
    (2, "Severe turbulence reported", 7.60, 47.55, 30, 58),
    (3, "Hail", 8.20, 47.10, 35, 66),
    (4, "Thunderstorm, moving east", 9.30, 47.20, 40, 72),
    (5, "Turbulence ahead of the front", 10.10, 47.10, 45, 75),
    (6, "Fog at the airport", 8.55, 47.46, 30, 75),
    (7, "Turbulence, cleared", 6.60, 46.40, 33, 75),
    (8, "Thunderstorm", 7.40, 46.20, 38, 60),
    (9, "Hail, drifting north", 9.00, 46.00, 42, 70),
    (10, "Severe turbulence over the ridge", 8.60, 47.30, 50, 60),
)
"""Id, text, lon, lat, and the minutes after 13:00 UTC at which the report is published and expires."""


def sample_flights() -> pa.Table:
    """The shipped positions in order of time: aircraft, call_sign, time, lon, lat, altitude_ft, track_deg.

    The column `track_deg` is the direction of flight: 0 is north, 90 is east.
    """
    return as_arrow(str(files("nearcast.demo") / "sample" / FLIGHTS))


def weather_reports() -> pa.Table:
    """Invented reports for the same 45 minutes: id, text, lon, lat, time, expires."""
    ids, texts, lons, lats, begins, ends = (list(column) for column in zip(*_REPORTS, strict=True))
    times, expires = ([ONE_O_CLOCK + timedelta(minutes=minute) for minute in each] for each in (begins, ends))
    return pa.table({"id": ids, "text": texts, "lon": lons, "lat": lats, "time": times, "expires": expires})
