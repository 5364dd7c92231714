"""The checks: streams that a method and `brute` must answer alike, and cases that are easy to get wrong."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from nearcast.topk.checks.world import (
    SECOND,
    UNIT,
    WEIGHTS,
    Twins,
    made,
    messages,
    play,
    seconds,
    subscriptions,
)
from nearcast.topk.window import RENUMBERING


def _twins(method: str, seed: int, window: Any, n: int = 30, **arguments: Any) -> tuple[Twins, np.random.Generator]:
    rng = np.random.default_rng(seed)
    arguments = {"space": UNIT} | arguments
    return Twins(method, subscriptions(rng, np.arange(n)), window, **arguments), rng


def check_count_windows_agree_with_brute_force(method: str) -> None:
    for seed, window in enumerate((1, 2, 3, 10, 40)):
        play(*_twins(method, seed, window, weights=WEIGHTS if seed % 2 else None), 20)


def check_time_windows_agree_with_brute_force(method: str) -> None:
    for seed, window in enumerate((3, 20, 60)):
        play(*_twins(method, 10 + seed, seconds(window), weights=WEIGHTS if seed % 2 else None), 20)


def check_great_circle_distances_agree_with_brute_force(method: str) -> None:
    for seed, max_dist in enumerate((None, 500.0, 5.0)):
        play(*_twins(method, 20 + seed, 12, space=None, max_dist=max_dist), 12)


def check_other_largest_distances_agree_with_brute_force(method: str) -> None:
    for seed, max_dist in enumerate((0.1, 0.7, 50.0)):
        play(*_twins(method, 30 + seed, 12, max_dist=max_dist), 12)


def check_batches_larger_than_the_window(method: str) -> None:
    twins, rng = _twins(method, 40, 7)
    for n in (1000, 8, 7, 6, 1):
        twins.publish(messages(rng, n, n * 10_000, 0))


def check_a_batch_equals_one_by_one(method: str) -> None:
    rng = np.random.default_rng(41)
    table, stream = subscriptions(rng, np.arange(30)), pa.table(messages(rng, 90, 0, 0))
    whole, single = (made(method, table, 11, space=UNIT) for _ in range(2))
    parts = pa.concat_tables([single.publish(stream.slice(k, 1)) for k in range(stream.num_rows)])
    assert whole.publish(stream).equals(parts), "one message at a time gives other changes than a batch"


def check_bursts_at_one_time(method: str) -> None:
    twins, rng = _twins(method, 42, seconds(5))
    for now in (0, 4, 5, 9, 100):
        table = messages(rng, 30, now * 100, 0)
        twins.publish(table | {"time": pa.array([now * SECOND] * 30, pa.timestamp("us", "UTC"))})


def check_a_window_shrinks_to_nothing_and_fills_again(method: str) -> None:
    twins, rng = _twins(method, 43, seconds(10))
    for now in (0, 1000, 2000):
        twins.publish(messages(rng, 25, now, now * SECOND))
        twins.advance((now + 900) * SECOND)
        assert len(twins.one.window) == 0 and all(twins.one.results(k).num_rows == 0 for k in range(30))


def check_an_empty_window_has_no_results(method: str) -> None:
    twins, rng = _twins(method, 51, seconds(10))
    twins.advance(5 * SECOND)
    twins.subscribe(subscriptions(rng, np.arange(35, 40)))
    assert twins.publish(messages(rng, 0, 0, 0)).num_rows == 0
    twins.reopen()
    assert twins.unsubscribe([1, 36, 99]).num_rows == 0
    twins.publish(messages(rng, 20, 0, 6 * SECOND))


def check_messages_that_share_no_token_are_no_results(method: str) -> None:
    """Also with alpha = 1, where place alone decides the score."""
    rng = np.random.default_rng(52)
    table = subscriptions(rng, np.arange(20)) | {"alpha": np.repeat([0.0, 1.0], 10), "x": np.zeros(20)}
    twins = Twins(method, table, 40, space=UNIT)
    strange = {"id": np.arange(60), "tokens": [["z", "y"]] * 60, "x": np.zeros(60), "y": table["y"][:1].repeat(60)}
    assert twins.publish(strange).num_rows == 0
    twins.publish(messages(rng, 30, 100, 0))
    twins.publish(strange | {"id": np.arange(200, 260)})
    assert all(twins.one.results(k).num_rows == 0 for k in range(20))


def check_equal_messages_are_ordered_newest_first(method: str) -> None:
    table = {"id": [1, 2], "tokens": [["a"], ["a", "b"]], "x": [0.0, 1.0], "y": [0.0, 1.0], "k": [3, 2]}
    twins = Twins(method, table, 5, space=UNIT)
    for k in range(12):
        twins.publish({"id": [k], "text": ["a"], "x": [0.5], "y": [0.5]})
    assert twins.one.results(1)["message"].to_pylist() == [11, 10, 9]


def check_messages_without_a_known_token_take_their_place(method: str) -> None:
    table = {"id": [1], "tokens": [["a"]], "x": [0.0], "y": [0.0], "k": [2]}
    twins = Twins(method, table, 3, space=UNIT)
    twins.publish({"id": [1, 2, 3], "text": ["a", "other", ""], "x": [0.0] * 3, "y": [0.0] * 3})
    changes = twins.publish({"id": [4], "text": ["nothing known"], "x": [0.0], "y": [0.0]})
    assert changes["change"].to_pylist() == [-1] and twins.one.results(1).num_rows == 0


def check_new_subscriptions_find_words_that_nobody_wanted_before(method: str) -> None:
    twins, rng = _twins(method, 44, 20)
    twins.publish({"id": [900, 901], "text": ["late word", "late late"], "x": [0.0, 1.0], "y": [0.0, 1.0]})
    twins.publish(messages(rng, 9, 1000, 0))
    changes = twins.subscribe({"id": [99], "tokens": [["late"]], "x": [0.0], "y": [0.0], "k": [5]})
    assert changes["message"].to_pylist() == [900, 901] or changes["message"].to_pylist() == [901, 900]


def check_k_larger_than_the_window(method: str) -> None:
    rng = np.random.default_rng(45)
    table = subscriptions(rng, np.arange(10)) | {"k": np.full(10, 1000)}
    play(Twins(method, table, 6, space=UNIT), rng, 10)


def check_weights_of_zero_share_tokens_without_words(method: str) -> None:
    weights = {"token": list("abcdefgh"), "weight": [0.0] * 8}
    play(*_twins(method, 46, 9, weights=weights), 10)


def check_many_equal_scores(method: str) -> None:
    """All messages at one place with one word: every score is a tie."""
    rng = np.random.default_rng(47)
    table = subscriptions(rng, np.arange(20)) | {"x": np.zeros(20), "y": np.zeros(20)}
    twins = Twins(method, table, 60, space=UNIT)
    for k in range(12):
        n = int(rng.choice([1, 7, 30]))
        twins.publish({"id": np.arange(n) + 100 * k, "tokens": [["a"]] * n, "x": np.zeros(n), "y": np.zeros(n)})


def check_scores_that_buffers_round_to_one_value(method: str) -> None:
    """Places so near to each other that only exact scores tell the messages apart."""
    rng = np.random.default_rng(50)
    table = subscriptions(rng, np.arange(20)) | {"alpha": np.repeat([1.0, 0.5], 10)}
    twins = Twins(method, table, 45, space=UNIT)
    for k in range(6):
        near = {"x": 0.3 + 1e-7 * rng.integers(0, 40, 20), "y": np.full(20, 0.4)}
        twins.publish({"id": np.arange(20) + 100 * k, "tokens": [["a", "b"]] * 20} | near)
    twins.reopen()
    twins.publish(messages(rng, 60, 9000, 0))


def check_longer_windows_with_refills(method: str) -> None:
    twins, rng = _twins(method, 48, 250)
    for k in range(5):
        twins.publish(messages(rng, 100, 1000 * k, 0))
    twins.reopen()
    twins.publish(messages(rng, 100, 9000, 0))


def check_numbers_of_arrivals_start_anew(method: str) -> None:
    twins, rng = _twins(method, 49, 15)
    for window in (twins.one.window, twins.oracle.window):
        window.first = window.stop = window.loaded = 2 * RENUMBERING - 20
        window.last_arrival = 2 * RENUMBERING
    for k in range(6):
        twins.publish(messages(rng, 9, 100 * k, 0))
    assert 0 < twins.one.window.stop < 2 * RENUMBERING
