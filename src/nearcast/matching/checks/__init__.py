"""What every method must satisfy, as sentences. Shipped, so that authors outside can run it on their own method.

>>> from nearcast.matching.checks import run_checks
>>> [check for check, failure in run_checks("brute") if failure]
[]
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from types import ModuleType

from nearcast.matching.checks import behaviour, exactness, nasty, rank_behaviour, rank_exactness, updates
from nearcast.matching.checks.cases import variants
from nearcast.matching.checks.rank_cases import rank_variants
from nearcast.matching.method import find_method
from nearcast.matching.rank_method import RANK_REGISTRY

Check = Callable[[str], None]


def _in(module: ModuleType) -> dict[str, Check]:
    return {name: check for name, check in vars(module).items() if name.startswith("check_")}


CHECKS: dict[str, Check] = _in(exactness) | _in(nasty) | _in(updates) | _in(behaviour)
"""Each takes a method, by its name and maybe options, and raises AssertionError with the case in words."""

RANK_CHECKS: dict[str, Check] = _in(rank_exactness) | _in(rank_behaviour)
"""The same for methods that serve kind `rank` by themselves."""


def checks_of(name: str) -> dict[str, Callable[[], str | None]]:
    """All checks of a method, for each kind that it serves by itself: each runs, and says what went wrong, or None."""
    find_method(name)
    runs = {check: partial(failure_of, run, name) for check, run in CHECKS.items()}
    if name in RANK_REGISTRY:
        runs |= {check: partial(failure_of, run, name, rank_variants(name)) for check, run in RANK_CHECKS.items()}
    return dict(runs)


def gaps_of(name: str) -> dict[str, str]:
    """The known gaps of a method, for each kind."""
    ranks = RANK_REGISTRY.get(name)
    return find_method(name).known_gaps | (ranks.known_gaps if ranks is not None else {})


def run_checks(name: str) -> list[tuple[str, str | None]]:
    """Run all checks on a method, with each of its options to check: (check, None), or (check, what went wrong)."""
    return [(check, run()) for check, run in checks_of(name).items()]


def failure_of(check: Check, name: str, spelled: list[str] | None = None) -> str | None:
    """None if the check passes with each way to spell the method. An exception of any type is a failure of the method,
    not of the run.
    """
    for variant in variants(name) if spelled is None else spelled:
        try:
            check(variant)
        except Exception as error:
            return f"{type(error).__name__}: {error}" + (f" (with {variant})" if variant != name else "")
    return None
