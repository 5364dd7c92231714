"""Random numbers addressed by number: draw i of a named stream does not depend on the draws before it."""

from __future__ import annotations

import hashlib
from typing import NamedTuple

import numpy as np

from nearcast.arrays.jit import kernel

_STEP = np.uint64(0x9E3779B97F4A7C15)
_FIRST = np.uint64(0xBF58476D1CE4E5B9)
_SECOND = np.uint64(0x94D049BB133111EB)
_R30, _R27, _R31, _R11 = np.uint64(30), np.uint64(27), np.uint64(31), np.uint64(11)
_TO_UNIT = 2.0**-53


class DrawNumbers(NamedTuple):
    """Draws of one stream, by number."""

    key: np.uint64  # of the stream: see `stream_key`
    indices: np.ndarray  # int64[n]


class DrawTable(NamedTuple):
    """A discrete distribution. The guide gives the first weight to read, so that a draw reads one or two weights."""

    cumulative: np.ndarray  # float64[n]  ends at 1
    guide: np.ndarray  # int32[2n]   first k with cumulative[k] > j / 2n


def draw_table(weights: np.ndarray) -> DrawTable:
    """The distribution that gives k the probability weights[k] / sum."""
    cumulative = np.cumsum(weights, dtype=np.float64)
    cumulative /= cumulative[-1]
    cumulative[-1] = 1.0
    steps = np.arange(2 * len(weights)) / (2 * len(weights))
    return DrawTable(cumulative, np.searchsorted(cumulative, steps, side="right").astype(np.int32))


def zipf_table(n: int, exponent: float) -> DrawTable:
    """The distribution that gives rank k (from 0) the weight (k + 1) ** -exponent."""
    return draw_table(np.arange(1, n + 1, dtype=np.float64) ** -exponent)


def stream_key(seed: int, stream: str) -> np.uint64:
    """The key of a stream, from the seed and the name of the stream."""
    return np.uint64(int.from_bytes(hashlib.blake2b(f"{seed}/{stream}".encode(), digest_size=8).digest(), "little"))


def table_generator(seed: int, stream: str) -> np.random.Generator:
    """A NumPy generator for tables that are drawn once, such as the places of clusters."""
    return np.random.Generator(np.random.PCG64(int(stream_key(seed, stream))))


@kernel
def _mixed(value):
    value = (value ^ (value >> _R30)) * _FIRST  # splitmix64: 1 ns a number; any two counters give unrelated numbers
    value = (value ^ (value >> _R27)) * _SECOND
    return value ^ (value >> _R31)


@kernel
def begin(state, key, index):
    """Set `state` (uint64[1]) to the start of draw number `index`."""
    state[0] = _mixed(key ^ _mixed(np.uint64(index) * _STEP))


@kernel
def unit(state):
    """The next number in [0, 1)."""
    state[0] = state[0] + _STEP
    return np.float64(_mixed(state[0]) >> _R11) * _TO_UNIT


@kernel
def below(state, n):
    """The next whole number in 0 .. n - 1."""
    return np.int64(unit(state) * n)


@kernel
def log_uniform(state, low, high):
    """The next number between low and high; its logarithm is uniform."""
    u = unit(state)
    return low if low == high else low * (high / low) ** u


@kernel
def draw(table, state):
    """The next k of a distribution."""
    u = unit(state)
    k = table.guide[np.int64(u * len(table.guide))]
    while table.cumulative[k] <= u:
        k += 1
    return np.int64(k)


def units(key: np.uint64, indices: np.ndarray) -> np.ndarray:
    """The first number in [0, 1) of each draw, float64[n]."""
    out = np.empty(len(indices))
    _units(key, indices, out)
    return out


@kernel
def _units(key, indices, out):
    state = np.zeros(1, np.uint64)
    for i in range(len(indices)):
        begin(state, key, indices[i])
        out[i] = unit(state)


def whole_numbers(key: np.uint64, indices: np.ndarray, low: int, high: int) -> np.ndarray:
    """Uniform whole numbers in low .. high, both included, int64[n]."""
    return low + (units(key, indices) * (high - low + 1)).astype(np.int64)
