"""A script, not a test: fits the constants of indexes/lfilter/costs.py. `python tests/soak/lfilter_fit.py 1000000 11`

Each message of workloads A and B is matched alone by each strategy; the counts of the model times the constants should
give the time. Errors are relative, so that a short message counts as much as a long one. The filter's part of `lists`
is assumed to be that of `cells`. The last number is the seed: judge the constants with another seed
(lfilter_choices.py).
"""

from __future__ import annotations

import itertools
import sys

import numpy as np
from lfilter_choices import built, messages_of, world
from lfilter_clock import times_by_strategy

from nearcast.bench.workloads.workload import GROUPS
from nearcast.indexes.lfilter import LFilter
from nearcast.indexes.lfilter.choice import BY_CELLS, BY_LISTS, BY_TRIE
from nearcast.indexes.lfilter.costs import CELL, LEFT_SHARE, TOKEN, chance_of_term, cost_by_trie
from nearcast.indexes.lfilter.loads import LENGTHS, Loads, Prices
from nearcast.model import MessageBatch
from nearcast.structures.quadtree.search import visited_nodes

NOISE_NS = 500.0  # what a time may be wrong by, whatever it is
PIECES = {
    BY_TRIE: ("TOKEN", "CHILD", "NODE", "ROW"),
    BY_CELLS: ("CELL", "ENTRY", "NEAR"),
    BY_LISTS: ("START", "SEARCH", "PART", "LEFT"),
}


def pieces_by_strategy(method: LFilter, messages: MessageBatch) -> dict[int, list[list[float]]]:
    """What the model counts of each message, by strategy and constant."""
    unit = [Loads() for _ in range(3)]
    for loads, prices in zip(unit, np.eye(3), strict=True):
        loads.learn(method.store, method.trie, method.quadtree.arrays, Prices(*prices))
    pieces: dict[int, list[list[float]]] = {strategy: [] for strategy in PIECES}
    for k in range(messages.size):
        message = messages.part(k, k + 1)
        n, terms, box, quad = len(message.terms), message.terms, message.boxes[0], method.quadtree.arrays
        by_price = [cost_by_trie(loads.model.loads, LENGTHS, terms, np.inf) - TOKEN * n for loads in unit]
        cells = visited_nodes(quad, terms, box)
        entries = float(quad.lists.counts[cells].sum())
        met = entries * chance_of_term(unit[0].model.marked, LENGTHS, n)
        left, searches = LEFT_SHARE * met, max(1.0, n * len(cells))
        pieces[BY_TRIE].append([n, *by_price])
        pieces[BY_CELLS].append([len(cells), entries, met])
        pieces[BY_LISTS].append([1.0, searches, -searches * np.expm1(-left / searches), left])
    return pieces


def fitted(pieces: np.ndarray, times: np.ndarray) -> np.ndarray:
    """None negative. Errors are relative to the mean of time and estimate: half and twice are equally wrong."""
    scale = times + NOISE_NS
    for _ in range(10):
        costs = _least_squares(pieces / scale[:, None], times / scale)
        scale = np.sqrt((times + NOISE_NS) * (pieces @ costs + NOISE_NS))
    return costs


def _least_squares(shares: np.ndarray, wanted: np.ndarray) -> np.ndarray:
    """The best over all choices of constants that are not 0, without negative ones."""
    best, least = np.zeros(shares.shape[1]), np.inf
    for count in range(1, shares.shape[1] + 1):
        for columns in map(list, itertools.combinations(range(shares.shape[1]), count)):
            costs, *_ = np.linalg.lstsq(shares[:, columns], wanted, rcond=None)
            error = float(((shares[:, columns] @ costs - wanted) ** 2).sum())
            if (costs >= 0).all() and error < least:
                best, least = np.zeros(shares.shape[1]), error
                best[columns] = costs
    return best


def main(n: int, seed: int) -> None:
    pieces: dict[int, list[list[float]]] = {strategy: [] for strategy in PIECES}
    times: dict[int, list[float]] = {strategy: [] for strategy in PIECES}
    for base in "AB":
        workload, corpus, store = world(base, n, seed)
        method = built("lfilter", workload, store)
        assert isinstance(method, LFilter)
        for group in GROUPS:
            messages = messages_of(group, workload, corpus, store)
            counted, timed = pieces_by_strategy(method, messages), times_by_strategy(method, messages)
            for strategy in PIECES:
                pieces[strategy] += counted[strategy]
                filtered = CELL * np.array(counted[BY_CELLS])[:, 0] if strategy == BY_LISTS else 0.0
                times[strategy] += np.maximum(1e3 * timed[strategy] - filtered, NOISE_NS).tolist()
    for strategy, names in PIECES.items():
        counts, spent = np.array(pieces[strategy]), np.array(times[strategy])
        costs = fitted(counts, spent)
        report = "  ".join(f"{name} {cost:.1f}" for name, cost in zip(names, costs, strict=True))
        low, middle, high = np.percentile(counts @ costs / spent, [10, 50, 90])
        sys.stdout.write(f"{report}\n  estimate / time: {low:.2f}, {middle:.2f}, {high:.2f} (10, 50, 90 %)\n")


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]))
