"""What is drawn keeps the workload's promises."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nearcast.arrays.jit import JIT_DISABLED
from nearcast.bench.workloads.corpus import DrawnItems, SyntheticCorpus, message_group
from nearcast.bench.workloads.places import ranges_around
from nearcast.bench.workloads.random_numbers import DrawNumbers, draw_table, stream_key, units, whole_numbers
from nearcast.bench.workloads.subscriptions import (
    draw_subscriptions,
    message_batch,
    row_batch,
    source_numbers,
    subscription_chunks,
)
from nearcast.bench.workloads.words import spell_words, word_model
from nearcast.bench.workloads.workload import GROUPS, PRESETS, Workload, find_workload, workload_of
from nearcast.errors import InvalidInput

N = 300 if JIT_DISABLED else 5_000
SMALL = Workload(
    subscriptions=N, messages=60, vocabulary=2_000, topics=50, words_per_topic=40, clusters=10, long=(50, 80)
)


def drawn_equal(first: DrawnItems, second: DrawnItems) -> bool:
    return all(a.tobytes() == b.tobytes() for a, b in zip(first, second, strict=True))


def part(drawn: DrawnItems, i: int) -> np.ndarray:
    return drawn.terms[drawn.starts[i] : drawn.starts[i + 1]]


def test_the_same_seed_gives_the_same_bytes_and_another_seed_others():
    first, again, other = (
        draw_subscriptions(SyntheticCorpus(workload), workload, 0, N) for workload in (SMALL, SMALL, SMALL.but(seed=2))
    )
    assert drawn_equal(first, again)
    assert not drawn_equal(first, other)
    messages = [message_group(SyntheticCorpus(SMALL), SMALL, "long-range") for _ in range(2)]
    assert drawn_equal(*messages)


@given(st.integers(1, 40))
@settings(max_examples=8, deadline=None)
def test_chunks_do_not_change_what_is_drawn(chunk):
    workload = SMALL.but(subscriptions=60, identical_share=0.2)
    whole = draw_subscriptions(SyntheticCorpus(workload), workload, 0, 60)
    chunks = [drawn for _, drawn in subscription_chunks(SyntheticCorpus(workload), workload, chunk)]
    assert np.array_equal(np.concatenate([made.terms for made in chunks]), whole.terms)
    assert np.array_equal(np.concatenate([made.boxes for made in chunks]), whole.boxes)


def test_messages_by_number_are_those_of_the_whole_group():
    corpus = SyntheticCorpus(SMALL)
    whole = message_group(corpus, SMALL, "short-range")
    some = message_group(corpus, SMALL, "short-range", np.array([7, 3]))
    assert sorted(part(some, 1)) == sorted(part(whole, 3))
    assert np.array_equal(some.boxes, whole.boxes[[7, 3]])


@pytest.mark.parametrize("preset", PRESETS)
def test_boxes_have_the_promised_share_of_the_space_and_lie_within_it(preset):
    workload = SMALL.but(space=PRESETS[preset].parameters()["space"], box_share=PRESETS[preset].box_share)
    boxes = draw_subscriptions(SyntheticCorpus(workload), workload, 0, N).boxes
    xmin, ymin, xmax, ymax = workload.geometry.bounds
    shares = (boxes[:, 2] - boxes[:, 0]) * (boxes[:, 3] - boxes[:, 1]) / ((xmax - xmin) * (ymax - ymin))
    low, high = workload.box_share
    assert shares.min() >= low * (1 - 1e-6) and shares.max() <= high * (1 + 1e-6)
    assert (
        abs(np.log(shares).mean() - np.log([low, high]).mean()) < 0.25
    )  # log-uniform: the middle is the geometric one
    assert (boxes[:, :2] >= [xmin, ymin]).all() and (boxes[:, 2:] <= [xmax, ymax]).all()


@given(st.floats(0, 1), st.floats(0, 1), st.sampled_from([0.0, 1e-12, 0.003, 0.4, 0.7, 1.0]), st.integers(0, 99))
@settings(max_examples=60, deadline=None)
def test_a_box_of_any_share_holds_its_point_and_fits_the_space(x, y, share, number):
    bounds = np.array([0.0, 0.0, 1.0, 1.0])
    draws = DrawNumbers(stream_key(1, "boxes"), np.array([number]))
    box = ranges_around(bounds, np.array([[x, y, x, y]]), (share, share), draws)[0]
    assert 0 <= box[0] <= x <= box[2] <= 1 and 0 <= box[1] <= y <= box[3] <= 1
    assert (box[2] - box[0]) * (box[3] - box[1]) == pytest.approx(share, rel=1e-3, abs=1e-12)


def test_subscriptions_have_as_many_tokens_as_promised_each_number_alike_often():
    drawn = draw_subscriptions(SyntheticCorpus(SMALL), SMALL, 0, N)
    counts = np.diff(drawn.starts)
    assert set(counts) == {1, 2, 3, 4, 5}
    assert np.bincount(counts)[1:].min() > 0.7 * N / 5
    assert all(len(set(part(drawn, i))) == counts[i] for i in range(200))


@pytest.mark.parametrize("group", GROUPS)
def test_messages_of_a_group_have_its_length_and_its_kind_of_place(group):
    drawn = message_group(SyntheticCorpus(SMALL), SMALL, group)
    counts, lengths = np.diff(drawn.starts), SMALL.short if group.startswith("short") else SMALL.long
    assert lengths[0] <= counts.min() and counts.max() <= lengths[1]
    assert all(len(set(part(drawn, i))) == counts[i] for i in range(drawn.size))
    sizes = drawn.boxes[:, 2:] - drawn.boxes[:, :2]
    assert (sizes == 0).all() if group.endswith("point") else (sizes > 0).all()


def test_every_subscription_holds_on_its_source_message():
    workload = SMALL.but(hot_share=0.3, world_share=0.1, tiny_share=0.2, identical_share=0.1)
    corpus = SyntheticCorpus(workload)
    sources, drawn = (
        corpus.sources(source_numbers(workload, 0, N)),
        draw_subscriptions(corpus, workload, 0, N),
    )
    places = sources.boxes
    assert (drawn.boxes[:, :2] <= places[:, :2]).all() and (drawn.boxes[:, 2:] >= places[:, 2:]).all()
    assert all(set(part(drawn, i)) <= set(part(sources, i)) for i in range(N))


def lift_within_topics(topic_share: float) -> float:
    """How much more often the first words of a topic share a message than if words fell independently."""
    workload = SMALL.but(topic_share=topic_share)
    topics = word_model(workload.words, workload.seed).topic_words
    n = 4 * N
    drawn = SyntheticCorpus(workload).messages("lift", np.arange(n), (10, 10))
    has = np.zeros((n, workload.vocabulary), bool)
    has[np.repeat(np.arange(n), 10), drawn.terms] = True
    pairs = [(a, b) for topic in topics for a in topic[:3] for b in topic[:3] if a < b]
    together = sum(np.count_nonzero(has[:, a] & has[:, b]) for a, b in pairs)
    by_chance = sum(has[:, a].sum() * has[:, b].sum() / n for a, b in pairs)
    return float(together / by_chance)


def test_words_of_one_topic_occur_together_more_often_than_by_chance():
    assert lift_within_topics(Workload().topic_share) > 1.5
    # Without topics it is below 1: of ten places, six beyond the head, a word leaves one fewer for another.
    assert 0.7 < lift_within_topics(0.0) < 1.15


def test_places_crowd_in_clusters():
    def busiest_tenth(workload: Workload) -> float:
        boxes = SyntheticCorpus(workload).sources(np.arange(2_000)).boxes
        cells = np.bincount((boxes[:, 0] * 9.999).astype(int) * 10 + (boxes[:, 1] * 9.999).astype(int), minlength=100)
        return float(np.sort(cells)[-10:].sum() / 2_000)

    assert busiest_tenth(SMALL) > 0.4
    assert busiest_tenth(SMALL.but(background=1.0)) < 0.2
    assert busiest_tenth(SMALL.but(clusters=0)) < 0.2


def test_word_frequencies_fall_as_zipf_says():
    workload = SMALL.but(topic_share=0.0, zipf=1.0)
    counts = np.bincount(SyntheticCorpus(workload).sources(np.arange(N)).terms, minlength=2_000)
    assert counts[0] > counts[5] > counts[50] > 0
    assert counts[:20].sum() > 5 * counts[1_000:1_020].sum()


def test_shares_of_hot_whole_tiny_and_identical_subscriptions_are_those_of_the_workload():
    workload = SMALL.but(world_share=0.2, tiny_share=0.3, identical_share=0.0)
    drawn = draw_subscriptions(SyntheticCorpus(workload), workload, 0, N)
    assert np.mean((drawn.boxes == [0, 0, 1, 1]).all(axis=1)) == pytest.approx(0.2, abs=0.08)
    assert np.mean((drawn.boxes[:, :2] == drawn.boxes[:, 2:]).all(axis=1)) == pytest.approx(0.3, abs=0.09)
    copies = SMALL.but(identical_share=0.25)
    boxes = draw_subscriptions(SyntheticCorpus(copies), copies, 0, N).boxes
    assert np.mean((boxes == boxes[0]).all(axis=1)) == pytest.approx(0.25, abs=0.09)
    plain, hot = (
        draw_subscriptions(SyntheticCorpus(workload), workload, 0, N).terms.mean()
        for workload in (SMALL, SMALL.but(hot_share=1.0))
    )
    assert hot < plain / 2


def test_a_vocabulary_too_small_for_long_messages_shortens_them():
    workload = Workload(vocabulary=10, topics=1, words_per_topic=3, zipf=5.0, messages=20)
    drawn = message_group(SyntheticCorpus(workload), workload, "long-point")
    assert set(np.diff(drawn.starts)) == {5}
    assert all(len(set(part(drawn, i))) == 5 for i in range(drawn.size))


def test_spelled_words_are_short_and_all_different():
    words = spell_words(10_500)
    assert len(words) == len(set(words.to_pylist())) == 10_500
    assert {len(word) for word in words.to_pylist()} == {2, 4, 6}
    assert len(spell_words(0)) == 0


def test_tables_draw_by_their_weights():
    table = draw_table(np.array([0.0, 3.0, 0.0, 1.0]))
    assert table.cumulative[-1] == 1.0
    assert table.guide.max() <= 3
    numbers = whole_numbers(stream_key(1, "numbers"), np.arange(2_000), 3, 5)
    assert set(numbers) == {3, 4, 5}
    assert units(stream_key(1, "units"), np.arange(2_000)).mean() == pytest.approx(0.5, abs=0.03)


def test_nothing_drawn_is_an_empty_batch():
    empty = SMALL.but(subscriptions=0, messages=0)
    drawn = draw_subscriptions(SyntheticCorpus(empty), empty, 0, 0)
    assert row_batch(drawn).size == 0
    assert message_batch(message_group(SyntheticCorpus(empty), empty, "long-range")).size == 0


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        ({"subscriptions": -1}, "subscriptions"),
        ({"messages": 1.5}, "messages"),
        ({"vocabulary": 3}, "vocabulary"),
        ({"zipf": float("nan")}, "zipf"),
        ({"topic_share": 1.1}, "topic_share"),
        ({"tokens": [3, 2]}, "tokens"),
        ({"tokens": [1, 2, 3]}, "tokens"),
        ({"box_share": [0.0, 0.1]}, "box_share"),
        ({"groups": ["short-circle"]}, "groups"),
        ({"groups": []}, "groups"),
        ({"space": [0, 0, 0, 1]}, "space"),
        ({"boxes": 3}, "boxes"),
    ],
)
def test_a_parameter_that_cannot_be_is_refused_by_name(changes, named):
    with pytest.raises(InvalidInput, match=named):
        workload_of(changes)


def test_workloads_come_by_name_or_from_a_file(tmp_path):
    assert find_workload("B").box_share == (1e-6, 1e-4)
    path = tmp_path / "mine.toml"
    path.write_text('base = "B"\nsubscriptions = 7\nspace = "lonlat"\n')
    mine = find_workload(path)
    assert (mine.name, mine.subscriptions, mine.space, mine.box_share) == ("mine", 7, None, (1e-6, 1e-4))
    assert workload_of(mine.parameters()) == mine
    for wrong in ("C", tmp_path / "absent.toml"):
        with pytest.raises(InvalidInput):
            find_workload(wrong)
    path.write_text("base = 'X'")
    with pytest.raises(InvalidInput, match="X"):
        find_workload(path)
    path.write_text("nonsense ==")
    with pytest.raises(InvalidInput, match="TOML"):
        find_workload(path)
