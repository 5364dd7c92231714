"""The cost model of the paper: entries to verify, and for s-nodes the penalties of movement (equations 7 to 15).

Costs are comparisons of entries in a step. Beyond the paper, a move also pays for the messages that it reads in a leaf,
and a visit to a leaf costs as much as some comparisons.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

_LONGEST = 1000.0  # steps until the next rebuild, at most
THETA_KL = 0.001
DRIFTING_SHARE = 0.001
"""The least share of all rows of a node that is rebuilt when its rows drift."""
_VISIT = 30.0  # comparisons that a visit of a row to a leaf costs: its lists are seldom in the cache
_POST = 200.0  # comparisons that a message costs in a leaf that it enters: way, visit and entry
_BUILD = 4.0  # comparisons that a step of a build costs
_LIFETIME = 10.0  # steps that a message lives, until something was reported
_PERIOD = 5.0  # steps between two moves of a row, until something was reported


@dataclass
class Motion:
    """What was reported so far: how fast, how often, and among how many messages rows move."""

    steps: int = 0
    moves: int = 0
    messages: int = 0
    distance: float = 0.0  # the sum of the median distances along an axis
    rows: int = 1
    live: int = 1

    def learn_moves(self, old: np.ndarray, new: np.ndarray, rows: int, live: int) -> None:
        """Learn from the moves of a step: boxes before and after, among so many rows and live messages."""
        self.steps += 1
        self.moves += len(old)
        self.distance += float(np.median(np.abs(new[:, :2] - old[:, :2]))) if len(old) else 0.0
        self.rows, self.live = max(1, rows), max(1, live)

    @property
    def message_rate(self) -> float:
        """Messages that arrive or expire in a step for each that is live (r_m)."""
        return 2 * self.messages / (self.steps * self.live) if self.steps and self.messages else 2 / _LIFETIME

    @property
    def reporting_period(self) -> float:
        """Steps between two moves of a row (T_upd)."""
        return max(1.0, self.steps * self.rows / self.moves) if self.moves else _PERIOD

    @property
    def velocity(self) -> float:
        """The distance of a move along an axis, in the median: jumps leave any cell. 0 until something moved."""
        return self.distance / self.steps if self.moves else 0.0


@dataclass(frozen=True)
class Fit:
    """Settings of the tree."""

    f: int
    theta_p: int


def leaves_cost(motion: Motion, rows: np.ndarray, messages: np.ndarray) -> float:
    """Equation 7 and the moves: leaves with so many rows and live messages each."""
    arriving = motion.message_rate * messages * (_POST + rows)
    moving = rows * (_VISIT + messages) / motion.reporting_period
    return float((arriving + moving).sum())


def division_cost(motion: Motion, fit: Fit, messages: float) -> float:
    """What messages pay to find their way through an inner node."""
    return motion.message_rate * messages * math.log2(max(2, fit.f))


def update_penalty(motion: Motion, fit: Fit, leaving: float, depth: int) -> float:
    """C_slu, equation 9: what rows that leave their cells cost in a step.

    `leaving` is the number of rows times the share that leaves its cells by a move, min(1, zeta). Each leaves and
    enters the nodes of a path; finding a node takes log2(f) comparisons and a visit.
    """
    return leaving * 2.0 * max(1, depth) * (math.log2(max(2, fit.f)) + _VISIT) / motion.reporting_period


def least_drifting(rows: int, theta_p: int) -> float:
    """The rows from which on a node is rebuilt when its rows drift."""
    return max(DRIFTING_SHARE * rows, 4.0 * theta_p)


def rebuild_penalty(motion: Motion, fit: Fit, n_rows: int, n_terms: int, leaving: float) -> float:
    """C_irc, equation 13: the cost of a rebuild, spread over the steps until the cells' weights have drifted.

    A node too small to be rebuilt pays nothing.
    """
    if leaving <= 0 or n_rows < least_drifting(motion.rows, fit.theta_p):
        return 0.0
    height = max(0.0, math.log(max(1.0, n_rows / max(1, fit.theta_p)), max(2, fit.f)))
    cost = (n_rows * math.log2(max(2, fit.f)) + n_rows * math.sqrt(fit.f) + fit.f * n_terms) * (height + 1)
    return _BUILD * cost / _steps_until_drift(motion, leaving / n_rows)


def _steps_until_drift(motion: Motion, share: float) -> float:
    """T_delta: rows that change cells at random shift the weights; the divergence grows with the square of their share.

    Algorithm 8 simulates every row. The share of rows that leave their cells gives the same order of magnitude in
    constant time.
    """
    in_a_step = share / motion.reporting_period
    return min(_LONGEST, max(1.0, math.sqrt(THETA_KL) / in_a_step)) if in_a_step else _LONGEST
