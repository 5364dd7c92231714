"""The place of a subscription, as arguments of `Engine.subscribe`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from nearcast.arguments import a_number
from nearcast.errors import InvalidInput
from nearcast.geo.circle import CircleRegion
from nearcast.geo.geojson import KM_PER, parse_region
from nearcast.geo.region import WORLD, BoxRegion, Region, box_region
from nearcast.geo.space import Space


def read_place(
    near: Any, radius: Mapping[str, float | None], box: Any, region: Any, space: Space, is_point: bool = False
) -> Region:
    """The region of the arguments: near= with a radius (km=, m= or miles=), box= or region=; the world without any.

    With `is_point`, near= needs no radius.
    """
    if sum(given is not None for given in (near, box, region)) > 1:
        raise InvalidInput("give one of near=, box= and region=")
    radii = {unit: value for unit, value in radius.items() if value is not None}
    if len(radii) > 1:
        raise InvalidInput(f"give one of {', '.join(f'{unit}=' for unit in radii)}", column="km")
    if is_point and not radii and near is not None:
        x, y = numbers_of(near, 2, "near")
        return BoxRegion(x, y, x, y, space.planar)
    if (near is None) != (not radii):
        raise InvalidInput("near= and km= (or m=, miles=) go together: near=(x, y), km=2")
    if near is not None:
        x, y = numbers_of(near, 2, "near")
        ((unit, value),) = radii.items()
        if space.planar and unit != "km":
            raise InvalidInput(f"a plane has no {unit}; give the radius in its units, as km=", column=unit)
        return CircleRegion(x, y, _radius(unit, value), planar=space.planar)
    if box is not None:
        return box_region(numbers_of(box, 4, "box"), space)
    return WORLD if region is None else parse_region(region, space)


def _radius(unit: str, value: Any) -> float:
    """The radius in kilometres."""
    number = a_number(value, unit)
    return number / 1000.0 if unit == "m" else number * KM_PER[unit]


def floats_of(values: Any) -> list[float]:
    """The values as numbers; none where they are not numbers."""
    try:
        return [] if isinstance(values, np.ma.MaskedArray) else [float(value) for value in values]
    except (TypeError, ValueError, OverflowError):
        return []


def numbers_of(values: Any, n: int, name: str) -> list[float]:
    """The n numbers of an argument."""
    made = floats_of(values)
    if len(made) != n:
        raise InvalidInput(f"{name}= takes {n} numbers, not {values!r}", column=name)
    return made
