"""The cost model of the paper: messages to verify, and for s-nodes the penalties of movement (equations 7 to 15)."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

_LONGEST = 1000.0  # steps until the next rebuild, at most
_THETA_KL = 0.001


@dataclass
class Motion:
    """What was reported so far: how fast, how often, and among how many messages rows move."""

    steps: int = 0
    moves: int = 0
    messages: int = 0
    distance: float = 0.0  # the sum of the larger sides of all moves
    rows: int = 1

    def learn_moves(self, old: np.ndarray, new: np.ndarray, rows: int) -> None:
        """Learn from the moves of a step: boxes before and after."""
        self.steps += 1
        self.moves += len(old)
        self.distance += float(np.abs(new[:, :2] - old[:, :2]).max(axis=1).sum()) if len(old) else 0.0
        self.rows = max(1, rows)

    @property
    def message_rate(self) -> float:
        """Messages in a step (r_m); 1 until anything moved."""
        return self.messages / self.steps if self.steps and self.messages else 1.0

    @property
    def reporting_period(self) -> float:
        """Steps between two moves of a row (T_upd)."""
        return max(1.0, self.steps * self.rows / self.moves) if self.moves else math.inf

    @property
    def velocity(self) -> float:
        """The distance of a move."""
        return self.distance / self.moves if self.moves else 0.0


@dataclass(frozen=True)
class Fit:
    """Settings of the tree."""

    f: int
    theta_p: int


def update_penalty(motion: Motion, fit: Fit, n_rows: int, cell_side: float, depth: int) -> float:
    """C_slu, equation 9: what rows that leave their cell cost in a step."""
    if not motion.moves or cell_side <= 0:
        return 0.0
    passed = min(1.0, motion.velocity / cell_side)  # zeta: cells that a move passes
    return n_rows * 2.0 * passed * max(1, depth) * math.log2(fit.f) / motion.reporting_period


def rebuild_penalty(motion: Motion, fit: Fit, n_rows: int, n_terms: int, cell_side: float) -> float:
    """C_irc, equation 13: the cost of a rebuild, spread over the steps until the cells' weights have drifted."""
    if not motion.moves or cell_side <= 0:
        return 0.0
    height = max(0.0, math.log(max(1.0, n_rows / fit.theta_p), fit.f))
    cost = (n_rows * math.log2(fit.f) + n_rows * math.sqrt(fit.f) + fit.f * n_terms) * (height + 1)
    return cost / _steps_until_drift(motion, cell_side)


def _steps_until_drift(motion: Motion, cell_side: float) -> float:
    """T_delta: rows that change cells at random shift the weights; the divergence grows with the square of their share.

    Algorithm 8 simulates every row. The share of rows that leave their cell in a step gives the same order of magnitude
    in constant time.
    """
    share = min(1.0, motion.velocity / cell_side) / motion.reporting_period
    return min(_LONGEST, max(1.0, math.sqrt(_THETA_KL) / share)) if share else _LONGEST
