"""Posting lists by term and leaf, divided into groups by alpha* and sorted by theta* within a group.

alpha* = alpha / (1 - alpha), theta* = theta / (1 - alpha). Rows whose alpha is near 1 have no such numbers: they are in
a last group, which no text limit prunes.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from nearcast.arrays.jit import lean_kernel
from nearcast.topk.score import ALPHA, THETA

N_GROUPS = 10
LARGEST_ALPHA = 0.999
"""From here on a row is in the last group: dividing by 1 - alpha would magnify rounding by more than 1,000."""
NO_LIMIT = -np.inf
UP = 1.000001
"""Float32 statistics are rounded up by this."""

LARGEST_WEIGHT, LARGEST_STAR, LEAST_THETA = range(3)
"""Columns of `group_limits`."""


class Postings(NamedTuple):
    """Postings of all lists; those of a group are neighbours, in the order of theta*."""

    rows: np.ndarray  # int32[n]  -1 after the row was removed
    ranks: np.ndarray  # uint16[n]  of the term in the row, heaviest first
    theta_stars: np.ndarray  # float64[n]
    alpha_stars: np.ndarray  # float64[n]
    weights: np.ndarray  # float32[n]  of the term in the row's vector of length 1
    sums: np.ndarray  # float32[n]  the weights of this term and the row's later ones, added up
    inner: np.ndarray  # float32[n]  the distance of the row to the border of its leaf / max_dist, rounded down
    rest_alphas: np.ndarray  # float64[n]  the largest alpha* from here to the end of the group
    rest_weights: np.ndarray  # float32[n]  the largest weight from here to the end of the group
    groups: np.ndarray  # int32[n]


class Directory(NamedTuple):
    """Where lists and groups are."""

    term_starts: np.ndarray  # int32[n_terms+1]  the first list of each term that the rows had when this was made
    list_leaves: np.ndarray  # int32[n_lists]  ascending within a term
    list_starts: np.ndarray  # int32[n_lists+1]  the first group of each list
    group_starts: np.ndarray  # int32[n_groups+1]  the first posting of each group
    group_limits: np.ndarray  # float32[n_groups,3]  the largest weight and alpha*, and the least theta*, of each group
    own: np.ndarray  # int32[...]  the posting of each row and rank, parallel to the terms of `TopRows`
    ranked: np.ndarray  # int32[...]  the terms of each row by rank, parallel to the terms of `TopRows`


@lean_kernel
def theta_star(numbers, row):
    alpha, theta = numbers[row, ALPHA], numbers[row, THETA]
    if alpha > LARGEST_ALPHA or theta < 0.0:
        return NO_LIMIT
    return theta / (1.0 - alpha)


@lean_kernel
def set_rests(postings, directory, group):
    """Set the largest values of the rest for all postings of a group, and the limits of the group.

    A message tests the limits of all groups of a list. They lie side by side, so that they are read from end to end.
    """
    start, stop = directory.group_starts[group], directory.group_starts[group + 1]
    alpha, weight = 0.0, np.float32(0.0)
    for p in range(stop - 1, start - 1, -1):
        alpha, weight = max(alpha, postings.alpha_stars[p]), max(weight, postings.weights[p])
        postings.rest_alphas[p] = alpha
        postings.rest_weights[p] = weight
    limits = directory.group_limits[group]
    limits[LARGEST_WEIGHT], limits[LARGEST_STAR] = weight * UP, alpha * UP
    limits[LEAST_THETA] = postings.theta_stars[start] * (2.0 - UP)


@lean_kernel
def set_all_rests(postings, directory):
    for group in range(len(directory.group_limits)):
        set_rests(postings, directory, group)


@lean_kernel
def _swap(postings, directory, offsets, first, second):
    for column in (postings.theta_stars, postings.alpha_stars):
        value = column[first]
        column[first] = column[second]
        column[second] = value
    for column in (postings.weights, postings.sums, postings.inner):
        short = column[first]
        column[first] = column[second]
        column[second] = short
    row, rank = postings.rows[first], postings.ranks[first]
    postings.rows[first] = postings.rows[second]
    postings.ranks[first] = postings.ranks[second]
    postings.rows[second] = row
    postings.ranks[second] = rank
    for p in (first, second):
        if postings.rows[p] >= 0:
            directory.own[offsets[postings.rows[p]] + postings.ranks[p]] = p


@lean_kernel
def move_posting(postings, directory, offsets, p, key):
    """Give a posting another theta*, and move it to its place in the group."""
    group = postings.groups[p]
    start, stop = directory.group_starts[group], directory.group_starts[group + 1]
    postings.theta_stars[p] = key
    while p > start and postings.theta_stars[p - 1] > key:
        _swap(postings, directory, offsets, p - 1, p)
        p -= 1
    while p + 1 < stop and postings.theta_stars[p + 1] < key:
        _swap(postings, directory, offsets, p, p + 1)
        p += 1
    set_rests(postings, directory, group)
