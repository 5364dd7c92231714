"""Streams: what is drawn, what is measured, and that methods which disagree are found out."""

from __future__ import annotations

import gzip

import numpy as np
import pytest

from nearcast.bench.runs.agreement import Disagreement
from nearcast.bench.runs.case import Settings
from nearcast.bench.streams.measures import OF_KIND
from nearcast.bench.streams.moving_stream import STEP_US, moving_stream
from nearcast.bench.streams.run_stream import known_stream_methods, run_stream, stream_steps
from nearcast.bench.streams.sources import DATA_FOLDER, find_real_file, source_of, stream_subscriptions
from nearcast.bench.streams.stream_workload import StreamWorkload, stream_workload_of
from nearcast.bench.streams.top_stream import top_stream
from nearcast.bench.streams.tuning import tuned
from nearcast.errors import InvalidInput, UnknownMethod
from nearcast.topk.dissemination.igpt import build
from nearcast.topk.method import find_method
from nearcast.topk.refill.policy import POLICIES

TOP = StreamWorkload(
    name="toy",
    subscriptions=40,
    window=60,
    messages=40,
    vocabulary=30,
    topics=3,
    words_per_topic=10,
    clusters=3,
    short=(2, 5),
    tokens=(1, 3),
    alpha=(0.0, 1.0),
    k=3,
    burst=4,
)
MOVING = TOP.but(kind="moving", lifetime=5, mobility=0.5, velocity=20.0, box_share=(0.05, 0.2), steps=2)
ROUNDS = Settings(rounds=2)


@pytest.fixture
def no_data(monkeypatch):
    monkeypatch.delenv(DATA_FOLDER, raising=False)


@pytest.fixture
def folder(tmp_path):
    """A folder with five real messages, and two tracks."""
    rows = [f"{i},word{i} shared,{46 + i / 10},{8 + i / 10},2024-01-0{i + 1}T00:00:00Z" for i in range(5)]
    rows.append("9,elsewhere shared,-40.0,120.0,2024-01-09T00:00:00Z")
    _write(tmp_path / "messages.csv.gz", rows)
    fixes = [f"{name},x,{46 + t / 10},{8 + t / 10},2024-01-01T00:00:0{t}Z" for t in range(5) for name in ("a", "b")]
    _write(tmp_path / "tracks.csv.gz", fixes)
    return tmp_path


def _write(path, rows):
    with gzip.open(path, "wt", encoding="utf-8") as file:
        file.write("\n".join(["id,text,lat,lon,ts", *rows]) + "\n")


# -- workloads


def test_a_stream_scales_with_its_window_and_arrivals():
    workload = stream_workload_of({"subscriptions": 1_000, "window": 500, "arrivals": 50, "kind": "moving"})
    half = workload.scaled(0.5)
    assert (half.subscriptions, half.window, half.arrivals) == (500, 250, 25)
    assert workload.steps_live == 10 and workload.per_step == 50
    assert workload.but(arrivals=0, lifetime=4).per_step == 125
    assert workload.but(window=0).scaled(0.5).window == 0, "no messages stay no messages"
    assert stream_workload_of({"subscriptions": 300, "live_share": 2}).window == 600
    assert StreamWorkload(window=95, burst=10).period_s == 9


@pytest.mark.parametrize(
    "changes",
    [{"kind": "match"}, {"window": -1}, {"k": 0}, {"burst": 0}, {"mobility": 1.5}, {"velocity": 0.0}, {"steps": 0}],
)
def test_a_stream_that_cannot_be_is_refused_by_name(changes):
    with pytest.raises(InvalidInput, match=next(iter(changes))):
        TOP.but(**changes)


def test_a_share_of_live_messages_is_a_number():
    with pytest.raises(InvalidInput, match="live_share"):
        stream_workload_of({"live_share": "all"})


# -- sources


def test_real_messages_come_in_the_order_of_the_file_and_within_a_box(folder):
    workload = TOP.but(messages_file="messages.csv.gz", space="lonlat")
    source = source_of(workload, folder, None)
    words = source.corpus.words().to_pylist()
    drawn = source.messages(np.arange(8))
    first = [words[term] for term in drawn.terms[drawn.starts[0] : drawn.starts[1]]]
    assert source.name == "messages.csv.gz" and first == ["word0", "shared"]
    assert drawn.boxes[:, 0].tolist() == pytest.approx([8.0, 8.1, 8.2, 8.3, 8.4, 120.0, 8.0, 8.1]), "and again"
    inside = source_of(workload, folder, np.array([7.0, 45.0, 9.0, 48.0]))
    assert inside.messages(np.arange(5)).boxes[:, 0].max() < 9


def test_without_the_file_the_shipped_sample_is_used(no_data, tmp_path):
    workload = TOP.but(messages_file="messages.csv.gz", space="lonlat")
    assert "sample" in source_of(workload, tmp_path, None).name
    assert find_real_file("messages.csv.gz") is None and find_real_file("", tmp_path) is None


def test_the_environment_names_the_folder(folder, monkeypatch):
    monkeypatch.setenv(DATA_FOLDER, str(folder))
    assert find_real_file("tracks.csv.gz") == folder / "tracks.csv.gz"


def test_words_by_zipf_come_from_all_words_and_are_distinct():
    workload = TOP.but(subscriptions=400, vocabulary=200, zipf_words=True, tokens=(3, 3))
    source = source_of(workload, None, None)
    drawn = stream_subscriptions(source, workload)
    lists = [drawn.terms[a:b].tolist() for a, b in zip(drawn.starts, drawn.starts[1:], strict=False)]
    assert all(len(set(terms)) == len(terms) >= 1 for terms in lists)
    counts = np.bincount(drawn.terms, minlength=200)
    assert counts[0] > 4 * counts[100:].max(), "the most frequent word is in many subscriptions"


# -- kind top


def test_a_window_stays_as_large_as_the_workload_says():
    stream = top_stream(TOP, source_of(TOP, None, None), 2)
    assert stream.window.total_seconds() == 15 and stream.before.num_rows == 4 * 30
    assert np.diff(stream.bursts).tolist() == [4] * 10 and stream.messages.num_rows == 40
    assert (stream.subscriptions["x"].to_numpy() <= 1).all() and set(stream.subscriptions["k"].to_pylist()) == {3}
    uneven = top_stream(TOP.but(uneven=True, messages=400), source_of(TOP, None, None), 2)
    sizes = np.diff(uneven.bursts)
    assert sizes.min() == 0 and sizes.max() == 8


@pytest.mark.parametrize("uneven", [False, True])
def test_methods_of_kind_top_are_measured_and_give_the_changes_of_brute(uneven):
    steps = []
    methods = ["brute", "norm-lists", "skype", "skype prune=ipt refill=kmax", "ciq"]
    record = run_stream(methods, TOP.but(uneven=uneven), ROUNDS, steps.append)
    assert len(steps) == stream_steps(methods, ROUNDS) and record["source"] == "drawn"
    by_method = {each["method"]: each for each in record["streams"]}
    assert list(by_method) == methods
    values = by_method["skype"]["values"]
    assert set(values) == set(OF_KIND["top"])
    assert all(len(values[name]) == 2 and min(values[name]) > 0 for name in ("arrival", "expiry", "stream", "buffer"))
    assert by_method["skype"]["messages"] == record["streams"][0]["messages"] >= 20
    assert "buffer" not in by_method["brute"]["values"]


def test_a_method_that_forgets_a_change_is_found(monkeypatch):
    liar = find_method("brute")
    honest = liar.expire_until

    def silent(self, first, time):
        changes = honest(self, first, time)
        return type(changes)(*(column[1:] for column in changes))

    monkeypatch.setattr(liar, "expire_until", silent)
    with pytest.raises(Disagreement, match="toy, round 0"):
        run_stream(["norm-lists", "brute"], TOP, ROUNDS)


# -- kind moving


def test_steps_bring_and_take_as_many_messages_and_move_a_share():
    stream = moving_stream(MOVING, None, 3)
    assert stream.per_step == 12 and stream.before.num_rows == 60
    dies = np.bincount(stream.before["expires"].to_numpy().astype("datetime64[us]").astype(np.int64) // STEP_US)
    assert dies.tolist() == [0, 12, 12, 12, 12, 12]
    first, second, _ = stream.steps
    assert first.now == STEP_US and len(first.ids) == 20 and first.messages.num_rows == 12
    moved = np.flatnonzero((first.boxes != stream.boxes).any(axis=1))
    assert set(moved) <= set(first.ids.tolist()) and len(moved) > 10
    still = np.setdiff1d(np.arange(40), second.ids)
    assert np.array_equal(first.boxes[still], second.boxes[still])


def test_moving_methods_are_measured_and_give_the_changes_of_brute():
    methods = ["brute", "term-cells", "ap+-tree", "ap+-tree messages_by=place", "ss-index", "iq+-tree"]
    record = run_stream([*methods, "term-cells safe=true"], MOVING, ROUNDS)
    by_method = {each["method"]: each for each in record["streams"]}
    assert set(by_method["ap+-tree"]["values"]) == set(OF_KIND["moving"])
    assert by_method["ap+-tree"]["moves"] == 4 * 20 and by_method["ap+-tree"]["messages"] == 4 * 12
    safe, every = (by_method[name]["values"]["reports"] for name in ("term-cells safe=true", "term-cells"))
    assert every == [20.0, 20.0] and sum(safe) <= sum(every)


def test_without_messages_only_moves_are_measured():
    record = run_stream(["term-cells"], MOVING.but(window=0), ROUNDS)
    values = record["streams"][0]["values"]
    assert "arrival" not in values and len(values["move"]) == 2


def test_real_tracks_are_replayed_among_the_messages_near_them(folder):
    workload = MOVING.but(messages_file="messages.csv.gz", tracks_file="tracks.csv.gz", space="lonlat", velocity=1.0)
    stream = moving_stream(workload, folder, 6)
    assert stream.source == "messages.csv.gz, tracks.csv.gz"
    for step in stream.steps:
        assert (step.boxes[:, 0] >= 8.0 - 1e-9).all() and (step.boxes[:, 3] <= 46.4 + 1e-9).all()
        middles = step.boxes[:, :2] / 2 + step.boxes[:, 2:] / 2
        assert len(np.unique(middles.round(3), axis=0)) > 5, "movers begin at different places"
    assert max(len(step.messages) for step in stream.steps) == 12


# -- methods


def test_unknown_methods_and_options_are_named():
    with pytest.raises(UnknownMethod):
        known_stream_methods(["no-such"], "top")
    with pytest.raises(UnknownMethod):
        known_stream_methods(["no-such"], "moving")
    with pytest.raises(InvalidInput, match="colour"):
        known_stream_methods(["skype colour=3"], "top")
    with pytest.raises(InvalidInput, match="colour"):
        known_stream_methods(["ap+-tree colour=3"], "moving")
    assert [each.label for each in known_stream_methods(["ap+-tree safe=true"], "moving")] == ["ap+-tree safe=true"]


def test_settings_that_methods_fix_can_be_varied_and_are_put_back():
    before = (dict(POLICIES), build.N_GROUPS)
    methods = ["brute", "skype refill=kmax kmax=4", "skype refill=kmax kmax=9", "skype groups=2"]
    methods += ["skype refill=skyband share=1.0", "skype refill=skyband share=0.5"]
    record = run_stream(methods, TOP.but(subscriptions=80, k=3), ROUNDS)
    buffers = {each["method"]: each["values"].get("buffer", [0])[0] for each in record["streams"]}
    assert buffers["skype refill=kmax kmax=4"] <= 4 < buffers["skype refill=kmax kmax=9"] <= 9
    assert buffers["skype refill=skyband share=1.0"] < buffers["skype refill=skyband share=0.5"]
    assert (dict(POLICIES), build.N_GROUPS) == before


def test_groups_are_as_many_as_the_setting_says():
    alphas = np.linspace(0.0, 0.9, 1_000)
    for groups in (5, 40):
        with tuned({"groups": groups}):
            assert len(np.unique(build._groups(alphas))) == groups


@pytest.mark.parametrize(
    "text", ["ciq kmax=3", "skype kmax=3", "skype refill=kmax share=0.9", "skype prune=ipt groups=3", "skype groups=0"]
)
def test_a_setting_needs_the_option_that_it_belongs_to(text):
    with pytest.raises(InvalidInput, match="needs|above 0"):
        known_stream_methods([text], "top")
