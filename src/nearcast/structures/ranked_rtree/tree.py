"""Base class of the rank methods over an R-tree, and their search.

Far rows come from the lists at the root, near rows from a descent. A message meets a row of place 0 at the root only
(scoring.py), and any other row only in the nodes below. How the descent finds near rows depends on the style:
set_search.py for `EVERY` and `PREFIX`, level_search.py for `LEVELS`.
"""

from __future__ import annotations

from typing import ClassVar, cast

import numpy as np

from nearcast.arrays.jit import kernel
from nearcast.matching.predicate import mark_terms
from nearcast.matching.row_params import RankParams
from nearcast.model import Hits, MessageBatch, Work
from nearcast.structures.ranked_rtree.annotations import NodeAnnotations
from nearcast.structures.ranked_rtree.level_search import Visit, count_visited, score_visited, visit_levels
from nearcast.structures.ranked_rtree.scoring import (
    Found,
    Message,
    far_entries,
    is_scan_cheaper,
    score_all,
    score_far,
    weighty_terms,
)
from nearcast.structures.ranked_rtree.set_search import known_with_rests, score_leaves, visit_sets
from nearcast.structures.ranked_rtree.terms import LEVELS, RankedRows
from nearcast.structures.rtree.tree_method import TreeMethod


class RankTree(TreeMethod):
    """Subclasses set the style in which rows are filed (see terms.py)."""

    kind = "rank"
    takes_termless_rows = True
    style: ClassVar[int]
    effort_ceiling = 0.2  # all rows are read where that is cheaper
    annotated_by = NodeAnnotations

    def view(self) -> RankedRows:
        return RankedRows(self.store.arrays, cast(RankParams, self.store.params).arrays, self.style)

    def match(self, messages: MessageBatch) -> tuple[Hits, Work]:
        """Nodes: those visited, with the root. Candidates: entries of lists and rows of leaves read, or all rows."""
        marks, starts = np.zeros(self.store.n_terms, np.uint8), np.zeros(messages.size + 1, np.int64)
        views = self.tree.arrays, self.annotations.arrays, self.view()
        rows, scores, nodes, seen = _search(*views, messages, marks, starts)
        return Hits(rows, starts, scores), Work(nodes, seen, len(rows))


@kernel
def _search(tree, annotations, ranked, messages, marks, starts):
    found, n, nodes, seen = Found(np.empty(1024, np.int32), np.empty(1024)), 0, 0, 0
    for m in range(len(starts) - 1):
        mark_terms(marks, messages, m, 1)
        message = Message(marks, messages.boxes[m])
        terms = messages.terms[messages.term_starts[m] : messages.term_starts[m + 1]]
        weighty = weighty_terms(ranked, terms)
        if ranked.style == LEVELS:
            visited, places = visit_levels(tree, annotations.bounds, message.box)
            n_listed, n_in_leaves = count_visited(tree, annotations, Visit(visited, places, weighty))
        else:
            known = known_with_rests(ranked, annotations.sets, terms)
            visited, n_in_leaves = visit_sets(tree, annotations, ranked, known, message.box)
            places, n_listed = np.empty(0), 0
        nodes += len(visited)
        if is_scan_cheaper(tree, far_entries(annotations.lists, weighty) + n_listed, n_in_leaves):
            found, n, more = score_all(tree, ranked, message, found, n)
        else:
            found, n, more = score_far(ranked, annotations.lists, weighty, message, found, n)
            if ranked.style == LEVELS:
                visit = Visit(visited, places, weighty)
                found, n = score_visited(tree, annotations, ranked, visit, message, found, n)
            else:
                found, n = score_leaves(tree, ranked, visited, message, found, n)
            more += n_listed + n_in_leaves
        seen += more
        mark_terms(marks, messages, m, 0)
        starts[m + 1] = n
    return found.rows[:n].copy(), found.scores[:n].copy(), nodes, seen
