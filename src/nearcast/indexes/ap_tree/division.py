"""Chooses how to divide a node: by words, by place, or not at all."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from nearcast.arrays.jit import kernel
from nearcast.errors import InvalidInput
from nearcast.indexes.ap_tree import layout
from nearcast.indexes.ap_tree.cells import axis_of, chances_of, grid_counts, placed_edges
from nearcast.indexes.ap_tree.cuts import RankedRows, cost_of, distinct_keys, keyword_bounds
from nearcast.indexes.ap_tree.layout import covers
from nearcast.structures.expected_messages import ExpectedMessages

SAMPLE = 2048  # rows from which borders are chosen and the cost of a grid is estimated
FEWEST = 8  # rows of a child on average: with fewer, the child would take more memory than its rows
_SLACK = 1.5
GAIN = 0.9  # a division must leave at most this share of the cost
PRIORITIES, PARTITIONS = ("cost", "keyword", "space"), ("hr", "dp")


class Settings(NamedTuple):
    """The options of the method."""

    f: int = 200
    theta_p: int = 40
    partition: str = "hr"
    priority: str = "cost"
    copies: float = 4.0
    theta_kl: float = 0.001
    rebuild: bool = True

    def check(self) -> None:
        for name, least, what in (("f", 2, "the most children of a node"), ("theta_p", 1, "the most rows of a leaf")):
            value = getattr(self, name)
            if not isinstance(value, int) or isinstance(value, bool) or value < least:
                raise InvalidInput(f"{name}, {what}, is a whole number, {least} or more; it is {value!r}")
        for name, choices in (("partition", PARTITIONS), ("priority", PRIORITIES)):
            if getattr(self, name) not in choices:
                raise InvalidInput(f"{name} is one of {', '.join(choices)}; it is {getattr(self, name)!r}")
        if not self.theta_kl >= 0:
            raise InvalidInput(f"theta_kl, the divergence that a node may have, is 0 or more; it is {self.theta_kl!r}")
        if not isinstance(self.rebuild, bool):
            raise InvalidInput(f"rebuild is true or false; it is {self.rebuild!r}")
        if not self.copies >= 1:
            raise InvalidInput(f"copies, of a row on average, are 1 or more; they are {self.copies!r}")


class Cuts(NamedTuple):
    """A division by words."""

    cost: float
    level: int  # which of a row's ranks decides, from 0 on
    lows: np.ndarray  # int32[cuts]
    highs: np.ndarray  # int32[cuts]


class Grid(NamedTuple):
    """A division by place."""

    cost: float
    across: np.ndarray  # float64[columns - 1]
    down: np.ndarray  # float64[rows - 1]


class Undivided(NamedTuple):
    """A node that is to be divided."""

    items: np.ndarray  # int32[n]  positions in the ranked rows
    level: int  # the first of their ranks in which they may differ
    region: np.ndarray  # float64[4]
    copies: float  # of a row that may yet be made


class Divider:
    """Finds the best division of a node."""

    def __init__(self, rows: RankedRows, settings: Settings, expected: ExpectedMessages) -> None:
        self.rows = rows
        self.settings = settings
        self.expected = expected

    def best(self, node: Undivided, flags: int) -> Cuts | Grid | None:
        """The best division; None if none makes the node cheaper or separates two of its rows."""
        first = {"cost": None, "keyword": layout.BY_WORDS, "space": layout.BY_PLACE}[self.settings.priority]
        if first is not None and flags & first:
            preferred = self._by_words(node) if first == layout.BY_WORDS else self._by_place(node)
            if preferred is not None:
                return preferred
            flags &= ~first
        words = self._by_words(node) if flags & layout.BY_WORDS else None
        place = self._by_place(node) if flags & layout.BY_PLACE else None
        if words is None or place is None:
            return words if place is None else place
        return words if words.cost < place.cost else place

    def _parts(self, n: int) -> int:
        return min(self.settings.f, max(2, n // FEWEST))

    def _by_words(self, node: Undivided) -> Cuts | None:
        n = len(node.items)
        keys = np.empty(n, np.int32)
        level = first_difference(self.rows, node.items, node.level, keys)
        if level < 0:
            return None
        keys = np.sort(keys[keys > 0])
        values, rows = np.empty(len(keys), np.int32), np.empty(len(keys) + 1, np.int64)
        chances = np.empty(len(keys) + 1)
        m = distinct_keys(keys, self.expected.chances, values, rows, chances)  # in NumPy, a build takes 8 % longer
        rows, chances = rows[: m + 1], chances[: m + 1]
        bounds = keyword_bounds(rows, chances, self._parts(n), self.settings.partition == "dp")
        cost = cost_of(rows, chances, bounds) + (n - len(keys))
        if cost > GAIN * n:
            return None
        return Cuts(cost, level, values[bounds[:-1]], values[bounds[1:] - 1])

    def _by_place(self, node: Undivided) -> Grid | None:
        n, parts = len(node.items), self._parts(len(node.items))
        boxes = self.rows.boxes[node.items[:: -(-n // SAMPLE)]]
        messages = self.expected.boxes_within(node.region)
        x, y = axis_of(boxes, messages, node.region, 0), axis_of(boxes, messages, node.region, 1)
        parts = _affordable(parts, node.copies, *mean_sides(boxes, node.region))
        while parts >= 2:
            columns = int(parts**0.5 + 0.5)
            columns, lines = max(columns, parts // columns), min(columns, parts // columns)
            if x.high - x.low < y.high - y.low:
                columns, lines = lines, columns
            across, down = placed_edges(x, columns), placed_edges(y, lines)
            counts, covering = grid_counts(boxes, node.region, across, down)
            copied, largest = counts.sum() + covering, max(counts.max(), covering)
            if copied <= node.copies * len(boxes) and largest < len(boxes):
                chances = np.outer(chances_of(y, down), chances_of(x, across))
                cost = (float((counts * chances).sum()) + covering) * n / len(boxes)
                return Grid(cost, across, down) if cost <= GAIN * n else None
            parts //= 2
        return None


def _affordable(parts: int, copies: float, width: float, height: float) -> int:
    """The number of cells to try first, given the mean sides of boxes as shares of the region's sides.

    An even grid of c x c cells makes (1 + width x c) x (1 + height x c) copies. A well placed grid makes fewer, hence
    the slack.
    """
    while parts >= 2 and (1 + width * parts**0.5) * (1 + height * parts**0.5) > _SLACK * copies:
        parts //= 2
    return parts


@kernel
def mean_sides(boxes, region):
    """The mean width and height of boxes as shares of the region's, without the boxes that cover the region."""
    wide, high, n = 0.0, 0.0, 0
    width, height = region[2] / 2 - region[0] / 2, region[3] / 2 - region[1] / 2
    for i in range(len(boxes)):
        if not covers(boxes[i], region):
            wide += max(0.0, min(boxes[i, 2], region[2]) / 2 - max(boxes[i, 0], region[0]) / 2)
            high += max(0.0, min(boxes[i, 3], region[3]) / 2 - max(boxes[i, 1], region[1]) / 2)
            n += 1
    return (wide / width / n if width > 0.0 and n else 0.0), (high / height / n if height > 0.0 and n else 0.0)


@kernel
def first_difference(rows, items, level, keys):
    """The first level, from `level` on, at which the ranks of two items differ; -1 if there is none.

    Write the items' ranks at that level to `keys`: 0 for an item with fewer ranks.
    """
    while True:
        longer, differ = False, False
        for i in range(len(items)):
            at = rows.starts[items[i]] + level
            keys[i] = rows.ranks[at] if at < rows.starts[items[i] + 1] else 0
            longer = longer or keys[i] > 0
            differ = differ or keys[i] != keys[0]
        if differ or not longer:
            return level if differ else -1
        level += 1
