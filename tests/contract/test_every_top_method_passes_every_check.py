"""Every method of kind `top` x every check: a new file in topk/methods is picked up with no edit here."""

from __future__ import annotations

import pytest

from nearcast.topk.checks import checks, run_checks, variants
from nearcast.topk.checks.world import Twins, messages, subscriptions
from nearcast.topk.method import METHODS, find_method, method_names

NAMES = [name for name in method_names() if name != "auto"]
CASES = [(variant, check) for name in NAMES for variant in variants(name) for check in checks()]


@pytest.mark.parametrize(("method", "check"), CASES, ids=["-".join(case) for case in CASES])
def test_check(method: str, check: str) -> None:
    checks()[check](method)


def test_auto_is_one_of_the_methods() -> None:
    assert find_method("auto") is METHODS[find_method("auto").name] and "brute" in METHODS


def test_a_wrong_method_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """A method that never refills loses messages, and the checks say so."""
    monkeypatch.setattr("nearcast.topk.buffered.buffered_method.rows_to_refill", lambda *_: 0)
    failed = {outcome.check for outcome in run_checks("term-lists") if outcome.failure}
    assert "check_count_windows_agree_with_brute_force" in failed


def test_twins_name_the_first_difference() -> None:
    import numpy as np

    rng = np.random.default_rng(1)
    twins = Twins("brute", subscriptions(rng, [1, 2, 3]), 5, space=(0, 0, 1, 1))
    twins.one.publish(messages(rng, 1, 7, 0) | {"tokens": [list("abcdefgh")]})
    with pytest.raises(AssertionError, match="changes differ from brute force: row 0|list of 1"):
        twins.publish(messages(rng, 1, 8, 0) | {"tokens": [list("abcdefgh")]})
