"""Hostile input costs what it is worth: each case of `hostile.py` is answered, or refused with a NearcastError."""

from __future__ import annotations

import gzip
import signal
import unicodedata
from collections.abc import Iterator
from pathlib import Path
from random import Random
from types import FrameType
from typing import Any

import numpy as np
import pytest
import shapely

import nearcast as nc
from hostile import Case, cases
from nearcast.geo.crossings import require_few_crossings
from nearcast.geo.geojson import parse_region
from nearcast.geo.space import Space
from nearcast.limits import LIMITS, Limits, variable
from nearcast.tables import as_arrow
from nearcast.tables.input_checks.json_lines import depth_of, fault_of
from nearcast.text.clauses import clauses
from nearcast.text.expression import parse
from nearcast.text.unicode_tokens import normal_form

HANGS_S = 8.0
"""CPU seconds after which a case hangs: forty times what is allowed, so that a slow machine makes no difference."""


@pytest.fixture
def watched() -> Iterator[None]:
    """Raise in a test that hangs."""

    def stop(number: int, frame: FrameType | None) -> None:
        raise TimeoutError("the input makes it hang")

    before = signal.signal(signal.SIGPROF, stop)
    signal.setitimer(signal.ITIMER_PROF, HANGS_S)
    yield
    signal.setitimer(signal.ITIMER_PROF, 0)
    signal.signal(signal.SIGPROF, before)


@pytest.mark.parametrize("case", list(cases()), ids=str)
def test_it_is_answered_or_refused(case: Case, watched: None) -> None:
    try:
        case.work()
    except nc.NearcastError as error:
        assert 0 < len(str(error)) < 3000


@pytest.mark.parametrize("ending", ["jsonl", "jsonl.gz"])
@pytest.mark.parametrize("brackets", [('{"a":', "1", "}"), ("[", "", "]")])
def test_json_lines_nested_too_deeply_are_refused_by_line(
    tmp_path: Path, ending: str, brackets: tuple[str, str, str], watched: None
) -> None:
    deep = '{"id": 2, "b": ' + brackets[0] * 100_000 + brackets[1] + brackets[2] * 100_000 + "}"
    text = '{"id": 1, "text": "[[[[ {{{{ \\" [", "x": 0, "y": 0}\n' * 2 + deep + "\n"
    file = tmp_path / f"m.{ending}"
    file.write_bytes(gzip.compress(text.encode()) if ending.endswith("gz") else text.encode())
    with pytest.raises(nc.InvalidInput, match=f"nested more than {LIMITS.json_depth} deep") as caught:
        nc.build_index(str(file))
    assert caught.value.row == 3


@pytest.mark.parametrize("line", ["null", '"a"', "1", "[]", "{} null", "{}, {}", "nullnull", '{"id": 2} "}"', "}{"])
def test_lines_that_are_no_object_are_refused(tmp_path: Path, line: str) -> None:
    file = tmp_path / "m.jsonl"
    file.write_text('{"id": 1, "tokens": ["a"], "x": 0, "y": 0}\n\n' + line + "\n")
    with pytest.raises(nc.InvalidInput, match="the line is no JSON object") as caught:
        nc.build_index(str(file))
    assert caught.value.row == 3


@pytest.mark.parametrize("line", [' {"a": {}} ', '{"a": {"b": [1]}, "c": "}{"}\r', "{}", "{ }", '{"a": "\\"}"}'])
def test_objects_of_any_form_are_read(tmp_path: Path, line: str) -> None:
    assert fault_of(line.encode()) == ""
    file = tmp_path / "m.jsonl"
    file.write_text('{"id": 1, "text": "a", "x": 0, "y": 0, "note": "} {"}\n' + line + "\n\n")
    assert len(as_arrow(str(file))) == 2


def test_brackets_in_strings_are_no_depth(tmp_path: Path) -> None:
    file = tmp_path / "m.jsonl"
    file.write_text('{"id": 1, "expression": "", "region": "world", "note": "' + "[" * 1000 + '"}\n')
    assert len(nc.build_index(str(file), extra=["note"])) == 1
    assert [depth_of(text) for text in (b"", b'"[\\"["', b"[[]]", b'{"a": [1, 2], "b": {}}', b'["')] == [0, 0, 2, 2, 1]


def test_long_runs_of_marks_have_the_normal_form_of_the_standard() -> None:
    random, marks = Random(3), "\u0301\u0323\u0327\u0308\u0344\u0f73\u0f71\u05b0\u093c\u0903\u20dd\u0345"
    for length in (63, 64, 65, 200):
        for _ in range(50):
            text = "a" + "".join(random.choice(marks) for _ in range(length)) + "e\u0301"
            plain = unicodedata.normalize("NFC", unicodedata.normalize("NFC", text).casefold())
            assert normal_form(text, False) == plain


def test_crossings_are_counted_and_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    def grid(n: int) -> dict[str, Any]:
        """A multipolygon of n flat and n upright boxes: 4 n^2 crossings."""
        flat = [shapely.box(-30, k, 30, k + 0.5) for k in range(n)]
        upright = [shapely.box(k, -30, k + 0.5, 30) for k in range(n)]
        made: dict[str, Any] = shapely.geometry.mapping(shapely.MultiPolygon([*flat, *upright]))
        return made

    monkeypatch.setattr(LIMITS, "region_crossings", 4 * 5**2)
    region = parse_region(grid(5), Space.of(None))
    assert region.overlaps(np.array([[0.1, 20.0, 0.1, 20.0], [0.7, 20.0, 0.7, 20.0]])).tolist() == [True, False]
    with pytest.raises(nc.InvalidInput, match="cross more than 100 times; repair it first|cross more than 100 times"):
        parse_region(grid(6), Space.of(None))
    monkeypatch.setattr(LIMITS, "region_meetings", 50)
    with pytest.raises(nc.InvalidInput, match="more than 50 pairs"):
        require_few_crossings(shapely.MultiPolygon([shapely.box(k * 0.01, 0, 5, 5) for k in range(9)]))


@pytest.mark.parametrize(
    ("name", "text", "reason"),
    [
        ("expression_characters", "a b c", "more than 2 characters"),
        ("expression_depth", "(((a)))", "more than 2 parentheses"),
        ("expression_alternatives", "a b OR c d OR e f", "more than 2 alternatives"),
        ("expression_filters", "{a = 1} {a = 2} {a = 3}", "more than 2 filters"),
        ("filter_values", "{a in (1, 2, 3)}", "more than 2 values"),
    ],
)
def test_limits_of_expressions_are_settings(name: str, text: str, reason: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert clauses(parse(text, nc.Analyser()))
    monkeypatch.setattr(LIMITS, name, 2)
    with pytest.raises(nc.InvalidInput, match=reason):
        clauses(parse(text, nc.Analyser()))


def test_limits_come_from_the_environment_and_are_documented(monkeypatch: pytest.MonkeyPatch) -> None:
    page = (Path(__file__).parents[2] / "docs/reference/limits.md").read_text()
    for name, default in vars(Limits()).items():
        assert f"| `{name}` | {default:,} |" in page
        monkeypatch.setenv(variable(name), "7")
    assert set(vars(Limits.of_environment()).values()) == {7}
    for wrong in ("", "-1", "many", "9" * 5000):
        monkeypatch.setenv("NEARCAST_JSON_DEPTH", wrong)
        with pytest.raises(nc.InvalidInput, match="NEARCAST_JSON_DEPTH"):
            Limits.of_environment()


def test_a_region_that_is_too_long_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(LIMITS, "region_characters", 10)
    with pytest.raises(nc.InvalidInput, match="more than 10 characters"):
        parse_region("circle(0, 0, 1km)", Space.of(None))
