"""Every moving method x every check: a new file in moving/ is picked up with no edit here."""

from __future__ import annotations

from typing import Any

import pytest

from nearcast.moving.checks import moving_checks, run_moving_checks
from nearcast.moving.method import REGISTRY, moving_methods

CASES = [
    (name, dict(options), check)
    for name in moving_methods()
    for options in REGISTRY[name].checked_with
    for check in moving_checks()
]


def shown(case: Any) -> str:
    return case if isinstance(case, str) else " ".join(f"{key}={value}" for key, value in case.items())


@pytest.mark.parametrize(("method", "options", "check"), CASES, ids=shown)
def test_check(method: str, options: dict[str, Any], check: str) -> None:
    moving_checks()[check](method, options)


def test_a_wrong_method_is_reported() -> None:
    class Forgetful(REGISTRY["brute"]):  # type: ignore[misc, name-defined]
        name = "forgetful"

        def move(self, rows: Any, boxes: Any) -> Any:
            found = super().move(rows, boxes)
            return type(found)(*(column[:0] for column in found))

    try:
        failures = run_moving_checks("forgetful")
    finally:
        del REGISTRY["forgetful"]
    assert failures["check_a_move_to_a_message_and_away"] and failures["check_tiny_pools"]
    assert failures["check_expiry"] is not None and failures["check_not_terms_and_no_terms"]
