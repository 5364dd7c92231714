"""The cost model: nanoseconds for the pieces of work that the ways consist of, and what a message will cost by each.

In the paper's spirit, with constants. It compares the two filters alone; here each way is estimated as a whole, the
verification included, since that is most of the time. The constants were fitted to the time of single messages by each
way (1 M subscriptions, workloads A and B of the bench, four groups of messages); on another machine they are wrong by
about the same factor, which changes no comparison.
"""

from __future__ import annotations

import numpy as np

from nearcast.arrays.jit import kernel
from nearcast.arrays.vector import prefetch

_AHEAD = 16  # each term's load is a cache miss

# The trie
TOKEN = 100.0  # a token of the message: sorted, and looked for among the root's children
NODE = 300.0  # a node reached
CHILD = 15.0  # a child whose token or box is looked at
ROW = 7.0  # a row of a list, whose box is looked at
# The quadtree
CELL = 1000.0  # a node visited, with its tokens
ENTRY = 3.5  # an entry of a list, whose term is looked up
NEAR_POINT, NEAR_RANGE = 175.0, 340.0  # an entry whose term occurs: its box, and the row where that overlaps
# Both: lists that are cut by ranges of numbers
START = 8000.0  # memory, and what is read for the first time
STEP = 9.0  # a step of a search below the root, among terms that lie together
DEEP_STEP = 80.0  # a step of a search further down, among numbers that do not
LEFT, LEFT_RANGE = 200.0, 270.0  # an entry that is left where lists end; of a range more of them overlap
_LEFT_SHARE = 1.3  # of the entries whose rarest term occurs: how many are left, copies and all


@kernel
def steps(length):  # type: ignore[no-untyped-def]
    """Of a binary search among so many."""
    n = 1
    while length > 1:
        length >>= 1
        n += 1
    return n


@kernel
def cost_by_trie(loads, lengths, terms, limit):  # type: ignore[no-untyped-def]
    """What a walk of the trie will cost; no more is added up once it is above the limit."""
    n = len(terms)
    k = 0
    while k < len(lengths) - 2 and lengths[k + 1] < n:
        k += 1
    part = min(1.0, max(0.0, (n - lengths[k]) / (lengths[k + 1] - lengths[k])))
    cost = TOKEN * n
    for i in range(min(n, _AHEAD)):
        prefetch(loads, loads.shape[1] * np.int64(terms[i]))
    for i in range(n):
        if cost > limit:
            break
        if i + _AHEAD < n:
            prefetch(loads, loads.shape[1] * np.int64(terms[i + _AHEAD]))
        if terms[i] < len(loads):
            cost += loads[terms[i], k] * (1 - part) + loads[terms[i], k + 1] * part
    return cost


@kernel
def chance_of_term(marked, lengths, n):  # type: ignore[no-untyped-def]
    """How likely the rarest term of a row is in a message of n terms."""
    k = 0
    while k < len(lengths) - 2 and lengths[k + 1] < n:
        k += 1
    part = min(1.0, max(0.0, (n - lengths[k]) / (lengths[k + 1] - lengths[k])))
    return marked[k] * (1 - part) + marked[k + 1] * part


@kernel
def cost_of_entries(entries, chance, is_range):  # type: ignore[no-untyped-def]
    """C_V: what verifying so many entries of lists directly costs, when their rarest term occurs with this chance."""
    return entries * (ENTRY + chance * (NEAR_RANGE if is_range else NEAR_POINT))


@kernel
def cost_of_lists(n_tokens, search_steps, entries, chance, is_range):  # type: ignore[no-untyped-def]
    """C_L at the root: what going down the trie with these lists costs. All of them are cut for each token, which takes
    `search_steps` for one, and what is left is verified.
    """
    left = entries * chance * _LEFT_SHARE
    return START + n_tokens * (TOKEN + STEP * search_steps) + left * (LEFT_RANGE if is_range else LEFT)


@kernel
def cost_of_going_down(n_tokens, n_children, search_steps):  # type: ignore[no-untyped-def]
    """C_L at another node, verification apart: its children are looked at, and all parts of lists cut for each that is
    met.
    """
    return CHILD * min(n_children, n_tokens * steps(n_children)) + min(n_tokens, n_children) * DEEP_STEP * search_steps
