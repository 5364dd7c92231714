"""Engines of all four kinds continue after a save, and after a pickle, as if nothing had happened."""

from __future__ import annotations

import pickle
import uuid
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

import nearcast as nc
from nearcast.errors import CorruptFile, InvalidInput, NotSaved

POLYGON = {"type": "Polygon", "coordinates": [[[0, 0], [2, 0], [2, 2], [0, 0]]]}
START = datetime(2026, 1, 1, tzinfo=UTC)
NAMINGS: dict[str, Callable[[int], Any]] = {
    "numbers": lambda number: number,
    "strings": lambda number: f"{'bac'[number % 3]}{number}",
    "uuids": lambda number: uuid.UUID(int=(number * 7919) << 100),
}


def fixed_clock() -> float:
    return START.timestamp()


def engine_of_all_kinds(name: Callable[[int], Any]) -> nc.Engine:
    weights = {"token": ["hot", "pizza"], "weight": [1.0, 3.0]}
    engine = nc.Engine("brute", weights=weights, clock=fixed_clock, lifetime=timedelta(hours=1))
    engine.subscribe("pizza OR deal", near=(0.0, 0.0), km=3, id=name(1))
    engine.subscribe("hot", box=(0, 0, 1, 1), id=name(2), kind="rank", threshold=0.2)
    engine.subscribe("hot pizza", near=(0.0, 0.0), id=name(3), kind="top", k=2, window=timedelta(minutes=10))
    engine.subscribe("pizza", near=(0.0, 0.0), id=name(4), kind="top", k=1, window=3)
    engine.subscribe("pizza", near=(0.0, 0.0), km=3, id=name(5), follow=True)
    engine.subscribe("hot", region=POLYGON, id=name(6), follow=True, dwell=timedelta(minutes=2))
    engine.subscribe("pizza", region=POLYGON, id=name(7), expires=timedelta(minutes=5))
    engine.subscribe("a NOT a", id=name(8))
    engine.unsubscribe(name(1))
    engine.subscribe("pizza OR deal", near=(0.0, 0.0), km=3, id=name(1))
    engine.publish("hot pizza", at=(0.0, 0.0), id=name(100))
    engine.publish("hot deal", at=(0.5, 0.5), id=name(101))
    return engine


def history(engine: nc.Engine, name: Callable[[int], Any]) -> list[Any]:
    """What happens next, as values that can be compared."""
    seen: list[Any] = [len(engine), engine.publish("hot pizza deal", at=(0.001, 0.0), id=name(102))]
    seen += [engine.move(name(5), (1.0, 1.0)), engine.advance(START + timedelta(minutes=3))]
    seen += [engine.results(name(number)).to_pylist() for number in (3, 4, 5, 6)]
    seen += [str(engine.explain(name(number), "pizza", at=(0.0, 0.0))) for number in (1, 2, 3, 5, 7)]
    seen += [engine.advance(START + timedelta(minutes=6)), len(engine)]
    engine.subscribe("pizza", id=name(9))
    seen += [engine.publish("pizza", at=(0.5, 0.5), id=name(103)), engine.unsubscribe(name(3), name(5), name(6))]
    return [*seen, engine.publish_many({"id": [name(104)], "text": ["pizza"], "x": [0.0], "y": [0.0]}).to_pylist()]


@pytest.mark.parametrize("naming", NAMINGS)
def test_a_saved_engine_and_a_pickled_one_continue(naming: str, tmp_path: Path) -> None:
    name = NAMINGS[naming]
    engine = engine_of_all_kinds(name)
    engine.save(tmp_path / "engine")
    twins = [nc.open_engine(tmp_path / "engine", clock=fixed_clock), pickle.loads(pickle.dumps(engine))]
    engine.save(tmp_path / "engine")
    wanted = history(engine, name)
    for twin in twins:
        assert history(twin, name) == wanted


def test_numbers_go_on_after_opening(tmp_path: Path) -> None:
    engine = nc.Engine("brute")
    first = engine.subscribe("pizza")
    engine.publish("pizza", at=(0.0, 0.0))
    engine.save(tmp_path / "engine")
    opened = nc.open_engine(tmp_path / "engine")
    assert opened.subscribe("pizza") == engine.subscribe("pizza") == first + 1
    assert opened.publish("pizza", at=(0, 0)) == engine.publish("pizza", at=(0, 0)) == [nc.Match(2, 1), nc.Match(2, 2)]


def test_a_saved_engine_is_pickled_by_path_until_it_changes(tmp_path: Path) -> None:
    engine = nc.Engine("brute")
    engine.subscribe("pizza")
    engine.save(tmp_path / "engine")
    small = pickle.dumps(engine)
    assert len(small) < 1000 and len(pickle.loads(small)) == 1
    engine.subscribe("deal")
    assert len(pickle.dumps(engine)) > 2000 and len(pickle.loads(pickle.dumps(engine))) == 2
    engine.save(tmp_path / "engine")
    with pytest.raises(InvalidInput, match="was replaced since it was pickled; open it again"):
        pickle.loads(small)


def test_a_damaged_engine_is_refused(tmp_path: Path) -> None:
    engine = nc.Engine("brute")
    engine.subscribe("pizza")
    engine.save(tmp_path / "engine")
    victim = next((tmp_path / "engine").rglob("*subscriptions*"))
    victim.write_bytes(victim.read_bytes()[:-8] + b"rubbish!")
    with pytest.raises(CorruptFile):
        nc.open_engine(tmp_path / "engine")
    with pytest.raises(NotSaved):
        nc.open_engine(tmp_path / "none")


@pytest.mark.parametrize("kind", ["index", "engine", "top-k", "moving"])
def test_short_texts_and_notebook_summaries(kind: str) -> None:
    here: dict[str, Any] = {"id": ["a<b"], "tokens": [["pizza"]], "x": [1.0], "y": [2.0]}
    engine = engine_of_all_kinds(NAMINGS["strings"])
    made: dict[str, Any] = {"index": nc.build_index(here), "engine": engine, "moving": nc.Moving(here)}
    shown = made.get(kind) or nc.TopK(here, window=5)
    assert repr(shown).startswith(f"<nearcast {kind}: {len(shown)} subscriptions") and len(repr(shown)) < 120
    html = shown._repr_html_()
    assert "<th>subscriptions</th><td>" in html and "<th>memory</th>" in html and "<th>method</th>" in html
    assert html.count("<svg") == html.count("</svg>") == 1 and "fill-opacity" in html and len(html) < 20_000


def test_the_summary_of_nothing_has_an_empty_map() -> None:
    for empty in (
        nc.Engine(),
        nc.Moving(),
        nc.TopK(window=3),
        nc.build_index({"id": [], "tokens": [], "x": [], "y": []}),
    ):
        assert "no subscription has a place" in empty._repr_html_()
