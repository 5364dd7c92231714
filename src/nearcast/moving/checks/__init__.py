"""The checks that every moving method must pass. Shipped, so that authors of other methods can run them.

>>> from nearcast.moving.checks import run_moving_checks
>>> [name for name, failure in run_moving_checks("brute").items() if failure]
[]
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from nearcast.moving.checks import long_runs, single_cases
from nearcast.moving.method import find_moving_method

Check = Callable[[str, dict[str, Any]], None]
"""Takes a method and its options, and raises AssertionError with the case in words."""


def moving_checks() -> dict[str, Check]:
    """Every check, by name."""
    modules = (single_cases, long_runs)
    return {name: check for module in modules for name, check in vars(module).items() if name.startswith("check_")}


def run_moving_checks(method: str) -> dict[str, str | None]:
    """Run every check with each of the options that the method's class names: the failure of each check, or None."""
    return {name: _failure(check, method) for name, check in moving_checks().items()}


def _failure(check: Check, method: str) -> str | None:
    for options in find_moving_method(method).checked_with:
        try:
            check(method, dict(options))
        except Exception as error:
            return f"{type(error).__name__}: {error}" + (f" (with {options})" if options else "")
    return None
