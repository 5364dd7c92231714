"""The pool of working memory."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from nearcast.structures.scratch import ScratchPool


def test_what_was_given_back_is_handed_out_again() -> None:
    pool = ScratchPool(lambda: np.zeros(4))
    with pool.borrow() as first:
        pass
    with pool.borrow() as second:
        assert second is first


def test_two_borrowers_at_once_never_share() -> None:
    pool = ScratchPool(lambda: np.zeros(4))
    with pool.borrow() as first, pool.borrow() as second:
        assert first is not second


def test_what_was_made_larger_stays_larger() -> None:
    pool = ScratchPool(lambda: np.zeros(0))
    with pool.borrow(lambda scratch: np.zeros(9)) as larger:
        pass
    with pool.borrow() as scratch:
        assert scratch is larger


def test_scratch_of_a_search_that_failed_is_dropped() -> None:
    pool = ScratchPool(lambda: np.zeros(4))
    with pytest.raises(ZeroDivisionError), pool.borrow() as failed:
        raise ZeroDivisionError
    with pool.borrow() as scratch:
        assert scratch is not failed


def test_threads_never_share_and_the_pool_has_one_for_each_at_most() -> None:
    made: list[np.ndarray] = []
    barrier = threading.Barrier(4)

    def make() -> np.ndarray:
        made.append(np.zeros(1))
        return made[-1]

    pool = ScratchPool(make)

    def work(_: int) -> None:
        barrier.wait()
        for _ in range(2_000):
            with pool.borrow() as scratch:
                assert scratch[0] == 0
                scratch[0] = 1
                scratch[0] = 0

    with ThreadPoolExecutor(4) as threads:
        list(threads.map(work, range(4)))
    assert 1 <= len(made) <= 4
