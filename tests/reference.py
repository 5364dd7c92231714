"""An oracle that shares nothing with the library: sets of strings, Python comparisons, one pair at a time."""

from __future__ import annotations

import math
from typing import Any


def pairs(subscriptions: list[dict[str, Any]], messages: list[dict[str, Any]]) -> list[tuple[int, int]]:
    """All (message id, subscription id), sorted. Subscriptions hold `tokens`, `box` or `circle`, maybe `without`."""
    return sorted((m["id"], s["id"]) for m in messages for s in subscriptions if concerns(s, m))


def concerns(subscription: dict[str, Any], message: dict[str, Any]) -> bool:
    tokens = set(message["tokens"])
    if not set(subscription["tokens"]) <= tokens or set(subscription.get("without", ())) & tokens:
        return False
    if "circle" in subscription:
        x, y, km = subscription["circle"]
        return great_circle_km(x, y, message["box"][0], message["box"][1]) <= km
    a, b = subscription["box"], message["box"]
    return not (a[2] < b[0] or b[2] < a[0] or a[3] < b[1] or b[3] < a[1])


def great_circle_km(lon1: float, lat1: float, lon2: float, lat2: float) -> float:
    """By the angle between two unit vectors (atan2 of cross and dot): not the haversine of the library."""

    def vector(lon: float, lat: float) -> tuple[float, float, float]:
        a, b = math.radians(-180.0 if lon == 180.0 else lon), math.radians(lat)  # one meridian, one vector
        return math.cos(b) * math.cos(a), math.cos(b) * math.sin(a), math.sin(b)

    u, v = vector(lon1, lat1), vector(lon2, lat2)
    cross = (u[1] * v[2] - u[2] * v[1], u[2] * v[0] - u[0] * v[2], u[0] * v[1] - u[1] * v[0])
    return 6371.0088 * math.atan2(math.sqrt(sum(c * c for c in cross)), sum(a * b for a, b in zip(u, v, strict=True)))
