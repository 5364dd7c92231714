"""The cost model: nanoseconds for the pieces of work that the ways consist of, and what a message will cost by each.

In the paper's spirit, with constants. It compares the two filters alone; here each way is estimated as a whole, the
verification included, since that is most of the time. The constants are fitted to the time of single messages by each
way (tests/soak/lfilter_fit.py: 1 M subscriptions, workloads A and B of the bench, four groups of messages); on another
machine they are wrong by about the same factor, which changes no comparison.
"""

from __future__ import annotations

import numpy as np

from nearcast.arrays.jit import lean_kernel
from nearcast.arrays.vector import prefetch

_AHEAD = 16  # each term's load is a cache miss

# The trie
TOKEN = 800.0  # a token of the message: sorted, looked for among the root's children, and what is below is fetched
NODE = 205.0  # a node reached
CHILD = 5.0  # a child whose token or box is looked at
ROW = 5.3  # a row of a list, whose box is looked at
# The quadtree
CELL = 550.0  # a node visited, with its tokens
ENTRY = 2.6  # an entry of a list, whose term is looked up
NEAR = 100.0  # an entry whose term occurs: its box, and the row where that overlaps
OPENING = 50_000.0  # for a batch, before any message: many arrays are handed to a kernel. Half with all in cache
# Both: lists that are cut by ranges of numbers
START = 8000.0  # what is read for the first time: 4,400, and as much for doubt, being the estimate that is wrong most
SEARCH = 28.0  # a list that is searched for a token, as a rule in vain
PART = 420.0  # a part of a list that is found: cache misses
LEFT = 35.0  # an entry of such a part
LEFT_SHARE = 1.3  # of the entries whose rarest term occurs: how many are left, copies and all
# The same below the root, where a node's parts are verified or cut further
DEEP_ENTRY = 200.0  # an entry that is verified at once, place and tokens
DEEP_CHILD = 15.0
DEEP_STEP = 80.0  # a step of a search among numbers, which do not lie together


@lean_kernel
def steps(length):
    """Of a binary search among so many."""
    n = 1
    while length > 1:
        length >>= 1
        n += 1
    return n


@lean_kernel
def cost_by_trie(loads, lengths, terms, limit):
    """What a walk of the trie will cost; no more is added up once it is above the limit."""
    n = len(terms)
    if TOKEN * n > limit:
        return TOKEN * n
    k = 0
    while k < len(lengths) - 2 and lengths[k + 1] < n:
        k += 1
    part = min(1.0, max(0.0, (n - lengths[k]) / (lengths[k + 1] - lengths[k])))
    cost = TOKEN * n
    ask_for_loads(loads, terms, 0, n)
    for i in range(n):
        if cost > limit:
            break
        ask_for_loads(loads, terms, i + _AHEAD, min(n, i + _AHEAD + 1))
        if terms[i] < len(loads):
            cost += loads[terms[i], k] * (1 - part) + loads[terms[i], k + 1] * part
    return cost


@lean_kernel
def ask_for_loads(loads, terms, first, stop):
    """Of the first few of some terms."""
    for i in range(first, min(stop, first + _AHEAD)):
        prefetch(loads, loads.shape[1] * np.int64(terms[i]))


@lean_kernel
def chance_of_term(marked, lengths, n):
    """How likely the rarest term of a row is in a message of n terms."""
    k = 0
    while k < len(lengths) - 2 and lengths[k + 1] < n:
        k += 1
    part = min(1.0, max(0.0, (n - lengths[k]) / (lengths[k + 1] - lengths[k])))
    return marked[k] * (1 - part) + marked[k + 1] * part


@lean_kernel
def cost_of_entries(entries, chance):
    """C_V: what verifying so many entries of lists directly costs, when their rarest term occurs with this chance."""
    return entries * (ENTRY + chance * NEAR)


@lean_kernel
def cost_of_lists(n_tokens, n_lists, entries, chance):
    """C_L at the root: what going down the trie with these lists costs. Each is searched for each token; what is left
    falls into parts, as many as if each entry fell into any of them.
    """
    left, searches = entries * chance * LEFT_SHARE, max(1.0, n_tokens * n_lists)
    return cost_of_parts(searches, -searches * np.expm1(-left / searches), left)


@lean_kernel
def cost_of_parts(searches, parts, entries):
    return START + SEARCH * searches + PART * parts + LEFT * entries


@lean_kernel
def cost_of_going_down(n_tokens, n_children, search_steps):
    """C_L at another node, verification apart: its children are looked at, and all parts of lists cut for each that is
    met.
    """
    looks = min(n_children, n_tokens * steps(n_children))
    return DEEP_CHILD * looks + min(n_tokens, n_children) * DEEP_STEP * search_steps
