"""Sessions that nearcast did not start, with Spark's own settings, each in a process of its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

import nearcast as nc
from nearcast.arrays.jit import JIT_DISABLED
from nearcast.spark.runtime.java import find_java
from spark import foreign_session
from spark.nasty_tables import nasty_messages, nasty_subscriptions

pytestmark = pytest.mark.skipif(JIT_DISABLED, reason="Spark's workers in plain Python take minutes")


def run_notebook(mode: str, folder: Path, messages: pa.Table) -> dict[str, Any]:
    pq.write_table(messages, folder / "messages.parquet")
    command = [sys.executable, foreign_session.__file__, mode]
    command += [str(folder / name) for name in ("index", "messages.parquet", "found.json")]
    paths = [str(Path(nc.__file__).parents[1]), str(Path(__file__).parents[1])]
    settings = {"JAVA_HOME": str(find_java()), "PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1"}
    environment = {**os.environ, **settings, "PYTHONPATH": os.pathsep.join(paths)}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads((folder / "found.json").read_text(encoding="utf-8"))


def pairs(table: pa.Table) -> list[list[Any]]:
    return [list(row.values()) for row in table.to_pylist()]


@pytest.mark.parametrize("mode", ["classic", "connect"])
def test_a_notebook_finds_what_the_library_finds(tmp_path: Path, mode: str) -> None:
    if mode == "connect" and find_spec("grpc") is None:
        pytest.skip("Spark Connect needs grpcio")
    messages = nasty_messages(21, 200)
    index = nc.build_index(nasty_subscriptions(20, 120), "brute")
    index.save(tmp_path / "index")
    found = run_notebook(mode, tmp_path, messages)
    assert found["remote"] == (mode == "connect")
    wanted = index.match(messages)
    for name in ("plain", "sharded", "stream", *(["sql"] if found["version"] >= "4.1" else [])):
        assert found[name] == pairs(wanted), name
    points = messages.filter(pc.invert(pc.is_nan(messages["x"])))
    texts = pa.array([" ".join(tokens) for tokens in points["tokens"].to_pylist()])
    by_text = pa.table({"id": points["id"], "text": texts, "x": points["x"], "y": points["y"]})
    in_nested = index.match(by_text.append_column("time", points["time"]))
    assert found["nested"] == pairs(in_nested) and len(in_nested)
    assert found["rejects"] == ["lon"] * (messages.num_rows - points.num_rows)
    city = {id_: ("north", "south")[k % 2] for k, id_ in enumerate(messages["id"].to_pylist())}
    assert found["arrow types"] == [[*row, city[row[0]]] for row in pairs(index.match(by_text))]
    assert found["tokens"] == ["pizza", "naïve"]
    assert found["vocabulary"]["a"] == sum("a" in tokens for tokens in messages["tokens"].to_pylist())
    assert "x is 999" in found["error"] and "\n" not in found["error"]
    assert "nearcast.spark.match" in found["refused"]
