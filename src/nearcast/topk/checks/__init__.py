"""The checks that every method of kind `top` must pass. Shipped, so that authors of other methods can run them.

Each check plays the same stream to a method and to `brute`, and compares all changes and all lists after every call.

>>> from nearcast.topk.checks import run_checks
>>> [outcome.check for outcome in run_checks("brute") if outcome.failure]
[]
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

from nearcast.matching.checks import CheckRun, failure_of
from nearcast.model import TOP
from nearcast.topk.checks import streams
from nearcast.topk.method import find_method

Check = Callable[[str], None]
"""Takes a method, by its name and maybe options, and raises AssertionError with the case in words."""


class Outcome(NamedTuple):
    check: str
    failure: str | None


def checks() -> dict[str, Check]:
    """Every check, by name."""
    return {name: check for name, check in vars(streams).items() if name.startswith("check_")}


def variants(name: str) -> list[str]:
    """The method with each of the options that its class wants checked."""
    return [f"{name} {options}".strip() for options in find_method(name).checked_with]


def checks_of_top(name: str) -> list[CheckRun]:
    """Every check of a method, ready to run."""
    spelled = variants(find_method(name).name)
    return [CheckRun(TOP.name, check, partial(failure_of, run, spelled), None) for check, run in checks().items()]


def run_checks(name: str) -> list[Outcome]:
    """Run every check of a method, with each of the options that its class wants checked."""
    return [Outcome(each.check, each.run()) for each in checks_of_top(name)]
