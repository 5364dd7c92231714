"""Wrong arguments are refused before Spark starts; a master that does not answer, in bounded time."""

from __future__ import annotations

import json
import socket
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import Result
from typer.testing import CliRunner

from nearcast.cli.main import app
from nearcast.errors import InvalidInput, MissingPart
from nearcast.ingest.pipeline import master
from nearcast.ingest.pipeline.master import check_master
from nearcast.ingest.pipeline.steps import run_step
from nearcast.spark import pipeline as run
from nearcast.spark.runtime import session


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with some input, and a process that must not start Spark."""

    def refuse(*_: Any) -> None:
        raise AssertionError("Spark was started")

    monkeypatch.setattr(session, "running_session", lambda: None)
    monkeypatch.setattr(session, "start_java", refuse)
    (tmp_path / "raw.csv").write_text("key,body,lon,lat\n1,a,0,0\n")
    pq.write_table(pa.table({"id": [1], "text": ["a"], "x": [0.0], "y": [0.0]}), tmp_path / "messages.parquet")
    pq.write_table(pa.table({"id": [1], "tokens": [["a"]]}), tmp_path / "placeless.parquet")
    (tmp_path / "bad.parquet").write_text("no Parquet")
    (tmp_path / "full").mkdir()
    (tmp_path / "full/notes.txt").touch()
    return tmp_path


def nearcast(*arguments: str) -> Result:
    return CliRunner().invoke(app, ["pipeline", *arguments])


MESSAGES = ["ingest", "{here}/raw.csv", "--kind", "messages", "--out", "{here}/o"]
BUILD = ["build", "--subscriptions", "{here}/placeless.parquet", "--out", "{here}/o"]


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        ([*MESSAGES, "--map", "id=key,text=boddy"], "'text': no file has a column 'boddy'; they have key, body"),
        ([*MESSAGES, "--map", "id=key,words=body"], "messages have no column 'words'"),
        ([*MESSAGES, "--map", "id=key,text=body", "--encoding", "utf-17"], "no encoding 'utf-17'"),
        ([*MESSAGES, "--map", "id=key,text=body", "--rejects", "{here}/o/r"], "neither folder may lie within"),
        ([*MESSAGES[:-1], "{here}/full", "--map", "id=key,text=body"], "holds other files"),
        (["ingest", "{here}/no.csv", "--kind", "messages", "--out", "{here}/o"], "no such file"),
        (BUILD, "subscriptions need a place"),
        ([*BUILD, "--method", "fastest"], "fastest"),
        (["build", "--subscriptions", "{here}/bad.parquet", "--out", "{here}/o"], "bad.parquet"),
        (["vocabulary", "--messages", "{here}/bad.parquet", "--out", "{here}/v"], "bad.parquet"),
        (["match", "--index", "{here}/full", "--messages", "{here}/messages.parquet", "--out", "{here}/o"], "CURRENT"),
        (
            ["stream", "--index", "{here}/full", "--messages", "{here}/raw.csv", "--out", "{here}/o"]
            + ["--checkpoint", "{here}/c"],
            "is no folder",
        ),
        ([*MESSAGES, "--map", "id=key,text=body", "--master", "sparky://h:1"], "is no master of Spark"),
        ([*MESSAGES, "--map", "id=key,text=body", "--master", "spark://127.0.0.1:1"], "no master of Spark answers"),
    ],
)
def test_wrong_arguments_do_not_start_spark(folder: Path, arguments: list[str], reason: str) -> None:
    done = nearcast(*(argument.format(here=folder) for argument in arguments))
    assert done.exit_code == 2 and reason in done.stderr, done.output
    assert len(done.stderr.strip().splitlines()) == 1
    assert not (folder / "o").exists()


def test_right_arguments_do(folder: Path) -> None:
    done = nearcast(*(each.format(here=folder) for each in MESSAGES), "--map", "id=key,text=body")
    assert "Spark was started" in str(done.exception) + done.output


def test_a_pipeline_with_a_wrong_column_does_not_start_spark(folder: Path) -> None:
    (folder / "p.toml").write_text(
        '[messages]\nsources = ["raw.csv"]\nmap = { id = "key", text = "boddy" }\n'
        '[subscriptions]\nsources = ["raw.csv"]\n'
    )
    done = nearcast("run", str(folder / "p.toml"))
    assert done.exit_code == 2 and "no file has a column 'boddy'" in done.stderr, done.output


def test_a_pipeline_with_nothing_to_do_does_not_start_spark(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (folder / "p.toml").write_text(
        '[messages]\nsources = ["raw.csv"]\nmap = { id = "key", text = "body" }\n'
        '[subscriptions]\nsources = ["raw.csv"]\nmap = { id = "key", expression = "body" }\n'
    )

    def done_before(step: Any, work: Any, force: bool) -> Any:
        """The step as if its work had been done by an earlier run."""
        for output in step.outputs:
            Path(output).mkdir(parents=True, exist_ok=True)
        return run_step(step, lambda: {"done": 1}, force)

    with monkeypatch.context() as patch:
        patch.setattr(run, "run_step", done_before)
        patch.setattr("nearcast.cli.pipeline.commands.write_report", lambda *_, **__: None, raising=False)
        patch.setattr(run, "read_statistics", lambda _: {})
        nearcast("run", str(folder / "p.toml"))
    monkeypatch.setattr(run, "read_statistics", lambda _: {})
    monkeypatch.setattr("nearcast.ingest.reports.table_report.write_report", lambda *_, **__: None)
    done = nearcast("run", str(folder / "p.toml"), "--json")
    assert done.exit_code == 0, (done.output, done.exception)
    assert all(step["up_to_date"] for step in json.loads(done.stdout)["steps"].values())


def test_a_master_is_asked_before_java_is(monkeypatch: pytest.MonkeyPatch) -> None:
    for good in ("local", "local[2]", "local[*]", "local-cluster[2,1,1024]", "yarn", "k8s://https://h:6443"):
        check_master(good)
    for bad in ("spark://h", "spark://h:seven", "spark://h:70777", "lokal[2]", "http://h:7077", ""):
        with pytest.raises(InvalidInput, match="no master of Spark"):
            check_master(bad)
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        with pytest.raises(MissingPart, match="refused"):
            check_master(f"spark://127.0.0.1:{listener.getsockname()[1]}")
        listener.listen()
        check_master(f"spark://127.0.0.1:1,127.0.0.1:{listener.getsockname()[1]}")
    seconds = []
    monkeypatch.setattr(master.socket, "create_connection", lambda _, limit: seconds.append(limit) or 1 / 0)
    with pytest.raises(ZeroDivisionError):
        check_master("spark://10.255.255.1:7077")
    assert seconds == [2.0], "a host that swallows packets is given up"
