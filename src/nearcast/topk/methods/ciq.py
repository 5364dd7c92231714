"""CIQ: subscriptions in several covering cells, read subscription by subscription. The competitor in the Skype paper.

Paper      Skype, sections 2.2 and 7.1, after Chen et al. 2015 without its decay of time.
Idea       A subscription is filed in 16 quadtree cells that cover the space, each with the least cosine that matters
           there. A message reads the lists of its terms in the cells that contain it, in the order of subscriptions.
Layout     Lists by (cell, term) in a hash table; postings of 28 bytes, 16 for each term of a subscription.
Cost       An arrival reads all postings of its terms in its cells; a change of theta writes all postings of a
           subscription.
Deviates   Five levels of a fixed quadtree, so 16 cells a subscription; subscriptions are added in bulk, and the few
           that are new are in plain lists.
"""

from __future__ import annotations

from nearcast.geo.space import Space
from nearcast.topk.buffered.buffered_method import BufferedTop
from nearcast.topk.dissemination.ciq import Ciq
from nearcast.topk.dissemination.contract import Dissemination
from nearcast.topk.rows import TopRows
from nearcast.topk.score import Metric
from nearcast.topk.window import Window


class CiqTop(BufferedTop):
    """The paper pairs it with `kmax` buffers."""

    name = "ciq"
    paper = "skype"
    checked_with = ("", "refill=cskyband")

    def __init__(self, rows: TopRows, window: Window, metric: Metric, space: Space, refill: str = "kmax") -> None:
        super().__init__(rows, window, metric, space, refill)

    def make_dissemination(self) -> Dissemination:
        return Ciq(self.rows, self.metric, self.space)
