"""`nearcast bench spark` at toy size: everything is measured, and the join finds what we find."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

import nearcast as nc
from nearcast.bench.spark_runs import frames
from nearcast.bench.spark_runs.rates import SPACE, against_join, build, plain_join, write_data
from nearcast.bench.workloads.workload import find_workload
from nearcast.cli.main import app
from nearcast.errors import NearcastError

TINY = "base = 'A'\nvocabulary = 100\ntopics = 3\nwords_per_topic = 10\nclusters = 3\n"


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("bench") / "tiny.toml"
    path.write_text(TINY)
    return path


def test_the_plain_join_finds_what_the_library_finds(spark: Any, tiny: Path, tmp_path: Path) -> None:
    data = write_data(find_workload(tiny).but(subscriptions=300, messages=100), tmp_path / "data")
    plain_join(spark, data.subscriptions, data.messages, data.path("joined"))
    found = pq.read_table(data.path("joined")).sort_by([("message", "ascending"), ("subscription", "ascending")])
    wanted = nc.build_index(data.subscriptions, "brute", space=(0, 0, 1, 1)).match(data.messages)
    assert wanted.num_rows > 10 and found.combine_chunks().cast(wanted.schema).equals(wanted)


def test_a_different_answer_ends_the_run(
    spark: Any, tiny: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = write_data(find_workload(tiny).but(subscriptions=50, messages=20), tmp_path / "data")

    def wrong(session: Any, subscriptions: str, messages: str, out: str) -> None:
        Path(out).mkdir()
        pq.write_table(pa.table({"message": pa.array([-1]), "subscription": pa.array([-1])}), f"{out}/part.parquet")

    monkeypatch.setattr("nearcast.bench.spark_runs.rates.plain_join", wrong)
    with pytest.raises(NearcastError, match="different pairs"):
        against_join(spark, data, 1, 1)


def test_everything_is_measured(spark: Any, tiny: Path, tmp_path: Path) -> None:
    out = tmp_path / "result.json"
    arguments = ["bench", "spark", "--workload", tiny, "--sizes", 200, "-n", 300, "-m", 800, "--out", out, "--json"]
    done = CliRunner().invoke(app, [str(argument) for argument in arguments])
    assert done.exit_code == 0, done.output
    result = json.loads(done.stdout)
    assert result == json.loads(out.read_text())
    assert result["join"][0]["ratio"] > 0 and result["library"]["replicated_share_of_library"] > 0
    assert result["library"]["sharded_cpu_us_per_message"] > 0 and result["library"]["sharded_cpu_share_of_library"] > 0
    assert result["join"][0]["join_cpu_seconds"] > 0 and result["join"][0]["match_cpu_seconds"] > 0
    assert result["micro_batch"]["ms"] > 0 and result["surroundings"]["pyspark"]
    one, two = result["memory"]
    assert (one["workers"], two["workers"]) == (1, 2)
    assert two["index_bytes_together"] < 1.2 * one["index_bytes_together"] < 0.8 * sum(two["index_resident_bytes"])


@pytest.mark.parametrize("arguments", [["--parts", "nothing"], ["--parts", ","], ["--sizes", "many"], ["--sizes", "0"]])
def test_bad_options_are_errors_before_spark_starts(arguments: list[str]) -> None:
    done = CliRunner().invoke(app, ["bench", "spark", *arguments])
    assert done.exit_code == 2 and len(done.stderr.strip().splitlines()) == 1


def test_the_cpu_of_each_path_is_measured_in_turns(spark: Any, tiny: Path, tmp_path: Path) -> None:
    data = write_data(find_workload(tiny).but(subscriptions=300, messages=100), tmp_path / "data")
    build(spark, data, 1)
    frames.write_texts(data)
    index = nc.build_index(data.subscriptions, space=SPACE)
    jobs = frames.library_jobs(index, data, frames.TEXTS) | frames.file_jobs(spark, data, frames.TEXTS)
    jobs |= frames.frame_jobs(spark, data.path("index"), data.path(frames.TEXTS))
    found = frames.cpu_of_each(jobs, 100, 1)
    assert found.keys() == jobs.keys() and len(jobs) == 9 and found["frames, noop"] > 0
    assert frames.require_same_pairs(spark, data) > 10


@pytest.mark.slow
def test_sessions_of_others_are_measured(spark: Any, tiny: Path, tmp_path: Path) -> None:
    arguments = ["bench", "spark", "--workload", tiny, "-n", 300, "-m", 800, "--parts", "frames", "--json"]
    done = CliRunner().invoke(app, [str(argument) for argument in arguments])
    assert done.exit_code == 0, done.output
    found = json.loads(done.stdout)["frames"]
    for mode in ("foreign classic", "foreign connect"):
        assert found["ratios"][f"{mode.split()[1]} session, SQL, noop / library, memory"] > 0
        assert found[mode]["null_task_cpu_ms"] > 0 and found[mode]["cpu_us_per_message"]["SQL, noop"] > 0
