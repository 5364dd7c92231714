"""Drawn subscriptions as rows with their shapes, for methods below tables and strings."""

from __future__ import annotations

from nearcast.bench.workloads.corpus import DrawnItems
from nearcast.bench.workloads.expressions import subscription_rows
from nearcast.bench.workloads.regions import draw_regions, with_regions
from nearcast.bench.workloads.times import expiry_times
from nearcast.bench.workloads.workload import Workload
from nearcast.geo.shapes.columns import NO_SHAPES, ShapeColumns
from nearcast.model import RowBatch


def rows_and_shapes(workload: Workload, drawn: DrawnItems, first: int) -> tuple[RowBatch, ShapeColumns]:
    """The subscriptions from number `first` on: a row for each clause and box, and the circles and polygons."""
    batch = subscription_rows(workload, drawn, first)
    if workload.expiring_share:
        batch = batch._replace(expires=expiry_times(workload, first, drawn.size)[batch.owner_ids - first])
    regions = draw_regions(workload, drawn, first)
    if not len(regions.positions):
        return batch, NO_SHAPES
    return with_regions(batch, regions, first, workload.geometry)
