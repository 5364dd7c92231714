"""The public index: every method through tables, files and threads."""

from __future__ import annotations

import pickle
import random
import shutil
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import nearcast as nc
from nearcast.errors import CorruptFile, ForeignVersion, InvalidInput, UnknownMethod
from reference import pairs

METHODS = sorted(info.name for info in nc.methods())
WORDS = ["pizza", "deal", "rain", "café", "东京", "#x"]


def random_world(seed: int, n: int = 120) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Subscriptions and messages as the reference oracle reads them."""
    rng = random.Random(seed)
    subscriptions = []
    for i in range(n):
        tokens = rng.sample(WORDS, rng.choice([0, 1, 1, 2, 3]))
        x, y = rng.choice([-180.0, -3.0, 0.0, 2.5, 179.0]), rng.choice([-89.0, 0.0, 1.0, 60.0])
        row: dict[str, Any] = {
            "id": i * 3,
            "tokens": tokens,
            "without": rng.sample(WORDS, rng.choice([0, 0, 1])),
        }
        row["without"] = [token for token in row["without"] if token not in tokens]
        if rng.random() < 0.4:
            row["circle"] = (x, y, rng.choice([0.0, 50.0, 400.0]))
        else:
            row["box"] = (
                x,
                y,
                min(180.0, x + rng.choice([0.0, 1.0, 3.0])),
                min(90.0, y + rng.choice([0.0, 1.0, 30.0])),
            )
        subscriptions.append(row)
    messages = []
    for i in range(60):
        x, y = rng.choice([-180.0, -3.0, 0.5, 2.5, 180.0]), rng.choice([-89.0, 0.0, 0.5, 2.0, 61.0])
        messages.append(
            {"id": 1000 - i, "tokens": rng.sample([*WORDS, "other"], rng.randint(0, 5)), "box": (x, y, x, y)}
        )
    return subscriptions, messages


def subscriptions_table(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    table = []
    for row in rows:
        words = [f'"{token}"' for token in row["tokens"]] + [f'NOT "{token}"' for token in row["without"]]
        made = {"id": row["id"], "expression": " ".join(words), "region": None}
        if "circle" in row:
            made["region"] = "circle({}, {}, {}km)".format(*row["circle"])
        box = row.get("box", (None,) * 4)
        table.append(made | dict(zip(("xmin", "ymin", "xmax", "ymax"), box, strict=True)))
    return table


def messages_table(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [{"id": row["id"], "tokens": row["tokens"], "x": row["box"][0], "y": row["box"][1]} for row in rows]


def found(table: pa.Table) -> list[tuple[int, int]]:
    return list(zip(table.column("message").to_pylist(), table.column("subscription").to_pylist(), strict=True))


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("seed", range(3))
def test_every_method_agrees_with_an_oracle_that_shares_no_code(method: str, seed: int) -> None:
    subscriptions, messages = random_world(seed)
    index = nc.build_index(subscriptions_table(subscriptions), method=method)
    wanted = pairs(subscriptions, messages)
    assert found(index.match(messages_table(messages))) == wanted and len(wanted) > 50
    assert found(index.match(messages_table(messages), threads=2)) == wanted


@pytest.mark.parametrize("method", METHODS)
def test_match_one_agrees_with_match(method: str) -> None:
    subscriptions, messages = random_world(7)
    index = nc.build_index(subscriptions_table(subscriptions), method=method)
    wanted = pairs(subscriptions, messages)
    for message in messages[:20]:
        ids = index.match_one(message["tokens"], *message["box"][:2])
        assert ids.tolist() == [s for m, s in wanted if m == message["id"]]


@pytest.mark.parametrize("method", METHODS)
def test_match_one_accepts_any_tokens(method: str, tmp_path: Path) -> None:
    box = {"xmin": 0.0, "ymin": 0.0, "xmax": 1.0, "ymax": 1.0}
    token_lists = [["pizza"], ["pizza", "deal"], ["two\nlines"], [""], ["東京"]]
    nc.build_index([{"id": i, "tokens": tokens, **box} for i, tokens in enumerate(token_lists)], method).save(tmp_path)
    index = nc.open_index(tmp_path)
    assert index.match_one(["deal", "pizza", "unknown", "pizza"], 0.5, 1).tolist() == [0, 1]
    assert index.match_one((token for token in ("pizza", "two\nlines", "東京")), 0, 0).tolist() == [0, 2, 4]
    assert index.match_one([""], 0.0, 0.0).tolist() == [3]
    assert index.match_one(["\ud800", "deal"], 0.0, 0.0).tolist() == index.match_one([], 0.5, 0.5).tolist() == []
    assert index.match_one(["pizza"], 1.5, 0.5).tolist() == []
    index.insert([{"id": 9, "tokens": ["unknown"], **box}])
    assert index.match_one(["unknown"], 0.5, 0.5).tolist() == [9]
    for x, y in ((float("nan"), 0.0), (0.0, float("inf"))):
        with pytest.raises(InvalidInput, match="missing or NaN|must be finite"):
            index.match_one(["pizza"], x, y)


@pytest.mark.parametrize("method", METHODS)
def test_saved_opened_and_changed(method: str, tmp_path: Path) -> None:
    subscriptions, messages = random_world(9)
    table = subscriptions_table(subscriptions)
    nc.build_index(table[:100], method=method, analyser=nc.Analyser(fold_accents=True)).save(tmp_path / "index")
    index = nc.open_index(tmp_path / "index")
    assert index.method == method and index.analyser.fold_accents
    index.insert(table[100:])
    index.remove([row["id"] for row in table[:10]])
    wanted = pairs(subscriptions[10:], messages)
    plain = nc.build_index(table[10:], method="brute", analyser=nc.Analyser(fold_accents=True))
    assert found(index.match(messages_table(messages))) == found(plain.match(messages_table(messages)))
    assert len(wanted) > 0
    index.save(tmp_path / "index")
    assert len(nc.open_index(tmp_path / "index", verify=False)) == len(index)


@pytest.fixture
def saved(tmp_path: Path) -> Path:
    nc.build_index(subscriptions_table(random_world(1)[0])).save(tmp_path / "index")
    return tmp_path / "index"


def test_every_damaged_file_of_an_index_is_refused_by_name(saved: Path, tmp_path: Path) -> None:
    files = sorted(saved.glob("arrays-*/*.bin"))
    assert len(files) > 20
    for file in files:
        content = file.read_bytes()
        damaged = [content[:-1], content[:-1] + bytes([content[-1] ^ 128])] if content else [b"x"]
        for bad in damaged:
            file.write_bytes(bad)
            with pytest.raises(CorruptFile, match=file.name):
                nc.open_index(saved)
        file.write_bytes(content)
    assert len(nc.open_index(saved)) > 0


def test_an_index_of_another_version_is_refused(saved: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import nearcast.storage.index_folder as index_folder
    import nearcast.text.analyser as analyser

    monkeypatch.setattr(index_folder, "INDEX_FORMAT", ("nearcast-index", 5))
    with pytest.raises(ForeignVersion, match="nearcast-index version 4; this release reads nearcast-index version 5"):
        nc.open_index(saved)
    monkeypatch.undo()
    monkeypatch.setattr(analyser, "ANALYSER_VERSION", 99)
    with pytest.raises(ForeignVersion):
        nc.open_index(saved)


def test_a_folder_that_is_no_index_is_refused(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        nc.open_index(tmp_path / "nothing")


def test_an_open_index_survives_the_removal_of_its_folder(saved: Path) -> None:
    index = nc.open_index(saved)
    shutil.rmtree(saved)
    assert index.match(messages_table(random_world(1)[1])).num_rows > 0


def test_bad_arguments_are_refused() -> None:
    table = subscriptions_table(random_world(1)[0])
    with pytest.raises(UnknownMethod, match="no method 'r-tree'"):
        nc.build_index(table, method="r-tree")
    with pytest.raises(nc.InvalidInput, match="no option 'fanout'"):
        nc.build_index(table, fanout=3)
    with pytest.raises(nc.InvalidInput, match="space"):
        nc.build_index(table, space=(0, 0, 0, 1))
    with pytest.raises(nc.InvalidInput, match="row 2, column 'weight': -1.0 is not a weight"):
        nc.build_index(table, weights={"token": ["a", "b"], "weight": [1.0, -1.0]})


def test_an_index_reports_its_stats_and_size() -> None:
    index = nc.build_index(subscriptions_table(random_world(2)[0]), method="keyword-first")
    pairs_found = index.match(messages_table(random_world(2)[1])).num_rows
    assert index.stats.matches == pairs_found and index.stats.candidates >= pairs_found
    assert index.nbytes > 120 * 40 and "keyword-first" in repr(index)


@pytest.mark.parametrize("method", ["pyramid", "keyword-first"])
def test_one_message_at_a_time_does_the_same_work(method: str) -> None:
    subscriptions, messages = random_world(2)
    with_tokens = subscriptions_table(
        [each for each in subscriptions if each["tokens"]]
    )  # match_one runs the others as a batch
    one, many = (nc.build_index(with_tokens, method=method) for _ in range(2))
    points = [message for message in messages if message["box"][:2] == message["box"][2:]]
    found = [one.match_one(message["tokens"], *message["box"][:2]) for message in points]
    many.match(messages_table(points))
    assert one.stats == many.stats and one.stats.matches == sum(map(len, found)) > 0


def test_an_index_pickles_by_path_while_it_is_saved_and_unchanged(tmp_path: Path) -> None:
    table = {"id": [1, 2], "expression": ["storm", "flood"], "region": ["world", "world"]}
    index = nc.build_index(table, "pyramid")
    message = {"id": [7], "text": ["Storm and flood"], "lon": [0.0], "lat": [0.0]}

    def found(made: nc.Index) -> list[int]:
        return list(made.match(message)["subscription"].to_pylist())

    assert found(pickle.loads(pickle.dumps(index))) == [1, 2], "by value: it was never saved"
    index.save(tmp_path / "index")
    by_path = pickle.dumps(index)
    assert len(by_path) < 400 and found(pickle.loads(by_path)) == [1, 2]
    assert len(pickle.dumps(nc.open_index(tmp_path / "index"))) < 400
    index.remove([1])
    by_value = pickle.dumps(index)
    restored = pickle.loads(by_value)
    restored.insert({"id": [3], "expression": ["flood"], "region": ["world"]})
    assert len(by_value) > 400 and found(restored) == [2, 3] and found(index) == [2]
    index.save(tmp_path / "index")
    assert found(pickle.loads(pickle.dumps(index))) == [2]
    with pytest.raises(InvalidInput, match="was replaced since it was pickled; open it again"):
        pickle.loads(by_path)


def test_a_ranked_index_pickles_by_value_with_its_weights() -> None:
    table = {"id": [1], "tokens": [["a", "b"]], "x": [0.5], "y": [0.5], "kind": ["rank"], "alpha": [0.5]}
    index = nc.build_index(table | {"threshold": [0.1]}, "brute")
    message = {"id": [7], "tokens": [["a"]], "x": [0.5], "y": [0.5]}
    assert index.match(message).num_rows == 1
    assert pickle.loads(pickle.dumps(index)).match(message).equals(index.match(message))


def test_an_index_in_a_store_is_saved_opened_and_pickled(bucket: str) -> None:
    index = nc.build_index({"id": [1], "expression": ["storm"], "region": ["world"]})
    url = bucket.replace("s3://", "s3a://") + "/index"
    index.save(url)
    assert not Path("s3a:").exists()
    opened = nc.open_index(url)
    assert opened.match_one("storm", 0.0, 0.0).tolist() == [1]
    assert pickle.loads(pickle.dumps(opened)).match_one("storm", 0.0, 0.0).tolist() == [1]
