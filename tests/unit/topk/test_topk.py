"""`nc.TopK`: changes in order, input that is refused, files, figures."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import nearcast as nc
from nearcast.errors import CorruptFile, ForeignVersion, UnknownMethod
from nearcast.tables.changes import CHANGES_SCHEMA

UNIT = (0.0, 0.0, 1.0, 1.0)
SUBSCRIPTIONS = {"id": [2, 1], "tokens": [["a"], ["a", "b"]], "x": [0.0, 1.0], "y": [0.0, 1.0], "k": [1, 2]}


def made(window: Any = 3, **options: Any) -> nc.TopK:
    return nc.TopK(SUBSCRIPTIONS, window, space=UNIT, **options)


def message(number: int, text: str, x: float = 0.5, **columns: Any) -> dict[str, Any]:
    return {"id": [number], "text": [text], "x": [x], "y": [x]} | {name: [value] for name, value in columns.items()}


def pairs(changes: pa.Table) -> list[tuple[int, int, int]]:
    assert changes.schema == CHANGES_SCHEMA
    return [(row["message"], row["subscription"], row["change"]) for row in changes.to_pylist()]


def test_changes_come_in_order() -> None:
    top = made()
    assert pairs(top.publish(message(10, "a"))) == [(10, 1, 1), (10, 2, 1)]
    assert pairs(top.publish(message(11, "a", x=0.0))) == [(11, 1, 1), (10, 2, -1), (11, 2, 1)]
    assert pairs(top.publish(message(12, "nothing"))) == []
    assert pairs(top.publish(message(13, "nothing"))) == [(10, 1, -1)]
    assert pairs(top.publish(message(14, "nothing"))) == [(11, 1, -1), (11, 2, -1)]


def test_a_message_that_comes_and_goes_within_a_batch_is_reported_twice() -> None:
    table = {"id": [1, 2, 3], "text": ["b", "x", "x"], "x": [0.0] * 3, "y": [0.0] * 3}
    assert pairs(made(2).publish(table)) == [(1, 1, 1), (1, 1, -1)]


def test_subscribing_again_reports_the_difference() -> None:
    top = made()
    top.publish(message(10, "a b"))
    same = {"id": [1], "tokens": [["a", "b"]], "x": [1.0], "y": [1.0], "k": [2]}
    assert pairs(top.subscribe(same)) == []
    assert pairs(top.subscribe(same | {"tokens": [["c"]]})) == [(10, 1, -1)]
    changes = top.subscribe(same | {"x": [0.0]})
    assert pairs(changes) == [(10, 1, 1)]
    assert pairs(top.unsubscribe([1, 77])) == [(10, 1, -1)] and 1 not in top and len(top) == 1


def test_times_of_changes_are_those_of_the_messages() -> None:
    top = made(timedelta(seconds=10))
    noon = datetime(2026, 1, 1, 12, tzinfo=UTC)
    assert top.publish(message(1, "a", time=noon))["time"].to_pylist() == [noon, noon]
    later = top.publish(message(2, "x", time=noon + timedelta(seconds=10)))
    assert pairs(later) == [(1, 1, -1), (1, 2, -1)]
    assert later["time"].to_pylist() == [noon + timedelta(seconds=10)] * 2
    top.publish(message(3, "a", time=noon + timedelta(seconds=11)))
    assert pairs(top.advance(noon + timedelta(seconds=20.9))) == []
    assert pairs(top.advance(noon + timedelta(seconds=21))) == [(3, 1, -1), (3, 2, -1)]


@pytest.mark.parametrize("window", ["3", "90min", "1.5 h", "2 days", timedelta(microseconds=1), np.int64(5)])
def test_windows_that_are_understood(window: Any) -> None:
    assert len(made(window).window) == 0


def test_the_window_may_be_a_column() -> None:
    top = nc.TopK(SUBSCRIPTIONS | {"window": ["1h", "60min"]}, space=UNIT)
    assert top.window.size.period_us == 3_600_000_000
    with pytest.raises(nc.InvalidInput, match="row 2, column 'window': '2h' is another window than 1:00:00"):
        nc.TopK(SUBSCRIPTIONS | {"window": ["1h", "2h"]}, space=UNIT)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"window": 0}, "column 'window': window is 0; a window is a number of messages from 1 to"),
        ({"window": -3}, "window is -3"),
        ({"window": float("nan")}, "window is nan"),
        ({"window": True}, "window is True"),
        ({"window": "soon"}, "window is 'soon'"),
        ({"window": timedelta(0)}, "window is 0:00:00; a window is"),
        ({"window": 2**31}, "window is 2147483648; a window is a number of messages from 1 to 1,073,741,824"),
        ({"window": None}, "no window; give window="),
        ({"subscriptions": {"k": [0, 1]}}, "row 1, column 'k': 0.0 is not within 1 to"),
        ({"subscriptions": {"k": [1, -4]}}, "row 2, column 'k': -4.0 is not within 1 to"),
        ({"subscriptions": {"alpha": [-0.1, 0.5]}}, "row 1, column 'alpha': -0.1 is not within 0 to 1"),
        ({"subscriptions": {"alpha": [0.5, float("nan")]}}, "row 2, column 'alpha': nan is not within 0 to 1"),
        ({"window": "0"}, "window is 0"),
        ({"window": timedelta(seconds=-1)}, "window is -1 day, 23:59:59; a window is"),
        ({"method": "skype", "leaf": True}, "leaf is True; it is a number of subscriptions"),
        ({"method": "skype", "prune": "some"}, "prune is 'some'; it is one of igpt, ipt"),
        ({"method": "skype", "leaf": 0}, "leaf is 0; it is a number of subscriptions"),
        ({"subscriptions": {"k": [1.5, 1]}}, "row 1, column 'k': 1.5 is not a whole number"),
        ({"subscriptions": {"k": [1, float("nan")]}}, "row 2, column 'k': nan is not within"),
        ({"subscriptions": {"alpha": [0.5, 1.5]}}, "row 2, column 'alpha': 1.5 is not within 0 to 1"),
        ({"subscriptions": {"x": [0.0, float("nan")]}}, "row 2, column 'x': x is missing or NaN"),
        ({"subscriptions": {"tokens": [["a"], []]}}, "row 2, column 'tokens': no tokens; kind 'top' needs"),
        ({"subscriptions": {"kind": ["top", "match"]}}, "row 2, column 'kind': kind 'match' is not served here"),
        ({"subscriptions": {"expires": [None, "2030-01-01T00:00:00Z"]}}, "row 2, column 'expires'"),
        ({"max_dist": 0}, "max_dist is 0"),
        ({"max_dist": float("nan")}, "max_dist is nan"),
        ({"refill": "often"}, "refill is 'often'; it is one of"),
        ({"depth": 3}, "method 'norm-lists' has no option 'depth'; it takes refill"),
    ],
)
def test_bad_arguments_are_refused(arguments: dict[str, Any], words: str) -> None:
    table = SUBSCRIPTIONS | arguments.pop("subscriptions", {})
    with pytest.raises(nc.InvalidInput, match=words):
        nc.TopK(table, **{"window": 3, "space": UNIT} | arguments)


def test_an_unknown_method_is_refused() -> None:
    for kind_of_error in (UnknownMethod, nc.InvalidInput):
        with pytest.raises(kind_of_error, match=r"no method 'fast' for kind 'top'; there are auto, brute"):
            made(method="fast")


@pytest.mark.parametrize(
    ("bad", "words"),
    [
        (message(9, "a", x=float("nan")), "column 'x': x is missing or NaN"),
        (message(9, "a", time=None), "row 1, column 'time': no time; a window of a period needs"),
        (message(9, "a", time="2026-01-01T11:59:59Z"), "2026-01-01T11:59:59.* is before 2026-01-01T12:00:00"),
        ({"id": [9], "text": ["a"], "xmin": [0], "ymin": [0], "xmax": [1], "ymax": [1]}, "kind 'top' takes points"),
    ],
)
def test_bad_messages_change_nothing(bad: dict[str, Any], words: str) -> None:
    top = made(timedelta(hours=1))
    top.publish(message(1, "a", time="2026-01-01T12:00:00Z"))
    before = (top.results(1), top.stats, len(top.vocabulary), len(top.window))
    with pytest.raises(nc.InvalidInput, match=words):
        top.publish(pa.concat_tables([pa.table(bad | {"text": ["new words"]})]))
    assert (top.results(1), top.stats, len(top.vocabulary), len(top.window)) == before
    if "x" in bad:
        with pytest.raises(nc.InvalidInput, match="all 1 rows of the messages are bad"):
            top.publish(bad, on_bad="skip")
        assert top.rejects is not None and top.rejects.num_rows == 1


def test_a_time_within_a_batch_may_not_go_backwards() -> None:
    top = made(timedelta(hours=1))
    times = ["2026-01-01T12:00:00Z", "2026-01-01T12:00:05Z", "2026-01-01T12:00:04Z"]
    table = {"id": [1, 2, 3], "text": ["a", "a", "a"], "x": [0.0] * 3, "y": [0.0] * 3, "time": times}
    with pytest.raises(nc.InvalidInput, match=r"row 3, column 'time': 2026-01-01T12:00:04.* is before"):
        top.publish(table)
    assert len(top.window) == 0 and top.stats["messages"] == 0 and top.results(1).num_rows == 0


def test_the_clock_may_not_go_backwards() -> None:
    top = made(timedelta(hours=1))
    top.publish(message(1, "a", time="2026-01-01T12:00:00Z"))
    with pytest.raises(nc.InvalidInput, match="column 'time': .*time does not go backwards"):
        top.advance(datetime(2026, 1, 1, 11, tzinfo=UTC))
    assert len(top.window) == 1 and top.results(1).num_rows == 1


@pytest.mark.parametrize(
    ("now", "words"),
    [
        (float("nan"), "nan is no time; give a datetime"),
        ("soon", "'soon' is no time"),
        (np.datetime64("NaT"), "the time is NaT"),
        (True, "True is no time"),
    ],
)
def test_a_clock_needs_a_moment(now: Any, words: str) -> None:
    top = made(timedelta(hours=1))
    top.publish(message(1, "a", time="2026-01-01T12:00:00Z"))
    with pytest.raises(nc.InvalidInput, match=f"column 'now': {words}"):
        top.advance(now)
    assert len(top.window) == 1 and top.results(1).num_rows == 1


def test_moments_of_all_spellings_are_one() -> None:
    noon = datetime(2026, 1, 1, 12, tzinfo=UTC)
    micro = int(noon.timestamp()) * 1_000_000
    for now in (noon, noon.replace(tzinfo=None), "2026-01-01T12:00:00Z", np.datetime64("2026-01-01T12:00"), micro):
        top = made(timedelta(hours=1))
        top.advance(now)
        assert top.window.now == micro


def test_ids_that_no_subscription_can_have_are_refused() -> None:
    top = made()
    top.publish(message(1, "a b"))
    for ids in (["x"], [1.5], "x", [float("nan")], [[1]]):
        with pytest.raises(nc.InvalidInput, match="column 'id': .*id"):
            top.unsubscribe(ids)
    for number in ("x", 1.5, None):
        with pytest.raises(nc.InvalidInput, match="column 'id': .*id"):
            top.results(number)
    assert len(top) == 2 and top.unsubscribe(1).num_rows == 1 and top.unsubscribe([]).num_rows == 0


def test_bad_subscriptions_change_nothing() -> None:
    top = made()
    top.publish(message(1, "a b"))
    with pytest.raises(nc.InvalidInput, match="row 2, column 'k'"):
        top.subscribe({"id": [1, 5], "tokens": [["c"], ["c"]], "x": [0.0, 0.0], "y": [0.0, 0.0], "k": [3, -1]})
    with pytest.raises(nc.InvalidInput, match="one TopK has one window"):
        top.subscribe({"id": [1], "tokens": [["c"]], "x": [0.0], "y": [0.0], "window": [4]})
    assert len(top) == 2 and top.results(1).num_rows == 1 and top.vocabulary.term("c") == -1
    with pytest.raises(nc.InvalidInput, match="no subscription 99"):
        top.results(99)
    with pytest.raises(nc.InvalidInput, match="a window of 3 messages does not depend on time"):
        top.advance(datetime.now(UTC))


def test_saved_and_opened_goes_on_as_before(tmp_path: Path) -> None:
    rng = np.random.default_rng(3)
    top = made(20, refill="kmax")
    tables = [
        {"id": np.arange(30) + 100 * k, "text": rng.choice(["a", "b", "a b", "c"], 30), **_points(rng)}
        for k in range(3)
    ]
    top.publish(tables[0])
    top.save(tmp_path / "saved")
    top.save(tmp_path / "saved")
    opened = nc.open_topk(tmp_path / "saved")
    assert opened.options == {"refill": "kmax"} and opened.stats["messages"] == 30 and repr(opened).count("norm-lists")
    for table in tables[1:]:
        assert opened.publish(table).equals(top.publish(table))
    new = {"id": [5], "tokens": [["c"]], "x": [0.0], "y": [0.0]}
    assert opened.subscribe(new).equals(top.subscribe(new))


def _points(rng: np.random.Generator) -> dict[str, np.ndarray]:
    return {"x": rng.random(30), "y": rng.random(30)}


def test_damaged_and_foreign_folders_are_refused_by_name(tmp_path: Path) -> None:
    top = made()
    top.publish(message(1, "a b"))
    top.save(tmp_path / "saved")
    (file,) = (tmp_path / "saved").glob("arrays-*/rows.terms.bin")
    file.write_bytes(file.read_bytes()[:-1] + b"\x7f")
    with pytest.raises(CorruptFile, match=r"rows\.terms\.bin does not match its checksum"):
        nc.open_topk(tmp_path / "saved")
    nc.build_index({"id": [1], "tokens": [["a"]], "x": [0.0], "y": [0.0]}).save(tmp_path / "index")
    with pytest.raises(ForeignVersion, match="nearcast-index version"):
        nc.open_topk(tmp_path / "index")


def test_removed_subscriptions_give_their_memory_back() -> None:
    rng, top = np.random.default_rng(4), made(50)
    for k in range(30):
        ids = np.arange(400)
        words = [[f"w{rng.integers(50)}", f"w{50 + rng.integers(50)}"] for _ in ids]
        top.subscribe({"id": ids, "tokens": words, "x": rng.random(400), "y": rng.random(400)})
        top.publish({"id": [k], "text": ["w1 w60"], "x": [0.5], "y": [0.5]})
        if k == 4:
            first = top.nbytes
    assert top.nbytes < 3 * first and len(top) == 400


def test_rare_tokens_cause_no_refills() -> None:
    table = {"id": np.arange(9), "tokens": [["rare"]] * 9, "x": np.zeros(9), "y": np.zeros(9), "k": np.full(9, 5)}
    top = nc.TopK(table, 50, space=UNIT)
    texts = np.where(np.arange(600) % 12 == 0, "rare", "usual")
    top.publish({"id": np.arange(600), "text": texts, "x": np.zeros(600), "y": np.zeros(600)})
    assert top.stats["refills"] == 0 and top.stats["touched"] > 0
