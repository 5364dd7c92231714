"""Makes cells, lists and groups for rows, all at once."""

from __future__ import annotations

import numpy as np

from nearcast.arrays.jit import kernel
from nearcast.arrays.ragged import starts_of
from nearcast.topk.dissemination.igpt.cells import (
    Cells,
    distance_to_border,
    least_place_of,
    lower_least_place,
)
from nearcast.topk.dissemination.igpt.groups import (
    LARGEST_ALPHA,
    N_GROUPS,
    Directory,
    Postings,
    set_all_rests,
    theta_star,
)
from nearcast.topk.rows import TopRows
from nearcast.topk.score import ALPHA, NORM, Metric, X, Y


def make_lists(
    rows: TopRows, numbers: np.ndarray, leaves: np.ndarray, weights: np.ndarray, inner: np.ndarray
) -> tuple[Postings, Directory]:
    """Posting lists of rows whose leaves and distances to the borders of leaves (by row number) are known."""
    arrays = rows.arrays
    counts = arrays.n_terms[numbers].astype(np.int64)
    own, ranked = (np.zeros(len(arrays.terms), np.int32) for _ in range(2))
    rank_terms(arrays, numbers, weights, ranked)
    of_posting = np.repeat(np.arange(len(numbers)), counts)
    ranks = np.arange(len(of_posting)) - np.repeat(starts_of(counts)[:-1], counts)
    terms = ranked[np.repeat(arrays.offsets[numbers], counts) + ranks]
    groups = _groups(arrays.numbers[numbers, ALPHA])[of_posting]
    keys = terms.astype(np.int64) << 32 | leaves[of_posting]
    thetas = np.empty(len(numbers))
    set_theta_stars(arrays.numbers, numbers, thetas)
    order = np.lexsort((thetas[of_posting], groups, keys))
    keys, groups, of_posting, ranks = keys[order], groups[order], of_posting[order], ranks[order]
    is_group = np.concatenate([[True], (keys[1:] != keys[:-1]) | (groups[1:] != groups[:-1])])[: len(keys)]
    group_starts = np.append(np.flatnonzero(is_group), len(keys)).astype(np.int32)
    group_keys = keys[group_starts[:-1]]
    is_list = np.concatenate([[True], group_keys[1:] != group_keys[:-1]])[: len(group_keys)]
    list_starts = np.append(np.flatnonzero(is_list), len(group_keys)).astype(np.int32)
    list_keys = group_keys[list_starts[:-1]]
    term_starts = np.searchsorted(list_keys >> 32, np.arange(len(weights) + 1)).astype(np.int32)
    leaf_of_list, limits = (list_keys & 0xFFFFFFFF).astype(np.int32), np.zeros((len(group_keys), 3), np.float32)
    directory = Directory(term_starts, leaf_of_list, list_starts, group_starts, limits, own, ranked)
    own[arrays.offsets[numbers[of_posting]] + ranks] = np.arange(len(keys))
    postings = _postings(arrays.numbers[numbers[of_posting]], numbers[of_posting], ranks, terms[order], weights)
    own_inner = np.nextafter(inner[numbers[of_posting]].astype(np.float32), np.float32(0.0))
    groups = (np.cumsum(is_group) - 1).astype(np.int32)
    postings = postings._replace(theta_stars=thetas[of_posting], inner=own_inner, groups=groups)
    set_all_rests(postings, directory)
    set_sums(arrays, numbers, postings, own)
    return postings, directory


def _postings(
    numbers: np.ndarray, rows: np.ndarray, ranks: np.ndarray, terms: np.ndarray, weights: np.ndarray
) -> Postings:
    n, alphas, norms = len(rows), numbers[:, ALPHA], numbers[:, NORM]
    stars = np.where(alphas > LARGEST_ALPHA, 0.0, alphas / np.maximum(1.0 - alphas, 1e-9))
    shares = np.where(norms > 0.0, weights[terms] / np.where(norms > 0.0, norms, 1.0), 0.0).astype(np.float32)
    rests = (np.zeros(n, np.float32), np.zeros(n, np.float32), np.zeros(n), np.zeros(n, np.float32))
    columns = (rows.astype(np.int32), ranks.astype(np.uint16), np.zeros(n), stars, shares)
    return Postings(*columns, *rests, np.zeros(n, np.int32))


def _groups(alphas: np.ndarray) -> np.ndarray:
    """The group of each row: tenths of the rows by alpha, and a last group for alphas near 1."""
    cuts = np.quantile(alphas, np.linspace(0, 1, N_GROUPS + 1)[1:-1]) if len(alphas) else []
    return np.where(alphas > LARGEST_ALPHA, N_GROUPS, np.searchsorted(cuts, alphas, side="right"))


@kernel
def set_sums(rows, numbers, postings, own):
    """Set the sum of weights from each posting's term on."""
    for row in numbers:
        total = np.float32(0.0)
        for k in range(rows.offsets[row] + rows.n_terms[row] - 1, rows.offsets[row] - 1, -1):
            total += postings.weights[own[k]]
            postings.sums[own[k]] = total


@kernel
def rank_terms(rows, numbers, weights, out_ranked):
    """Write the terms of rows, heaviest first, at the rows' offsets; equal weights by ascending term."""
    for row in numbers:
        first = rows.offsets[row]
        for k in range(rows.n_terms[row]):
            term, i = rows.terms[first + k], first + k
            while i > first and weights[out_ranked[i - 1]] < weights[term]:
                out_ranked[i] = out_ranked[i - 1]
                i -= 1
            out_ranked[i] = term


@kernel
def set_theta_stars(row_numbers, numbers, out):
    for i in range(len(numbers)):
        out[i] = theta_star(row_numbers, numbers[i])


def set_cells(rows: TopRows, numbers: np.ndarray, leaves: np.ndarray, cells: Cells, metric: Metric) -> np.ndarray:
    """Set the limits of cells; return the distance of each row to the border of its cell / max_dist, by row number."""
    inner = np.zeros(rows.high)
    place_rows(rows.arrays.numbers, numbers, leaves, cells, metric.planar, inner)
    return inner / metric.max_dist


@kernel
def place_rows(row_numbers, numbers, leaves, cells, planar, out_inner):
    for i in range(len(numbers)):
        row = numbers[i]
        out_inner[row] = distance_to_border(cells, leaves[i], planar, row_numbers[row, X], row_numbers[row, Y])
        lower_least_place(cells, leaves[i], least_place_of(row_numbers, row))
