"""Drawn subscriptions and messages as the calls that an `Engine` takes."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np

from nearcast.bench.workloads.corpus import Corpus, message_group
from nearcast.bench.workloads.expressions import draw_shapes, expression_texts
from nearcast.bench.workloads.regions import draw_regions
from nearcast.bench.workloads.subscriptions import draw_subscriptions
from nearcast.bench.workloads.times import expiry_times
from nearcast.bench.workloads.workload import Workload
from nearcast.geo.circle import CircleRegion
from nearcast.geo.region import Region
from nearcast.geo.space import LONLAT
from nearcast.model import NEVER
from nearcast.text.analyser import Analyser

_START = datetime(1970, 1, 1, tzinfo=UTC)


def subscribe_calls(corpus: Corpus, workload: Workload, start: int, stop: int) -> list[dict[str, Any]]:
    """Arguments of `Engine.subscribe` for subscriptions number start .. stop - 1; their ids are their numbers."""
    drawn = draw_subscriptions(corpus, workload, start, stop)
    texts = expression_texts(drawn, draw_shapes(workload, drawn, start), corpus.words())
    regions = draw_regions(workload, drawn, start)
    shaped = dict(zip(regions.positions.tolist(), regions.regions, strict=True))
    expires = expiry_times(workload, start, drawn.size).tolist()
    calls = []
    for k, box in enumerate(drawn.boxes.tolist()):
        call = {"expression": texts[k], "id": start + k} | _place(shaped.get(k), tuple(box))
        if expires[k] != NEVER:
            call["expires"] = _START + timedelta(microseconds=expires[k])
        calls.append(call)
    return calls


def _place(region: Region | None, box: tuple[float, ...]) -> dict[str, Any]:
    if isinstance(region, CircleRegion):
        return {"near": (region.x, region.y), "km": region.radius}
    if region is not None:
        return {"region": region.to_geojson()}
    return {} if box == LONLAT.bounds else {"box": box}


def publish_calls(corpus: Corpus, workload: Workload, group: str, n: int) -> list[tuple[int, str, tuple[float, float]]]:
    """(number, text, place) of the first n messages of a point group whose words are the tokens of their text."""
    drawn = message_group(corpus, workload, group, np.arange(n))
    words, analyser = corpus.words(), Analyser()
    starts, boxes = drawn.starts.tolist(), drawn.boxes.tolist()
    calls = []
    for number in range(drawn.size):
        own = words.take(drawn.terms[starts[number] : starts[number + 1]]).to_pylist()
        text = " ".join(own)
        if analyser.tokens(text) == own:
            calls.append((number, text, (boxes[number][0], boxes[number][1])))
    return calls
