"""Workloads as tables and files: the strings say the same as the direct rows."""

from __future__ import annotations

import json

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from nearcast.bench.runs.case import filled_store
from nearcast.bench.workloads.corpus import SyntheticCorpus, message_group
from nearcast.bench.workloads.subscriptions import draw_subscriptions, message_batch, row_batch
from nearcast.bench.workloads.tables import message_tables, write_workload
from nearcast.bench.workloads.text_corpus import TextCorpus, text_corpus
from nearcast.bench.workloads.workload import Workload
from nearcast.engine.index import build_index
from nearcast.errors import InvalidInput
from nearcast.matching.subscription_set import SubscriptionSet

SMALL = Workload(
    subscriptions=400, messages=12, vocabulary=300, topics=10, words_per_topic=20, clusters=3, long=(20, 40)
)


def direct_pairs(corpus, workload, group):
    matcher = SubscriptionSet("brute", workload.geometry)
    matcher.insert(row_batch(draw_subscriptions(corpus, workload, 0, workload.subscriptions)))
    found = matcher.match(message_batch(message_group(corpus, workload, group)))
    return list(zip(np.repeat(np.arange(workload.messages), np.diff(found.starts)), found.ids, strict=True))


@pytest.mark.parametrize("space", ["lonlat", [0, 0, 1, 1], [-5, 10, 995, 60]])
def test_files_read_back_match_the_same_pairs_as_the_direct_rows(tmp_path, space):
    workload = SMALL.but(space=space)
    corpus = SyntheticCorpus(workload)
    write_workload(corpus, workload, tmp_path)
    index = build_index(tmp_path / "subscriptions.parquet", "brute", space=workload.space)
    total = 0
    for group in workload.groups:
        table = index.match(tmp_path / f"messages-{group}.parquet")
        pairs = list(zip(table["message"].to_pylist(), table["subscription"].to_pylist(), strict=True))
        assert pairs == direct_pairs(corpus, workload, group)
        total += len(pairs)
    assert total > 0


def test_the_same_seed_writes_the_same_files(tmp_path):
    for folder in ("first", "again"):
        write_workload(SyntheticCorpus(SMALL), SMALL, tmp_path / folder)
    names = sorted(path.name for path in (tmp_path / "first").iterdir())
    assert names == sorted(["subscriptions.parquet", "workload.json", *(f"messages-{g}.parquet" for g in SMALL.groups)])
    for name in names:
        assert (tmp_path / "first" / name).read_bytes() == (tmp_path / "again" / name).read_bytes()


def test_files_have_the_columns_of_the_contract_and_say_how_they_were_made(tmp_path):
    written = []
    about = write_workload(
        SyntheticCorpus(SMALL), SMALL, tmp_path, on_chunk=lambda name, rows: written.append((name, rows))
    )
    assert json.loads((tmp_path / "workload.json").read_text()) == about
    assert about["workload"]["seed"] == SMALL.seed and about["rows"]["subscriptions.parquet"] == 400
    assert sum(rows for _, rows in written) == 400 + 4 * 12
    schema = pq.read_schema(tmp_path / "subscriptions.parquet")
    assert schema.names == ["id", "tokens", "xmin", "ymin", "xmax", "ymax"]
    assert schema.field("tokens").type == pa.list_(pa.field("element", pa.string()))
    assert pq.read_schema(tmp_path / "messages-long-point.parquet").names == ["id", "tokens", "x", "y"]


def test_an_empty_workload_writes_empty_tables(tmp_path):
    empty = SMALL.but(subscriptions=0, messages=0)
    write_workload(SyntheticCorpus(empty), empty, tmp_path)
    assert pq.read_table(tmp_path / "subscriptions.parquet").num_rows == 0
    assert next(message_tables(SyntheticCorpus(empty), empty, "short-range")).num_rows == 0


def test_a_folder_that_cannot_be_made_is_an_error(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(InvalidInput, match="file"):
        write_workload(SyntheticCorpus(SMALL), SMALL, tmp_path / "file" / "below")


def test_rows_of_the_store_are_numbered_as_the_subscriptions():
    store = filled_store(SyntheticCorpus(SMALL), SMALL)
    assert np.array_equal(store.owner_ids[store.live_rows()], np.arange(400))


TEXTS = [
    {"text": "Fresh pizza at the corner, pizza!", "lon": 1.0, "lat": 2.0},
    {"text": "", "lon": 5.0, "lat": 5.0},
    {"text": "road closed at the bridge", "lon": 3.0, "lat": 4.0},
    {"text": "the bridge is open", "lon": 3.5, "lat": 4.5},
]


def test_subscriptions_drawn_from_texts_hold_on_a_real_message():
    workload = Workload(subscriptions=50, messages=5, space=None, short=(2, 3), long=(6, 8))
    corpus = text_corpus(TEXTS, workload)
    words = corpus.words().to_pylist()
    assert words[0] == "the" and len(words) == len(set(words))
    drawn = draw_subscriptions(corpus, workload, 0, 50)
    texts = [(row["text"].lower(), row["lon"], row["lat"]) for row in TEXTS if row["text"]]
    for i in range(50):
        tokens = [words[term] for term in drawn.terms[drawn.starts[i] : drawn.starts[i + 1]]]
        box = drawn.boxes[i]
        assert any(
            all(token in text for token in tokens) and box[0] <= x <= box[2] and box[1] <= y <= box[3]
            for text, x, y in texts
        )


def test_real_messages_are_cut_or_joined_to_the_length_of_their_group():
    workload = Workload(messages=30, space=None, short=(2, 3), long=(6, 8))
    corpus = text_corpus(TEXTS, workload)
    assert set(np.diff(message_group(corpus, workload, "short-point").starts)) <= {2, 3}
    assert set(np.diff(message_group(corpus, workload, "long-range").starts)) <= {6, 7, 8}
    endless = workload.but(long=[500, 600])
    assert np.diff(message_group(corpus, endless, "long-point").starts).max() <= corpus.n_words


def test_tokens_win_over_text_and_repeats_and_nulls_do_no_harm():
    tokens = pa.chunked_array([pa.array([["b", "a", "b"], None]), pa.array([["a"]])])
    table = pa.table({"tokens": tokens, "text": ["x", "a", "z"], "x": [0.0, 1.0, 2.0], "y": [0.0, 1.0, 2.0]})
    corpus = text_corpus(table, Workload(space=None))
    assert corpus.words().to_pylist() == ["a", "b"]
    assert corpus.bounds.tolist() == [0, 0, 2, 2]


@pytest.mark.parametrize(
    ("table", "reason"),
    [
        ([{"x": 1.0, "y": 1.0}], "text"),
        ([{"text": "a"}], "place"),
        ([{"text": "", "x": 1.0, "y": 1.0}], "token"),
        ([{"text": "a", "x": 1.0, "y": 91.0}], "y"),
    ],
)
def test_texts_without_words_or_places_are_refused(table, reason):
    with pytest.raises(InvalidInput, match=reason):
        text_corpus(table, Workload(space=None))


def test_one_place_and_one_word_still_make_a_workload():
    corpus = TextCorpus(pa.array([["only"]]), np.array([[7.0, 8.0, 7.0, 8.0]]), seed=1)
    workload = Workload(subscriptions=3, messages=2, space=None)
    drawn = draw_subscriptions(corpus, workload, 0, 3)
    assert drawn.terms.tolist() == [0, 0, 0]
    assert (drawn.boxes == [7, 8, 7, 8]).all()
