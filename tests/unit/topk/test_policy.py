"""The cost model of buffers: expected sizes and walks against simulation."""

from __future__ import annotations

import numpy as np
import pytest

import nearcast as nc
from nearcast.topk.methods.norm_lists import NormListsTop
from nearcast.topk.refill.best import FIXED_WORK
from nearcast.topk.refill.policy import CostSkyband, make_policy, skyband_size, step_cost, walk_steps


def skyband(scores: np.ndarray, k: int) -> int:
    """Messages in order of arrival, to which fewer than k later ones are at least equal."""
    return sum(np.count_nonzero(scores[i + 1 :] >= scores[i]) < k for i in range(len(scores)))


@pytest.mark.parametrize(("k", "n"), [(5, 60), (20, 80), (20, 400), (20, 15)])
def test_the_expected_skyband_is_that_of_random_messages(k: int, n: int) -> None:
    rng = np.random.default_rng(k)
    measured = np.mean([skyband(rng.random(n), k) for _ in range(400)])
    assert skyband_size(k, n) == pytest.approx(measured, rel=0.05), "k (1 + ln(n / k)), not k ln(n / k)"


@pytest.mark.parametrize("share", [0.45, 0.55])
def test_steps_of_a_walk_are_those_of_a_simulation(share: float) -> None:
    rng, k, n, taken = np.random.default_rng(1), 3, 6, []
    for _ in range(4000):
        at, steps = n, 0
        while at >= k:
            at, steps = min(2 * n, at + (1 if rng.random() < share else -1)), steps + 1
        taken.append(steps)
    assert walk_steps(k, n, share) == pytest.approx(np.mean(taken), rel=0.06)


def test_equal_shares_take_the_formula_of_the_paper() -> None:
    assert walk_steps(20, 40, 0.5) == 2 * 21 * 40 + 21 * 22


def test_dear_refills_fetch_more() -> None:
    policy = CostSkyband()
    cheap = int(policy.depths(np.array([20]))[0])
    for _ in range(100):
        policy.learn(1_000_000, 10)
    dear = int(policy.depths(np.array([20]))[0])
    assert 20 <= cheap < dear <= 400
    assert step_cost(20, dear, 100_000, 0.5) < min(step_cost(20, n, 100_000, 0.5) for n in (dear // 2, 2 * dear))


def test_a_first_refill_fetches_about_what_the_paper_keeps() -> None:
    """The paper says about 30 messages at k = 20; a cost that is too low makes it 22, and buffers run dry."""
    assert 27 <= CostSkyband().depths(np.array([20]))[0] <= 35


def test_the_cost_of_a_refill_counts_more_than_its_postings() -> None:
    table = {"id": np.arange(50), "tokens": [["a"]] * 50, "x": np.zeros(50), "y": np.zeros(50)}
    top = nc.TopK(None, 100, "norm-lists", refill="cskyband", space=(0.0, 0.0, 1.0, 1.0))
    top.publish({"id": np.arange(100), "text": ["a"] * 100, "x": np.zeros(100), "y": np.zeros(100)})
    top.subscribe(table | {"k": np.full(50, 20)})
    method = top.method
    assert isinstance(method, NormListsTop) and isinstance(method.policy, CostSkyband)
    assert method.policy._cost > FIXED_WORK


def test_more_expiries_than_arrivals_fetch_more() -> None:
    policy = CostSkyband()
    policy.learn(5_000_000, 1000)
    before = int(policy.depths(np.array([20]))[0])
    policy.observe(400, 600)
    assert int(policy.depths(np.array([20]))[0]) > before


@pytest.mark.parametrize("name", ["raising", "kmax", "skyband", "cskyband"])
def test_a_refill_fetches_at_least_k_and_a_full_buffer_keeps_at_least_k(name: str) -> None:
    policy, ks = make_policy(name), np.array([1, 2, 3, 20, 1000], np.int32)
    assert (policy.depths(ks) >= ks).all()
    sizes = policy.sizes(ks)
    assert (sizes[:, 1] >= ks).all() and (sizes[:, 0] >= sizes[:, 1]).all()
