"""Small tables full of what goes wrong: borders, the antimeridian, whole worlds, no tokens, OR, NOT, hot spots."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pyarrow as pa

WORDS = [*"abcdefgh", "naïve", "日本", "x\0y", "#tag"]
_SEAM = json.dumps({"type": "Polygon", "coordinates": [[[178, -2], [-178, -2], [-178, 3], [178, 3], [178, -2]]]})
_REGIONS = ["world", "circle(0, 0, 300km)", "circle(179.9, 1, 150km)", "circle(3, 89.9, 500km)", _SEAM]
_HOUR = 3_600_000_000


def nasty_subscriptions(seed: int, n: int) -> pa.Table:
    """Ids are scattered; a third has an expression, a fifth a region, some expire."""
    rng = np.random.default_rng(seed)
    rows = [_subscription(rng) for _ in range(n)]
    ids = rng.permutation(10 * n)[:n] - 2 * n
    schema = pa.schema(
        [("tokens", pa.list_(pa.string())), ("expression", pa.string()), ("region", pa.string())]
        + [(name, pa.float64()) for name in ("xmin", "ymin", "xmax", "ymax")]
        + [("expires", pa.timestamp("us", "UTC"))]
    )
    return pa.Table.from_pylist(rows, schema).add_column(0, "id", pa.array(ids, pa.int64()))


def _subscription(rng: np.random.Generator) -> dict[str, Any]:
    row: dict[str, Any] = {}
    words = rng.choice(WORDS[:8], rng.integers(0, 4)).tolist()
    if rng.random() < 0.33 and words:
        a, b = [*words, "a"][:2]
        row["expression"] = rng.choice(
            [f"{a} OR {b}", f"{a} NOT {b}", f"NOT {a}", f"({a} OR {b}) AND h", f"{a} NOT {a}"]
        )
    else:
        row["tokens"] = rng.choice(WORDS, rng.integers(0, 4)).tolist()
    if rng.random() < 0.2:
        row["region"] = rng.choice(_REGIONS)
    else:
        row |= dict(zip(("xmin", "ymin", "xmax", "ymax"), _box(rng), strict=True))
    if rng.random() < 0.2:
        row["expires"] = int(rng.integers(0, 10)) * _HOUR
    return row


def _box(rng: np.random.Generator) -> tuple[float, float, float, float]:
    """Whole degrees, so that borders meet messages and cuts; some are points, some are giants."""
    x, y = int(rng.integers(-8, 9)), int(rng.integers(-8, 9))
    reach = rng.choice([0, 1, 3, 200], p=[0.3, 0.4, 0.2, 0.1])
    low, high = (max(-180, x - reach), max(-90, y - reach)), (min(180, x + reach), min(90, y + reach))
    return float(low[0]), float(low[1]), float(high[0]), float(high[1])


def nasty_messages(seed: int, n: int, hot: float = 0.3) -> pa.Table:
    """Points and ranges in one table, `hot` of them at one spot, some on the seam and the poles; ids are scattered."""
    rng = np.random.default_rng(seed)
    points = rng.integers(-8, 9, (n, 2)).astype(float)
    points[rng.random(n) < hot] = (2.0, 3.0)
    for k, corner in enumerate([(180.0, 0.0), (-180.0, 1.0), (0.0, 90.0), (10.0, -90.0)]):
        points[k::37] = corner
    is_range = rng.random(n) < 0.3
    reach = rng.integers(0, 6, (n, 2))
    columns: dict[str, Any] = {
        "id": rng.permutation(5 * n)[:n] - n,
        "tokens": [rng.choice([*WORDS, "unknown"], rng.integers(0, 6)).tolist() for _ in range(n)],
        "x": np.where(is_range, np.nan, points[:, 0]),
        "y": np.where(is_range, np.nan, points[:, 1]),
    }
    columns |= {
        "xmin": np.where(is_range, np.maximum(-180, points[:, 0] - reach[:, 0]), np.nan),
        "ymin": np.where(is_range, np.maximum(-90, points[:, 1] - reach[:, 1]), np.nan),
        "xmax": np.where(is_range, np.minimum(180, points[:, 0] + reach[:, 0]), np.nan),
        "ymax": np.where(is_range, np.minimum(90, points[:, 1] + reach[:, 1]), np.nan),
    }
    times = pa.array(rng.integers(0, 10, n) * _HOUR, pa.timestamp("us", "UTC"))
    return pa.table(columns).append_column("time", times)
