"""Plain inverted lists with buffers: no pruning on arrival.

Paper      baseline
Idea       A message is scored for every subscription that shares a term with it; buffers and refills are those of the
           default.
Layout     A linked list of postings for each term; buffers of the best messages for each subscription.
Cost       An arrival takes time proportional to the postings of the message's terms.
Deviates   nothing
"""

from __future__ import annotations

from nearcast.geo.space import Space
from nearcast.topk.buffered.buffered_method import BufferedTop
from nearcast.topk.dissemination.contract import Dissemination
from nearcast.topk.dissemination.plain_lists import PlainLists
from nearcast.topk.rows import TopRows
from nearcast.topk.score import Metric
from nearcast.topk.window import Window


class PlainTop(BufferedTop):
    """Scores every subscription that shares a term."""

    name = "term-lists"
    paper = "baseline"
    checked_with = ("", "refill=kmax", "refill=skyband")

    def __init__(self, rows: TopRows, window: Window, metric: Metric, space: Space, refill: str = "raising") -> None:
        super().__init__(rows, window, metric, space, refill)

    def make_dissemination(self) -> Dissemination:
        return PlainLists(self.rows, self.metric)
