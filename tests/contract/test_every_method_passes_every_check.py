"""Every method x every check: a new file in indexes/ is picked up with no edit here."""

from __future__ import annotations

import pytest

import nearcast.indexes  # noqa: F401  registers every method
from nearcast.matching.checks import CHECKS
from nearcast.matching.checks.cases import variants
from nearcast.matching.method import REGISTRY

CASES = [(variant, check) for method in sorted(REGISTRY) for variant in variants(method) for check in CHECKS]


@pytest.mark.parametrize(("method", "check"), CASES, ids=[f"{method}-{check}" for method, check in CASES])
def test_check(method: str, check: str, request: pytest.FixtureRequest) -> None:
    reason = REGISTRY[method.split()[0]].known_gaps.get(check)
    if reason is not None:
        request.applymarker(pytest.mark.xfail(reason=reason, strict=True))
    CHECKS[check](method)


def test_known_gaps_name_real_checks() -> None:
    for method in REGISTRY.values():
        assert set(method.known_gaps) <= set(CHECKS), method.name
