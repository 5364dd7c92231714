"""Skype: the paper's index of subscriptions and its cost-based k-skyband buffers.

Paper      Skype, sections 5 (dissemination) and 6 (re-evaluation).
Idea       A quadtree over subscriptions has inverted files in its leaves, in groups by alpha and sorted by theta.
           Bounds on place and words exclude cells, groups, the ends of groups, and single subscriptions. Buffers keep
           as many messages as a cost model says.
Layout     Cells; posting lists by term and leaf, side by side; postings of 50 bytes by group; buffers of 10 bytes an
           entry.
Cost       An arrival visits the cells that it can reach, then reads the groups of its terms in the leaves among them.
Deviates   Lists are read term by term, not leaf by leaf, so that those of a term are neighbours in memory. The words
           of the terms seen so far are summed exactly, since skipped groups would leave some out and the bound on
           unseen terms would then be wrong. On the sphere the outer bound is that of a cell's box in three
           dimensions. Alpha near 1 and near 0 have no text and no spatial limit. Rows are added in bulk; the few that
           are new are in plain lists. The message index is ours, not an IR-tree.
"""

from __future__ import annotations

from nearcast.errors import InvalidInput
from nearcast.geo.space import Space
from nearcast.topk.buffered.buffered_method import BufferedTop
from nearcast.topk.dissemination.contract import Dissemination
from nearcast.topk.dissemination.igpt import Igpt, Places
from nearcast.topk.rows import TopRows
from nearcast.topk.score import Metric
from nearcast.topk.window import Window

PRUNES = ("igpt", "ipt")


class SkypeTop(BufferedTop):
    """`prune="ipt"` leaves out the bounds on groups and cells."""

    name = "skype"
    paper = "skype"
    checked_with = ("", "leaf=4", "leaf=4 prune=ipt refill=kmax", "leaf=2 refill=skyband")

    def __init__(
        self,
        rows: TopRows,
        window: Window,
        metric: Metric,
        space: Space,
        prune: str = "igpt",
        refill: str = "cskyband",
        leaf: int = 1000,
    ) -> None:
        if not isinstance(leaf, int) or isinstance(leaf, bool) or leaf < 1:
            raise InvalidInput(f"leaf is {leaf!r}; it is a number of subscriptions, 1 or more", column="leaf")
        self.leaf = leaf
        if prune not in PRUNES:
            raise InvalidInput(f"prune is {prune!r}; it is one of {', '.join(PRUNES)}", column="prune")
        self.prune = prune
        super().__init__(rows, window, metric, space, refill)

    def make_dissemination(self) -> Dissemination:
        places = Places(self.space, self.embedding)
        return Igpt(self.rows, self.metric, places, self.prune == "igpt", self.leaf)
