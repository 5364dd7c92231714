"""Kind `rank` through the index and the engine, beside kind `match`."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import nearcast as nc
from nearcast.errors import UnsupportedKind

UNIT = (0.0, 0.0, 1.0, 1.0)
WEIGHTS = {"token": ["a", "b", "c"], "weight": [1.0, 3.0, 4.0]}


def row(number: int, kind: str = "rank", **changes: Any) -> dict[str, Any]:
    base = {"id": number, "kind": kind, "tokens": ["a", "b"], "xmin": 0.0, "ymin": 0.0, "xmax": 1.0, "ymax": 1.0}
    return base | {"alpha": 0.5, "threshold": 0.5 if kind == "rank" else None, "expires": None} | changes


def message(number: int = 9, tokens: tuple[str, ...] = ("b",), **changes: Any) -> dict[str, Any]:
    return {"id": number, "tokens": [*tokens], "x": 0.5, "y": 0.5} | changes


def pairs(index: nc.Index, *messages: dict[str, Any]) -> list[tuple[Any, ...]]:
    return [tuple(found.values()) for found in index.match(list(messages)).to_pylist()]


def test_the_score_column_exists_while_there_are_ranked_subscriptions() -> None:
    index = nc.build_index([row(1), row(2, "match"), row(3, "match", tokens=["b"])], weights=WEIGHTS, space=UNIT)
    table = index.match([message(9), message(5, ("a", "b"))])
    assert table.schema.field("score").type == pa.float64()
    assert [tuple(found.values()) for found in table.to_pylist()] == [
        (5, 1, 1.0),
        (5, 2, None),
        (5, 3, None),
        (9, 1, 0.875),
        (9, 3, None),
    ]
    index.remove([1])
    assert index.match([message(9)]).column_names == ["message", "subscription"]


def test_a_polars_frame_may_hold_both_kinds_and_bad_rows() -> None:
    polars = pytest.importorskip("polars")
    frame = polars.DataFrame([row(1), row(2, "match", tokens=["b"]), row(3, threshold=4.0)])
    index = nc.build_index(frame, weights=polars.DataFrame(WEIGHTS), space=UNIT, on_bad="skip")
    assert index.rejects is not None and index.rejects["column"].to_pylist() == ["threshold"]
    assert pairs(index, message()) == [(9, 1, 0.875), (9, 2, None)]


def test_an_id_belongs_to_one_kind_at_a_time() -> None:
    index = nc.build_index([row(1), row(2)], weights=WEIGHTS, space=UNIT)
    index.insert([row(1, "match", tokens=["b"])])
    assert pairs(index, message()) == [(9, 1, None), (9, 2, 0.875)] and len(index) == 2
    index.insert([row(1, tokens=["c"], threshold=0.0)])
    assert pairs(index, message()) == [(9, 1, 0.5), (9, 2, 0.875)] and len(index) == 2
    assert index.match_one(["b"], 0.5, 0.5).tolist() == [1, 2]
    index.remove([1, 2, 77])
    assert len(index) == 0 and pairs(index, message()) == []


def test_weights_are_fixed_by_the_first_subscriptions_and_saved(tmp_path: Path) -> None:
    index = nc.build_index([row(1, tokens=["a", "b"]), row(2, tokens=["a"])], space=UNIT)
    heavy, light = np.log(3), np.log(2)
    first = pairs(index, message(tokens=("a",)))
    assert first == [(9, 1, pytest.approx(0.5 + 0.5 * light / (light + heavy))), (9, 2, 1.0)]
    index.insert([row(3, tokens=["a", "later"]), row(4, tokens=["a"]), row(5, tokens=["a"])])
    index.save(tmp_path / "index")
    for one in (index, nc.open_index(tmp_path / "index")):
        one.insert([row(6, tokens=["a", "newest"])])
        found = {number: score for _, number, score in pairs(one, message(tokens=("a",)))}
        assert found[1] == first[0][2] == found[3] == found[6], "later tokens weigh as much as the heaviest"


def test_the_first_table_that_is_not_empty_fixes_the_weights(tmp_path: Path) -> None:
    index = nc.build_index({"id": pa.array([], pa.int64()), "tokens": [], "x": [], "y": []}, space=UNIT)
    index.insert([row(1, "match", tokens=["a"]), row(2, "match", tokens=["a", "b"])])
    index.save(tmp_path / "index")
    opened = nc.open_index(tmp_path / "index")
    opened.insert([row(3)])
    assert opened.match([message()]).to_pylist()[-1]["score"] == pytest.approx(0.5 + 0.5 * np.log(3) / np.log(6))


def test_saved_and_opened_keeps_both_kinds(tmp_path: Path) -> None:
    index = nc.build_index([row(1), row(2, "match", tokens=["b"])], weights=WEIGHTS, space=UNIT)
    index.save(tmp_path / "index")
    opened = nc.open_index(tmp_path / "index")
    assert pairs(opened, message()) == pairs(index, message()) == [(9, 1, 0.875), (9, 2, None)]
    assert len(opened) == 2 and opened.stats.matches == 2
    opened.insert([row(2), row(5, tokens=["c"])])
    assert pairs(opened, message()) == [(9, 1, 0.875), (9, 2, 0.875), (9, 5, 0.5)]


def test_a_vocabulary_can_provide_the_weights() -> None:
    words = nc.Vocabulary()
    words.count_documents(words.add(pa.array(["a", "b", "a"])), np.array([0, 2, 3]))
    index = nc.build_index([row(1)], weights=words, space=UNIT)
    assert pairs(index, message()) == [(9, 1, pytest.approx(0.5 + 0.5 * np.log(3) / np.log(6)))]


def test_sizes_and_work_cover_both_kinds() -> None:
    rows = [row(number, "match" if number % 2 else "rank") for number in range(200)]
    index, half = nc.build_index(rows, "brute", space=UNIT), nc.build_index(rows[1::2], "brute", space=UNIT)
    assert index.plan == "brute; kind rank: brute" and half.plan == "brute"
    assert len(index) == 200 and index.nbytes > half.nbytes + 100 * 40
    index.match([message(1, ("a", "b"))])
    assert index.stats.matches == 200 and index.stats.candidates == 200


def test_ranked_subscriptions_expire() -> None:
    index = nc.build_index([row(1, expires="2026-01-02T00:00:00Z"), row(2)], space=UNIT)
    before, after = message(1, time="2026-01-01T00:00:00Z"), message(2, time="2026-01-02T00:00:00Z")
    assert [pair[:2] for pair in pairs(index, before, after)] == [(1, 1), (1, 2), (2, 2)]


def test_a_method_without_rank_refuses_before_anything_changes() -> None:
    index = nc.build_index([row(1, "match")], "pyramid", space=UNIT)
    with pytest.raises(UnsupportedKind, match="'pyramid' does not serve subscriptions of kind 'rank'"):
        index.insert([row(1), row(2, "match")])
    assert len(index) == 1 and pairs(index, message(9, ("a", "b"))) == [(9, 1)]


# -- engine


def test_the_engine_serves_both_kinds_and_returns_scores() -> None:
    engine = nc.Engine(space=UNIT, weights=WEIGHTS)
    ranked = engine.subscribe("a b", box=(0, 0, 1, 1), kind="rank", threshold=0.8)
    plain = engine.subscribe("b")
    everywhere = engine.subscribe("b c", kind="rank", alpha=0.25, threshold=0.5)
    assert engine.publish("b", at=(0.5, 0.5)) == [
        nc.Match(1, ranked, 0.875),
        nc.Match(1, plain),
        nc.Match(1, everywhere, pytest.approx(0.25 + 0.75 * 3 / 7)),
    ]
    assert engine.publish("b", at=(5.0, 5.0), id=8)[0] == nc.Match(8, plain) and len(engine) == 3
    engine.subscribe("b", id=ranked)
    assert engine.publish("b", at=(5.0, 5.0))[0].score is None
    engine.unsubscribe(ranked, everywhere)
    assert engine.publish("b", at=(0.5, 0.5), id=9) == [nc.Match(9, plain)]


def test_the_engine_expires_and_explains_ranked_subscriptions() -> None:
    now = [1000.0]
    engine = nc.Engine(space=UNIT, clock=lambda: now[0])
    number = engine.subscribe("a b", box=UNIT, kind="rank", threshold=0.8, expires=timedelta(seconds=5))
    explanation = engine.explain(number, "a", at=(0.5, 0.5))
    assert (explanation.holds, explanation.score, explanation.threshold, explanation.missing) == (
        False,
        0.75,
        0.8,
        ("b",),
    )
    assert str(explanation).startswith("no match\n  score 0.75, threshold 0.8")
    assert engine.explain(number, "a b", at=(0.5, 0.5)).holds
    now[0] = 1005.0
    assert engine.publish("a b", at=(0.5, 0.5)) == [] and len(engine) == 0


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"kind": "best"}, "kind= is 'match' or 'rank' or 'top', not 'best'"),
        ({"kind": "rank"}, "needs threshold="),
        ({"kind": "rank", "threshold": 1.5}, "threshold= is a number from 0 to 1, not 1.5"),
        ({"kind": "rank", "threshold": 0.5, "alpha": "much"}, "alpha= is a number from 0 to 1, not 'much'"),
        ({"alpha": 0.5}, "go with kind='rank'"),
        ({"kind": "rank", "threshold": 0.5, "near": (0, 0), "km": 1}, "takes box= or no place, not"),
    ],
)
def test_invalid_ranked_subscriptions_are_refused(arguments: dict[str, Any], words: str) -> None:
    engine = nc.Engine(space=UNIT)
    with pytest.raises(nc.InvalidInput, match=words):
        engine.subscribe("a", **arguments)
    for expression in ("a OR b", "a NOT b"):
        with pytest.raises(nc.InvalidInput, match="takes plain words, not OR or NOT"):
            engine.subscribe(expression, kind="rank", threshold=0.5)
    assert len(engine) == 0
