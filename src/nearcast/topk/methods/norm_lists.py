"""Lists by term and remaining norm, with buffers whose limit rises when they are full: the default for kind `top`.

Paper      nearcast
Idea       A subscription is filed under each of its terms, by how many terms follow in order of weight. A list is
           ordered by the least message norm that can reach the subscription's buffer, so a search stops early; what it
           scans, it tests by five products on flat arrays. Buffers keep runners-up, raise their limit when full, and
           are refilled by a best-first search.
Layout     Slots of 34 bytes by list and bucket; buffers of 12 bytes an entry; postings of 24 bytes by term in k-d
           order.
Cost       An arrival scans the slots of its terms up to its norm; an expiry looks at the rows whose oldest message it
           is.
Deviates   nothing
"""

from __future__ import annotations

from nearcast.geo.space import Space
from nearcast.topk.buffered.buffered_method import BufferedTop
from nearcast.topk.dissemination.contract import Dissemination
from nearcast.topk.dissemination.norm_lists import NormLists
from nearcast.topk.rows import TopRows
from nearcast.topk.score import Metric
from nearcast.topk.window import Window


class NormListsTop(BufferedTop):
    """The default."""

    name = "norm-lists"
    paper = "nearcast"
    checked_with = ("", "refill=kmax")

    def __init__(self, rows: TopRows, window: Window, metric: Metric, space: Space, refill: str = "raising") -> None:
        super().__init__(rows, window, metric, space, refill)

    def make_dissemination(self) -> Dissemination:
        return NormLists(self.rows, self.metric, self.embedding)
