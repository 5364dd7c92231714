"""Subscriptions that are boolean expressions: drawn, written out, matched end to end by every method."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nearcast.arrays.jit import JIT_DISABLED
from nearcast.arrays.ragged import starts_of
from nearcast.bench.runs.agreement import Disagreement
from nearcast.bench.runs.case import Settings, filled_store, method_factory, method_names
from nearcast.bench.runs.run_case import run_case
from nearcast.bench.workloads.corpus import SyntheticCorpus, message_group
from nearcast.bench.workloads.expressions import (
    ExpressionShapes,
    clause_batch,
    clause_counts,
    draw_shapes,
    expression_texts,
    has_expressions,
    subscription_rows,
)
from nearcast.bench.workloads.subscriptions import draw_subscriptions, message_batch
from nearcast.bench.workloads.tables import subscription_tables
from nearcast.bench.workloads.workload import PRESETS, Workload
from nearcast.errors import InvalidInput
from nearcast.indexes.keyword_first import KeywordFirst
from nearcast.matching.intake import checked_messages
from nearcast.matching.variant import variant_of
from nearcast.model import Hits
from nearcast.text.analyser import Analyser
from nearcast.text.clauses import clauses
from nearcast.text.expression import parse

TOY = Workload(
    name="toy",
    subscriptions=60 if JIT_DISABLED else 400,
    messages=8,
    vocabulary=60,
    topics=5,
    words_per_topic=20,
    clusters=3,
    tokens=(1, 7),
    short=(8, 14),
    long=(20, 30),
    box_share=(0.05, 0.5),
    expression_share=0.7,
    negated_share=0.4,
)
QUICK = Settings(rounds=1, budget_s=0.5, singles=2, updates=20)
CORPUS = SyntheticCorpus(TOY)
N = TOY.subscriptions


def written_out(batch, words):
    """By owner, the clauses of a batch as (required, forbidden) words."""
    found: dict[int, set] = {}
    for row in range(batch.size):
        required = batch.terms[batch.term_starts[row] : batch.term_starts[row + 1]]
        forbidden = batch.not_terms[batch.not_starts[row] : batch.not_starts[row + 1]]
        sides = tuple(tuple(sorted(words[term] for term in side)) for side in (required, forbidden))
        found.setdefault(int(batch.owner_ids[row]), set()).add(sides)
    return found


def test_rows_are_the_clauses_that_the_written_expression_has():
    words = CORPUS.words()
    drawn = draw_subscriptions(CORPUS, TOY, 0, N)
    shapes = draw_shapes(TOY, drawn, 0)
    batch = clause_batch(drawn, shapes)
    texts = expression_texts(drawn, shapes, words)
    wanted = {k: {tuple(clause) for clause in clauses(parse(text, Analyser()))} for k, text in enumerate(texts)}
    assert written_out(batch, words.to_pylist()) == wanted
    assert batch.size == clause_counts(shapes).sum() == sum(map(len, wanted.values()))
    assert np.array_equal(np.unique(batch.owner_ids), np.arange(N))


def test_all_ways_to_join_occur_about_as_often_as_promised():
    workload = TOY.but(subscriptions=2_000, tokens=(5, 5))
    drawn = draw_subscriptions(SyntheticCorpus(workload), workload, 0, 2_000)
    shapes = draw_shapes(workload, drawn, 0)
    in_two = shapes.seconds > 0
    assert abs(in_two.mean() - 0.7) < 0.04 and abs(shapes.negated.mean() - 0.4) < 0.04
    joined = 4 * shapes.first_is_or + 2 * shapes.second_is_or + shapes.joined_by_or
    assert np.bincount(joined[in_two], minlength=8).min() > 0.09 * in_two.sum()
    assert not joined[~in_two].any()
    assert set(shapes.firsts[in_two & (shapes.negated == 0)].tolist()) == {1, 2, 3, 4}


@given(st.lists(st.tuples(st.integers(1, 4), st.integers(0, 4), *[st.booleans()] * 4), max_size=6))
@settings(max_examples=60, deadline=None)
def test_any_shape_is_written_out_as_its_text_says(shapes):
    words = CORPUS.words()
    counts = [first + second + negated for first, second, *_, negated in shapes]
    starts = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
    terms = np.concatenate([[], *(np.arange(count) for count in counts)]).astype(np.int32)
    drawn = draw_subscriptions(CORPUS, TOY, 0, len(shapes))._replace(terms=terms, starts=starts)
    columns = [np.array([shape[k] for shape in shapes], np.int64 if k in (0, 1, 5) else bool) for k in range(6)]
    columns[3] &= columns[1] > 0  # a part that is not there is no OR, and nothing is joined with it
    columns[4] &= columns[1] > 0
    made = ExpressionShapes(*columns)
    texts = expression_texts(drawn, made, words)
    wanted = {k: {tuple(clause) for clause in clauses(parse(text, Analyser()))} for k, text in enumerate(texts)}
    assert written_out(clause_batch(drawn, made), words.to_pylist()) == wanted


def test_chunks_do_not_change_the_expressions_and_copies_are_alike():
    workload = TOY.but(identical_share=0.3)
    corpus = SyntheticCorpus(workload)
    whole = subscription_rows(workload, draw_subscriptions(corpus, workload, 0, N), 0)
    parts = [subscription_rows(workload, draw_subscriptions(corpus, workload, k, k + 1), k) for k in range(N)]
    assert np.array_equal(np.concatenate([part.terms for part in parts]), whole.terms)
    assert np.array_equal(np.concatenate([part.not_terms for part in parts]), whole.not_terms)
    assert np.array_equal(np.concatenate([part.owner_ids for part in parts]), whole.owner_ids)
    (table,) = subscription_tables(corpus, workload)
    texts = table.column("expression").to_pylist()
    assert texts.count(texts[0]) > 0.15 * N and "tokens" not in table.column_names


def test_a_workload_without_expressions_is_drawn_as_ever():
    plain = TOY.but(expression_share=0.0, negated_share=0.0)
    assert not has_expressions(plain) and has_expressions(TOY)
    rows = subscription_rows(plain, draw_subscriptions(CORPUS, plain, 0, N), 0)
    assert rows.size == N and not len(rows.not_terms)
    assert "expression" not in next(subscription_tables(CORPUS, plain)).column_names


@pytest.mark.parametrize("group", TOY.groups)
def test_a_method_finds_the_subscriptions_whose_expression_holds_each_once(group):
    words = CORPUS.words()
    drawn = draw_subscriptions(CORPUS, TOY, 0, N)
    asked = [parse(text, Analyser()) for text in expression_texts(drawn, draw_shapes(TOY, drawn, 0), words)]
    store = filled_store(CORPUS, TOY)
    method = method_factory(store, TOY)(variant_of("ap-tree f=3 theta_p=2"))
    method.build(store.live_rows())
    messages = message_group(CORPUS, TOY, group)
    hits, work = method.match(checked_messages(message_batch(messages), store.n_terms))
    for m in range(messages.size):
        box = messages.boxes[m]
        inside = (drawn.boxes[:, :2] <= box[2:]).all(axis=1) & (drawn.boxes[:, 2:] >= box[:2]).all(axis=1)
        tokens = set(words.take(messages.terms[messages.starts[m] : messages.starts[m + 1]]).to_pylist())
        wanted = [k for k in range(N) if inside[k] and asked[k].holds(tokens)]
        assert hits.rows[hits.starts[m] : hits.starts[m + 1]].tolist() == wanted
    assert work.matches == len(hits.rows) > 0


def test_every_method_agrees_with_brute_force_on_expressions_through_updates():
    case = run_case([], TOY, QUICK)
    assert [build["method"] for build in case["builds"]] == method_names()
    for records in case["groups"].values():
        assert {record["digest"] for record in records if record["messages"] == TOY.messages}.__len__() == 1
        assert records[0]["work"]["matches"] > 0


def test_the_table_api_finds_the_same_from_the_written_expressions():
    methods = ["brute", "ap-tree", "pyramid"]
    case = run_case(methods, TOY, Settings(rounds=1, budget_s=0.5, singles=2, updates=0, tables=True))
    assert [record["method"] for record in case["tables"]] == methods


def test_a_method_that_forgets_rows_ends_the_run(monkeypatch):
    right = KeywordFirst.match

    def forgetful(self, messages):
        hits, work = right(self, messages)
        kept = hits.rows % 2 == 0
        return Hits(hits.rows[kept], starts_of(kept)[hits.starts]), work

    monkeypatch.setattr(KeywordFirst, "match", forgetful)
    with pytest.raises(Disagreement, match="'keyword-first'"):
        run_case(["brute", "keyword-first"], TOY.but(groups=("long-range",)), QUICK)


def test_what_expressions_cannot_be_measured_with_is_refused():
    with pytest.raises(InvalidInput, match="threads are measured on plain"):
        run_case(["brute"], TOY, Settings(threads=(1, 2)))
    with pytest.raises(InvalidInput, match="expression_share must be 0 with kind rank"):
        TOY.but(kind="rank")
    with pytest.raises(InvalidInput, match="negated_share"):
        TOY.but(negated_share=1.5)
    assert has_expressions(PRESETS["expressions"])
