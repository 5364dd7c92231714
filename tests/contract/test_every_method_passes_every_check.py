"""Every method x every check, for each kind that it serves: a new file in indexes/ is picked up with no edit here."""

from __future__ import annotations

import pytest

from nearcast.engine.catalogue import methods
from nearcast.errors import UnsupportedKind
from nearcast.matching.checks import checks_for, checks_of
from nearcast.matching.checks.cases import variants
from nearcast.matching.method import REGISTRY, find_method
from nearcast.model import KINDS, MATCH, RANK

NAMES = [info.name for info in methods()]
CASES = [
    (kind, variant, check)
    for kind, name in sorted(REGISTRY)
    for variant in variants(name, KINDS[kind])
    for check in checks_for(KINDS[kind])
]


@pytest.mark.parametrize(("kind", "method", "check"), CASES, ids=["-".join(case) for case in CASES])
def test_check(kind: str, method: str, check: str, request: pytest.FixtureRequest) -> None:
    reason = REGISTRY[kind, method.split()[0]].known_gaps.get(check)
    if reason is not None:
        request.applymarker(pytest.mark.xfail(reason=reason, strict=True))
    checks_for(KINDS[kind])[check](method)


def test_known_gaps_name_real_checks() -> None:
    for (kind, name), method in REGISTRY.items():
        assert set(method.known_gaps) <= set(checks_for(KINDS[kind])), name


def test_each_kind_adds_to_the_checks_of_every_kind() -> None:
    match, rank = set(checks_for(MATCH)), set(checks_for(RANK))
    assert len(match & rank) > 20 and len(match - rank) > 10 and len(rank - match) > 10
    assert {(each.kind, each.check) for each in checks_of("brute")} == {
        *(("match", check) for check in match),
        *(("rank", check) for check in rank),
    }
    assert {each.kind for each in checks_of("auto")} == {"match"}, "it serves rank by another method"


def test_methods_say_which_kinds_they_serve() -> None:
    ranked = {name for kind, name in REGISTRY if kind == "rank"}
    assert ranked == {"brute", "rt-tree", "rt+-tree", "rt++-tree"}
    for info in methods():
        assert info.kinds == (("match", "rank") if info.name in {*ranked, "auto"} else ("match",)), info.name
    assert find_method("rank", "auto").name == RANK.default_method
    with pytest.raises(UnsupportedKind, match=r"'pyramid' does not serve .* 'rank'; those that do: auto, brute"):
        find_method("rank", "pyramid")
