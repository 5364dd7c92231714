"""What every method must satisfy, as sentences. Shipped, so that authors outside can run it on their own method.

>>> from nearcast.matching.checks import run_checks
>>> [check for check, failure in run_checks("brute") if failure]
[]
"""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType

from nearcast.matching.checks import behaviour, exactness, nasty, updates
from nearcast.matching.checks.cases import variants

Check = Callable[[str], None]


def _in(module: ModuleType) -> dict[str, Check]:
    return {name: check for name, check in vars(module).items() if name.startswith("check_")}


CHECKS: dict[str, Check] = _in(exactness) | _in(nasty) | _in(updates) | _in(behaviour)
"""Each takes a method, by its name and maybe options, and raises AssertionError with the case in words."""


def run_checks(name: str) -> list[tuple[str, str | None]]:
    """Run all checks on a method, with each of its options to check: (check, None), or (check, what went wrong)."""
    return [(check_name, failure_of(check, name)) for check_name, check in CHECKS.items()]


def failure_of(check: Check, name: str) -> str | None:
    """None if the check passes. An exception of any type is a failure of the method, not of the run."""
    for variant in variants(name):
        try:
            check(variant)
        except Exception as error:
            return f"{type(error).__name__}: {error}" + (f" (with {variant})" if variant != name else "")
    return None
