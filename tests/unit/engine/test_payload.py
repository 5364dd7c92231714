"""What matches carry along, and the subscriptions as they were given, against a dict of Python."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from tests.reference import great_circle_km

import nearcast as nc
from nearcast.engine.payload.sources import Sources
from nearcast.errors import InvalidInput, UnknownId

SUBSCRIPTIONS: list[dict[str, Any]] = [
    {"id": "near", "expression": "pizza OR deal", "region": "circle(0.01, 0, 5km)", "name": "N", "rank": 1},
    {"id": "all", "expression": "(deal AND hot) NOT frozen", "region": "world", "name": "A", "rank": 2},
    {"id": "box", "tokens": ["deal", "hot"], "xmin": -1.0, "ymin": -1.0, "xmax": 2.0, "ymax": 1.0},
]
MESSAGES: list[dict[str, Any]] = [
    {"id": 7, "text": "Hot pizza deal", "x": 0.0, "y": 0.0, "user": "u", "rank": 5},
    {"id": 3, "text": "frozen deal, hot", "x": 0.02, "y": 0.01, "user": "v", "rank": 6},
]


@pytest.fixture
def index() -> nc.Index:
    return nc.build_index(SUBSCRIPTIONS, extra=["name", "rank"])


def test_columns_of_both_tables_are_carried(index: nc.Index) -> None:
    keep = ["user", "name", "message.rank", "subscription.rank", "message.text", "subscription.id"]
    found = index.match(MESSAGES, keep=keep)
    assert found.column_names == ["message", "subscription", *keep]
    subscriptions, messages = ({row["id"]: row for row in table} for table in (SUBSCRIPTIONS, MESSAGES))
    for row in found.to_pylist():
        message, own = messages[row["message"]], subscriptions[row["subscription"]]
        wanted = [message["user"], own.get("name"), message["rank"], own.get("rank"), message["text"], own["id"]]
        assert [row[name] for name in keep] == wanted
    assert found.select(["message", "subscription"]).equals(index.match(MESSAGES))
    assert index.match(MESSAGES, keep="user").column_names[-1] == "user"


def test_rows_of_bad_messages_are_left_out(index: nc.Index) -> None:
    bad = [{"id": None, "text": "hot pizza deal", "x": 0.0, "y": 0.0, "user": "bad", "rank": 0}]
    found = index.match(bad + MESSAGES, keep=["user"], on_bad="skip")
    assert found.equals(index.match(MESSAGES, keep=["user"]))


def test_distance_is_from_centre_to_centre_and_words_are_those_asked_for(index: nc.Index) -> None:
    found = {
        (row["message"], row["subscription"]): row
        for row in index.match(MESSAGES, keep=["distance_km", "words"]).to_pylist()
    }
    words = {pair: row["words"] for pair, row in found.items()}
    assert words == {
        (3, "box"): ["deal", "hot"],
        (3, "near"): ["deal"],
        (7, "all"): ["deal", "hot"],
        (7, "box"): ["deal", "hot"],
        (7, "near"): ["deal", "pizza"],
    }
    for (message, subscription), (x, y) in {
        (7, "near"): (0.01, 0.0),
        (3, "near"): (0.01, 0.0),
        (3, "box"): (0.5, 0.0),
    }.items():
        own = next(row for row in MESSAGES if row["id"] == message)
        assert found[message, subscription]["distance_km"] == pytest.approx(great_circle_km(x, y, own["x"], own["y"]))
    assert found[7, "all"]["distance_km"] is None


def test_ranked_and_plain_pairs_carry_alike() -> None:
    ranked = [{"id": "r", "tokens": ["hot", "cold"], "kind": "rank", "threshold": 0.1, "xmin": 0.0, "ymin": 0.0}]
    table = [row | {"xmax": 1.0, "ymax": 1.0} for row in ranked] + [{"id": "p", "tokens": ["hot"], "x": 0.0, "y": 0.0}]
    found = nc.build_index(table).match(MESSAGES[:1], keep=["words", "distance_km", "user"]).to_pylist()
    assert [(row["subscription"], row["words"], row["user"]) for row in found] == [
        ("p", ["hot"], "u"),
        ("r", ["hot"], "u"),
    ]
    assert found[0]["distance_km"] == 0.0
    assert found[1]["distance_km"] == pytest.approx(great_circle_km(0.5, 0.5, 0.0, 0.0))


@pytest.mark.parametrize(
    ("keep", "message"),
    [
        (["nam"], "neither table has a column 'nam'; did you mean 'name'?"),
        (["subscription.user"], "neither table has a column 'subscription.user'; did you mean"),
        (["rank"], "both tables have a column 'rank'; keep 'message.rank' or 'subscription.rank'"),
        (["id"], "both tables have a column 'id'"),
        ([3], "keep= is a list of column names, not of 3"),
        (3, "keep= is a list of column names, not 3"),
    ],
)
def test_columns_that_cannot_be_kept_are_refused(index: nc.Index, keep: Any, message: str) -> None:
    with pytest.raises(InvalidInput) as raised:
        index.match(MESSAGES, keep=keep)
    assert message in str(raised.value)


def test_a_plane_has_no_kilometres_and_results_keep_their_columns() -> None:
    index = nc.build_index([{"id": 1, "tokens": ["hot"], "x": 0.0, "y": 0.0}], space=(0, 0, 1, 1))
    with pytest.raises(InvalidInput, match="needs longitudes and latitudes"):
        index.match(MESSAGES[:1], keep=["distance_km"])
    table = [{**MESSAGES[0], "score": 3}]
    with pytest.raises(InvalidInput, match="keep 'message.score'"):
        index.match(table, keep=["score"])
    assert index.match(table, keep=["message.score"])["message.score"].to_pylist() == [3]


def test_subscriptions_come_back_as_they_were_given(index: nc.Index, tmp_path: Path) -> None:
    wanted = {row["id"]: row for row in SUBSCRIPTIONS}
    index.save(tmp_path / "index")
    for twin in (index, nc.open_index(tmp_path / "index"), pickle.loads(pickle.dumps(index))):
        assert list(twin) == ["all", "box", "near"] and "near" in twin and "far" not in twin and 3 not in twin
        assert {each: twin[each] for each in twin} == wanted
        assert twin.subscriptions()["id"].to_pylist() == ["all", "box", "near"]
        with pytest.raises(UnknownId, match="^column 'id': no subscription 'far'$"):
            twin["far"]
        with pytest.raises(KeyError):
            twin[3]
        assert twin.source_nbytes > 0


def test_without_kept_subscriptions_ids_are_still_known() -> None:
    index = nc.build_index(SUBSCRIPTIONS, keep_source=False, extra="ignore")
    assert list(index) == ["all", "box", "near"] and "box" in index and "x" not in index and index.source_nbytes == 0
    for call in (lambda: index["box"], index.subscriptions, lambda: index.match(MESSAGES, keep=["name"])):
        with pytest.raises(InvalidInput, match="keep_source"):
            call()
    assert index.match(MESSAGES, keep=["user", "words"]).num_rows == 5


def test_a_subscription_that_can_never_match_is_kept() -> None:
    index = nc.build_index([{"id": "n", "expression": "a NOT a", "region": "world"}])
    assert "n" in index and index["n"]["expression"] == "a NOT a"


@pytest.mark.parametrize("seed", range(3))
def test_random_changes_against_a_dict(seed: int, tmp_path: Path) -> None:
    rng, known, index = (
        np.random.default_rng(seed),
        dict[int, dict[str, Any]](),
        nc.build_index([row_of(0, 0)], extra=["note", "extra"]),
    )
    known[0] = row_of(0, 0)
    for step in range(40):
        if rng.random() < 0.6:
            rows = [row_of(int(each), step) for each in rng.permutation(12)[: rng.integers(1, 5)]]
            index.insert(rows, extra=["extra"])
            known |= {row["id"]: row for row in rows}
        else:
            gone = [int(each) for each in rng.permutation(12)[:4]]
            index.remove(gone)
            known = {each: row for each, row in known.items() if each not in gone}
        if step % 13 == 5:
            index.save(tmp_path / "index")
            index = nc.open_index(tmp_path / "index")
        assert list(index) == sorted(known)
        assert {each: index[each] for each in index} == known
        found = index.match({"id": [1], "text": ["a"], "x": [0.0], "y": [0.0]}, keep=["note", "extra"])
        assert found["subscription"].to_pylist() == sorted(known)
        assert found["note"].to_pylist() == [known[each]["note"] for each in sorted(known)]
        assert found["extra"].to_pylist() == [known[each].get("extra") for each in sorted(known)]


def row_of(number: int, step: int) -> dict[str, Any]:
    row = {"id": number, "tokens": ["a"], "x": 0.0, "y": 0.0, "note": f"{number} at {step}"}
    return row | ({"extra": step} if (step + number) % 3 == 0 else {})


def test_many_small_changes_make_few_parts_and_leave_no_rows() -> None:
    sources = Sources()
    for number in range(500):
        sources = sources.with_rows(np.array([number % 50]), pa.table({"id": [number]}))
    assert len(sources._parts) < 12 and sum(len(part.numbers) for part in sources._parts) < 250
    assert sources.take(np.arange(50))["id"].to_pylist() == list(range(450, 500))
    for number in range(50):
        sources = sources.without(np.array([number, 1000 + number]))
    assert len(sources.numbers()) == 0 and sum(part.size for part in sources._parts) < 150


def test_values_of_two_types_are_said_when_they_are_carried() -> None:
    index = nc.build_index([{"id": 1, "tokens": ["a"], "x": 0.0, "y": 0.0, "note": "text"}], extra=["note"])
    index.insert([{"id": 2, "tokens": ["a"], "x": 0.0, "y": 0.0, "note": {"b": 1}}])
    assert index[1]["note"] == "text" and index[2]["note"] == {"b": 1}
    with pytest.raises(InvalidInput, match="values of different types here"):
        index.match({"id": [1], "text": ["a"], "x": [0.0], "y": [0.0]}, keep=["note"])


def test_an_index_explains_what_it_has(index: nc.Index) -> None:
    found = index.explain("near", "Frozen pizza", at=(1.0, 0.0))
    assert not found.holds and found.matched == ("pizza",) and found.distance == pytest.approx(105.1, abs=0.5)
    assert index.explain("all", tokens=["deal", "hot"], at=(1.0, 0.0)).holds
    assert index.explain("box", "hot", at=(0.0, 0.0, 1.0, 1.0)).missing == ("deal",)
    with pytest.raises(UnknownId):
        index.explain("none", "", at=(0.0, 0.0))
