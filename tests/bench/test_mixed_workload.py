"""What people register: regions of all kinds, OR and NOT, no words, expiry, around real messages."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import nearcast.indexes  # noqa: F401  registers every method
from nearcast.arrays.jit import JIT_DISABLED
from nearcast.bench.runs.case import Settings, method_names
from nearcast.bench.runs.run_case import run_case
from nearcast.bench.workloads.corpus import SyntheticCorpus, message_group
from nearcast.bench.workloads.regions import draw_regions, region_text
from nearcast.bench.workloads.rows import rows_and_shapes
from nearcast.bench.workloads.subscriptions import draw_subscriptions, message_batch
from nearcast.bench.workloads.tables import message_tables, subscription_tables, write_workload
from nearcast.bench.workloads.text_corpus import TextCorpus, corpus_for
from nearcast.bench.workloads.times import DAY, FIRST_MESSAGE, expiry_times, message_times
from nearcast.bench.workloads.workload import PRESETS, Workload
from nearcast.engine.index import build_index
from nearcast.errors import InvalidInput
from nearcast.geo.circle import CircleRegion
from nearcast.geo.geojson import parse_region
from nearcast.geo.polygon import PolygonRegion
from nearcast.geo.space import LONLAT
from nearcast.matching.subscription_set import SubscriptionSet
from nearcast.model import NEVER

N = 120 if JIT_DISABLED else 3_000
MIXED = PRESETS["mixed"].but(subscriptions=N, messages=20, clusters=2)
CORPUS = corpus_for(MIXED)
PLANE = Workload(
    name="plane", subscriptions=N, messages=20, vocabulary=60, topics=5, words_per_topic=20, clusters=3,
    tokens=(1, 3), long=(20, 30), box_share=(0.01, 0.2), circle_share=0.4, polygon_share=0.3, negated_share=0.3,
    wordless_share=0.05, expiring_share=0.3,
)  # fmt: skip
NOTES = Path(__file__).parents[3] / "shared" / "data" / "osm_notes.csv.gz"


def direct(corpus, workload, group, method="brute"):
    matcher = SubscriptionSet(method, workload.geometry)
    matcher.insert(*rows_and_shapes(workload, draw_subscriptions(corpus, workload, 0, workload.subscriptions), 0))
    numbers = np.arange(workload.messages)
    drawn = message_group(corpus, workload, group, numbers)
    return matcher.match(message_batch(drawn, message_times(workload, numbers)))


@pytest.mark.parametrize("workload", [MIXED, PLANE], ids=lambda workload: workload.name)
def test_rows_and_tables_describe_the_same_subscriptions(workload):
    corpus = corpus_for(workload)
    index = build_index(pa.concat_tables(subscription_tables(corpus, workload)), "brute", space=workload.space)
    for group in workload.groups:
        found = direct(corpus, workload, group)
        table = index.match(pa.concat_tables(message_tables(corpus, workload, group)))
        assert table["subscription"].to_pylist() == found.ids.tolist()
        assert table["message"].to_pylist() == np.repeat(np.arange(20), np.diff(found.starts)).tolist()
        assert len(found.ids) > 20


def test_the_mix_is_what_the_page_says():
    n = 4_000
    drawn = draw_subscriptions(CORPUS, MIXED, 0, n)
    kinds = draw_regions(MIXED, drawn, 0)
    shares = [sum(isinstance(region, kind) for region in kinds.regions) / n for kind in (CircleRegion, PolygonRegion)]
    assert shares == pytest.approx([0.25, 0.2], abs=0.03)
    points = (drawn.boxes[:, :2] == drawn.boxes[:, 2:]).all(axis=1)
    world = (drawn.boxes == LONLAT.bounds).all(axis=1)
    assert points.mean() == pytest.approx(0.04, abs=0.01) and world.mean() == pytest.approx(0.01, abs=0.005)
    assert (np.diff(drawn.starts) == 0).mean() == pytest.approx(0.02, abs=0.01)
    texts = next(subscription_tables(CORPUS, MIXED.but(subscriptions=n)))["expression"].to_pylist()
    assert np.mean([" OR " in text or " NOT " in text for text in texts]) == pytest.approx(1 / 3, abs=0.04)
    assert any(" OR " in text and " NOT " in text for text in texts)
    expires = expiry_times(MIXED, 0, n)
    days = (expires[expires != NEVER] - FIRST_MESSAGE) / DAY
    assert len(days) / n == pytest.approx(0.05, abs=0.015) and (days < 0).any() and (days > 1).any()
    radii = [region.radius for region in kinds.regions if isinstance(region, CircleRegion)]
    assert 0.45 < min(radii) < 1 and 12 < max(radii) < 27
    forms = [region.geometry for region in kinds.regions if isinstance(region, PolygonRegion)]
    assert {form.geom_type for form in forms} == {"Polygon", "MultiPolygon"}
    assert any(form.geom_type == "Polygon" and form.interiors for form in forms)


@pytest.mark.parametrize("workload", [MIXED, PLANE], ids=lambda workload: workload.name)
def test_a_draw_does_not_depend_on_the_others(workload):
    corpus = corpus_for(workload)
    whole, shapes = rows_and_shapes(workload, draw_subscriptions(corpus, workload, 0, 40), 0)
    parts = [rows_and_shapes(workload, draw_subscriptions(corpus, workload, k, k + 1), k) for k in range(40)]
    for name in ("owner_ids", "terms", "not_terms", "boxes", "expires"):
        assert np.array_equal(np.concatenate([getattr(part, name) for part, _ in parts]), getattr(whole, name))
    assert sum(own.size for _, own in parts) == shapes.size


def test_regions_read_back_as_they_were_drawn():
    regions = draw_regions(MIXED, draw_subscriptions(CORPUS, MIXED, 0, N), 0)
    for region in regions.regions:
        again = parse_region(region_text(region), LONLAT)
        if isinstance(region, CircleRegion):
            assert again == region
        else:
            assert isinstance(again, PolygonRegion) and again.geometry.equals(region.geometry)


def test_every_method_agrees_with_brute_force_on_the_mix():
    case = run_case([], MIXED.but(subscriptions=N // 2), Settings(rounds=1, budget_s=0.5, singles=2, updates=20))
    assert [build["method"] for build in case["builds"]] == method_names()
    assert len({record["digest"] for record in case["groups"]["short-point"] if record["messages"] == 20}) == 1


def test_a_circle_is_as_large_as_its_box():
    boxes = Workload(subscriptions=50, box_share=(1e-3, 1e-2))
    circles = boxes.but(circle_share=1.0)
    corpus = SyntheticCorpus(boxes)
    drawn = draw_subscriptions(corpus, circles, 0, 50)
    assert np.array_equal(drawn.boxes, draw_subscriptions(corpus, boxes, 0, 50).boxes)
    areas = (drawn.boxes[:, 2:] - drawn.boxes[:, :2]).prod(axis=1)
    regions = draw_regions(circles, drawn, 0).regions
    assert [np.pi * region.radius**2 for region in regions] == pytest.approx(areas.tolist())


def test_common_words_are_left_to_messages_that_have_no_others():
    tokens = pa.array([["the", "cat"], ["the", "dog"], ["the"]])
    corpus = TextCorpus(tokens, np.zeros((3, 4)), seed=1, common_share=0.5)
    words = corpus.words().to_pylist()
    drawn = corpus.sources(np.arange(60))
    assert {
        tuple(words[term] for term in drawn.terms[a:b])
        for a, b in zip(drawn.starts[:-1], drawn.starts[1:], strict=True)
    } == {("cat",), ("dog",), ("the",)}


def test_the_mix_is_written_as_files(tmp_path):
    about = write_workload(CORPUS, MIXED, tmp_path)
    assert "City of Calgary" in about["source"]["licence"]
    assert pq.read_schema(tmp_path / "subscriptions.parquet").names == ["id", "expression", "region", "expires"]
    assert pq.read_schema(tmp_path / "messages-short-point.parquet").names == ["id", "tokens", "time", "x", "y"]


@pytest.mark.skipif(not NOTES.exists(), reason="the data is not here")
def test_other_texts_serve_as_well():
    workload = MIXED.but(subscriptions=300)
    corpus = corpus_for(workload, NOTES)
    index = build_index(pa.concat_tables(subscription_tables(corpus, workload)), "pyramid")
    table = index.match(pa.concat_tables(message_tables(corpus, workload, "short-point")))
    assert table["subscription"].to_pylist() == direct(corpus, workload, "short-point").ids.tolist()


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"space": [0, 0, 1, 1]}, "radius_km must be 0 in a plane"),
        ({"space": [0, 0, 1, 1], "radius_km": [0, 0]}, "texts must be none in a plane"),
        ({"texts": "mine"}, "texts must be one of none, sample"),
        ({"radius_km": [0, 5]}, "radius_km"),
        ({"circle_share": 0.6, "polygon_share": 0.6}, "at most 1 together"),
        ({"kind": "rank"}, "must be 0 with kind rank"),
    ],
)
def test_a_mix_that_cannot_be_drawn_is_refused(changes, reason):
    with pytest.raises(InvalidInput, match=reason):
        MIXED.but(**changes)
