"""`nearcast bench` and `nearcast generate`, as typed."""

from __future__ import annotations

import json

import pytest
from typer.testing import CliRunner

from nearcast.bench.workloads.workload import PRESETS
from nearcast.cli.main import app

RUN = ["bench", "run", "--methods", "brute,keyword-first", "--rounds", "1", "--budget", "0.05"]
TINY = "subscriptions = 80\nmessages = 3\nvocabulary = 100\ntopics = 3\nwords_per_topic = 10\nlong = [10, 20]\n"


@pytest.fixture
def nearcast():
    def run(*arguments):
        return CliRunner().invoke(app, [str(argument) for argument in arguments])

    return run


@pytest.fixture
def tiny(tmp_path):
    path = tmp_path / "tiny.toml"
    path.write_text(TINY)
    return path


def test_a_run_is_stored_drawn_and_shown_again(nearcast, tiny, tmp_path):
    ran = nearcast(*RUN, "--workload", tiny, "--out", tmp_path / "out", "--baseline", "brute")
    assert ran.exit_code == 0, ran.output
    assert "keyword-first" in ran.stdout and "tiny, 80 subscriptions" in ran.stdout
    assert (tmp_path / "out" / "picture.png").stat().st_size > 1_000
    stored = tmp_path / "out" / "result.json"
    again = nearcast("bench", "report", stored, "--picture", tmp_path / "again.svg", "--baseline", "brute")
    assert again.exit_code == 0 and again.stdout == ran.stdout
    assert (tmp_path / "again.svg").exists()
    assert "| workload |" in nearcast("bench", "report", stored, "--markdown").stdout


def test_json_holds_raw_results_and_figures(nearcast, tiny):
    ran = nearcast(*RUN, "--workload", tiny, "-n", 50, "-m", 2, "--seed", 3, "--json")
    document = json.loads(ran.stdout)
    assert document["runs"][0]["workload"]["subscriptions"] == 50
    assert {line["method"] for line in document["figures"]} == {"brute", "keyword-first"}
    assert len(json.loads(nearcast("bench", "sweeps", "--json").stdout)) >= 4


def test_methods_with_options_and_threads_are_taken_as_typed(nearcast, tiny):
    methods = "keyword-first, pyramid, pyramid  crowded=2 young=0"
    asked = ["--methods", methods, "--threads", "1,2", "--tables", "--baseline", "pyramid crowded=2  young=0"]
    ran = nearcast(*RUN, "--workload", tiny, *asked)
    assert ran.exit_code == 0, ran.output
    assert ran.stdout.count("pyramid crowded=2 young=0") >= 4 and "…" not in ran.stdout
    for shown in ("short-point messages through tables", "long-point messages by match_one", "2 threads /s", "peak MB"):
        assert shown in ran.stdout
    document = json.loads(nearcast(*RUN, "--workload", tiny, *asked, "--json").stdout)
    line = document["figures"][-1]
    assert line["method"] == "pyramid crowded=2 young=0" and line["tables"]["kernel"] > 0
    assert list(line["threads"]) == ["1", "2"] and document["sweep"]["settings"]["threads"] == [1, 2]


def test_a_sweep_file_runs_scaled(nearcast, tmp_path):
    path = tmp_path / "mine.toml"
    path.write_text("[workload]\nsubscriptions = 1000\nmessages = 10\nlong = [9, 9]\n[vary]\nzipf = [0.5, 1.5]\n")
    document = json.loads(nearcast(*RUN, "--sweep", path, "--scale", 0.1, "--json").stdout)
    assert [run["varied"] for run in document["runs"]] == [{"zipf": 0.5}, {"zipf": 1.5}]
    assert document["runs"][0]["workload"]["subscriptions"] == 100


def test_a_run_over_real_texts_takes_their_words(nearcast, tiny, tmp_path):
    texts = tmp_path / "texts.csv"
    texts.write_text("text,lon,lat\nopen bridge,1,2\nclosed road at the bridge,3,4\n")
    document = json.loads(nearcast(*RUN, "--workload", tiny, "--from", texts, "--json").stdout)
    assert document["runs"][0]["terms"] == 6
    assert document["runs"][0]["workload"]["space"] == "lonlat"


def test_a_workload_is_generated_and_matched(nearcast, tiny, tmp_path):
    made = nearcast("generate", tiny, "--out", tmp_path / "made", "--seed", 5, "-n", 60, "-m", 4, "--json")
    assert made.exit_code == 0, made.output
    assert json.loads(made.stdout)["rows"]["subscriptions.parquet"] == 60
    files = [tmp_path / "made" / name for name in ("subscriptions.parquet", "messages-long-range.parquet")]
    matched = nearcast("match", *files, "--space", "0,0,1,1", "--json")
    assert json.loads(matched.stdout)["subscriptions"] == 60
    shown = nearcast("generate", tiny, "--out", tmp_path / "made")
    assert "messages-short-point.parquet" in shown.stdout


def test_real_texts_keep_their_licence_line(nearcast, tiny, tmp_path):
    texts = tmp_path / "texts.jsonl"
    texts.write_text('{"text": "open bridge", "lon": 1.0, "lat": 2.0}\n')
    made = nearcast("generate", tiny, "--out", tmp_path / "made", "--from", texts, "--licence", "CC0 1.0")
    assert made.exit_code == 0, made.output
    about = json.loads((tmp_path / "made" / "workload.json").read_text())
    assert about["source"] == {"corpus": "texts.jsonl", "licence": "CC0 1.0"}


@pytest.mark.parametrize(
    "arguments",
    [
        ["generate", "no-such", "--out", "made"],
        ["generate", "A", "--out", "made", "-n", "-1"],
        ["generate", "A", "--out", "made", "--licence", "CC0"],
        ["generate", "A", "--out", "made", "--from", "absent.csv"],
        ["bench", "run", "--sweep", "no-such"],
        ["bench", "run", "--sweep", "quick", "--workload", "A"],
        ["bench", "run", "--sweep", "quick", "-n", "10"],
        ["bench", "run", "--workload", "A", "--methods", "no-such"],
        ["bench", "run", "--workload", "A", "--methods", ","],
        ["bench", "run", "--workload", "A", "--methods", "pyramid colour=1"],
        ["bench", "run", "--workload", "A", "--methods", "pyramid crowded"],
        ["bench", "run", "--workload", "A", "--methods", "pyramid crowded=0"],
        ["bench", "run", "--workload", "A", "--methods", "pyramid crowded=many"],
        ["bench", "run", "--workload", "A", "--threads", "two"],
        ["bench", "run", "--workload", "A", "--threads", "1,1"],
        ["bench", "run", "--workload", "A", "--threads", ""],
        ["bench", "run", "--workload", "A", "--methods", "brute", "--baseline", "auto"],
        ["bench", "run", "--workload", "A", "--rounds", "0"],
        ["bench", "run", "--workload", "A", "--scale", "0"],
        ["bench", "report", "absent.json"],
    ],
)
def test_bad_input_is_one_line_and_exit_code_2(nearcast, arguments, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    failed = nearcast(*arguments)
    assert failed.exit_code == 2
    assert failed.stderr.startswith("error: ") and failed.stderr.count("\n") == 1
    assert not failed.stdout


@pytest.mark.parametrize("command", [["generate"], ["bench", "run"], ["bench", "report"], ["bench", "sweeps"]])
def test_help_has_an_example(nearcast, command):
    shown = nearcast(*command, "--help")
    assert shown.exit_code == 0 and "Example:" in shown.stdout and f"nearcast {command[0]}" in shown.stdout


def test_help_names_every_workload(nearcast):
    shown = nearcast("generate", "--help").stdout
    assert all(name in shown for name in PRESETS)
