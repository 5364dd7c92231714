"""The checks that every method must pass. Shipped, so that authors of other methods can run them.

Most checks serve every kind: they draw subscriptions from the parameters that the kind declares and compare a method
with the kind's `brute`. A kind may add checks of its own.

>>> from nearcast.matching.checks import run_checks
>>> [outcome.check for outcome in run_checks("brute") if outcome.failure]
[]
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from types import ModuleType
from typing import Any, NamedTuple

from nearcast.matching.checks import behaviour, exactness, match_cases, rank_cases
from nearcast.matching.checks.cases import variants
from nearcast.matching.method import REGISTRY, find_method, kinds_of
from nearcast.model import KINDS, Kind

Check = Callable[[str], None]
"""Takes a method, by its name and maybe options, and raises AssertionError with the case in words."""

OF_EVERY_KIND = (exactness, behaviour)
OF_ONE_KIND: dict[str, tuple[ModuleType, ...]] = {"match": (match_cases,), "rank": (rank_cases,)}
"""Modules with further checks, by kind."""


class CheckRun(NamedTuple):
    """A check of one method, ready to run."""

    kind: str
    check: str
    run: Callable[[], str | None]  # returns the failure, or None
    known_gap: str | None


class Outcome(NamedTuple):
    kind: str
    check: str
    failure: str | None


def checks_for(kind: Kind) -> dict[str, Check]:
    """Every check of a kind, by name."""
    common = {name: partial(check, kind=kind) for name, check in _checks_in(*OF_EVERY_KIND).items()}
    return common | _checks_in(*OF_ONE_KIND.get(kind.name, ()))


def checks_of(name: str) -> list[CheckRun]:
    """Every check of a method, for each kind that the method serves by itself."""
    served = [KINDS[kind] for kind in kinds_of(name) if (kind, name) in REGISTRY]
    if not served:
        find_method("match", name)  # raises: there is no such method
    runs = []
    for kind in served:
        gaps, spelled = REGISTRY[kind.name, name].known_gaps, variants(name, kind)
        for check, run in checks_for(kind).items():
            runs.append(CheckRun(kind.name, check, partial(failure_of, run, spelled), gaps.get(check)))
    return runs


def run_checks(name: str) -> list[Outcome]:
    """Run every check of a method, with each of the options that its class wants checked."""
    return [Outcome(each.kind, each.check, each.run()) for each in checks_of(name)]


def failure_of(check: Check, spelled: list[str]) -> str | None:
    """The failure of a check on a method with some options, or None. Any exception is a failure of the method."""
    for variant in spelled:
        try:
            check(variant)
        except Exception as error:
            has_options = len(variant.split()) > 1
            return f"{type(error).__name__}: {error}" + (f" (with {variant})" if has_options else "")
    return None


def _checks_in(*modules: ModuleType) -> dict[str, Any]:
    return {name: check for module in modules for name, check in vars(module).items() if name.startswith("check_")}
