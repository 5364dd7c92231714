"""`nearcast match`: the library's answer, from and to every sort of file; bad input in one line."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from typer.testing import CliRunner, Result

import nearcast as nc
from nearcast.cli import match_actions as match_module
from nearcast.cli.main import app
from nearcast.storage.location import locate
from nearcast.tables import as_arrow, write_table

SUBSCRIPTIONS = pa.table(
    {
        "id": [1, 2, 3, 4],
        "expression": ["pizza AND (deal OR coupon) NOT frozen", "", "NOT pizza", "pizza"],
        "region": ["circle(0.1, 0.1, 50km)", "world", "circle(5, 5, 50km)", "circle(5, 5, 50km)"],
    }
)
MESSAGES = pa.table(
    {
        "id": [30, 10, 20],
        "text": ["Pizza deal!", "Frozen pizza deal", "Rain"],
        "lon": [0.1, 0.1, 5.0],
        "lat": [0.1, 0.1, 5.0],
    }
)
PAIRS = [(10, 2), (20, 2), (20, 3), (30, 1), (30, 2)]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    write_table(SUBSCRIPTIONS, "subs.parquet")
    write_table(MESSAGES, "messages.parquet")
    return tmp_path


def run(*arguments: str) -> Result:
    return CliRunner().invoke(app, list(arguments))


def succeed(*arguments: str) -> Any:
    done = run(*arguments, "--json")
    assert done.exit_code == 0, done.output
    return json.loads(done.stdout)


def refused(*arguments: str) -> str:
    """The one line that the command says when it refuses."""
    done = run(*arguments)
    assert done.exit_code == 2, (done.exit_code, done.output, done.exception)
    assert done.stdout == ""
    lines = done.stderr.splitlines()
    assert len(lines) == 1 and lines[0].startswith("error: "), done.stderr
    return lines[0]


def pairs_in(path: str) -> list[tuple[int, int]]:
    return [(row["message"], row["subscription"]) for row in as_arrow(path).to_pylist()]


def test_the_answer_is_the_librarys(folder: Path) -> None:
    succeed("match", "subs.parquet", "messages.parquet", "--out", "out.parquet")
    assert as_arrow("out.parquet").equals(nc.build_index(SUBSCRIPTIONS).match(MESSAGES))
    assert pairs_in("out.parquet") == PAIRS


@pytest.mark.parametrize("ending", ["parquet", "csv", "jsonl"])
def test_every_sort_of_file_goes_in_and_out(folder: Path, ending: str) -> None:
    write_table(SUBSCRIPTIONS, f"in.{ending}")
    write_table(MESSAGES, f"msg.{ending}")
    succeed("match", f"in.{ending}", f"msg.{ending}", "--out", f"deep/out.{ending}")
    assert pairs_in(f"deep/out.{ending}") == PAIRS


@pytest.mark.parametrize("method", sorted(info.name for info in nc.methods()))
def test_chunks_and_threads_change_nothing(folder: Path, monkeypatch: pytest.MonkeyPatch, method: str) -> None:
    monkeypatch.setattr(match_module, "CHUNK", 1)
    arguments = ("match", "subs.parquet", "messages.parquet", "--method", method, "--out", "out.csv")
    for threads in ("1", "2", "5"):
        assert succeed(*arguments, "--threads", threads)["method"] == method
        assert pairs_in("out.csv") == PAIRS


def test_the_summary_counts_everything(folder: Path) -> None:
    summary = succeed("match", "subs.parquet", "messages.parquet")
    counted = [summary[name] for name in ("subscriptions", "messages", "pairs", "rejects")]
    assert counted == [4, 3, 5, 0]
    assert summary["first_pairs"][0] == {"message": 10, "subscription": 2} and len(summary["first_pairs"]) == 5
    assert summary["method"] == "auto" and summary["chosen"] in {info.name for info in nc.methods()} - {"auto"}
    assert summary["work"]["matches"] == 5 and summary["build_seconds"] > 0
    assert summary["bytes_per_subscription"] > 0 and summary["us_per_message"] > 0


def test_people_see_the_first_pairs_and_the_figures(folder: Path) -> None:
    done = run("match", "subs.parquet", "messages.parquet")
    assert done.exit_code == 0
    for words in ("first of 5 pairs", "µs per message", "bytes per subscription", "candidates"):
        assert words in done.stdout
    assert "written to" in run("match", "subs.parquet", "messages.parquet", "--out", "o.csv").stdout


def test_no_messages_and_no_subscriptions_are_fine(folder: Path) -> None:
    write_table(SUBSCRIPTIONS.slice(0, 0), "none.parquet")
    write_table(MESSAGES.slice(0, 0), "silence.parquet")
    assert succeed("match", "none.parquet", "messages.parquet")["pairs"] == 0
    assert succeed("match", "subs.parquet", "silence.parquet", "--out", "o.parquet")["pairs"] == 0
    assert as_arrow("o.parquet").num_rows == 0


def test_a_saved_index_stands_in_for_the_subscriptions(folder: Path) -> None:
    succeed("match", "subs.parquet", "messages.parquet", "--method", "brute", "--save-index", "index")
    summary = succeed("match", "index", "messages.parquet", "--out", "out.csv")
    assert summary["method"] == "brute" and pairs_in("out.csv") == PAIRS
    assert "its method, space, options, weights and analyser are fixed" in refused(
        "match", "index", "messages.parquet", "--method", "auto"
    )


def test_coordinates_may_be_planar(folder: Path) -> None:
    write_table(
        pa.table({"id": [1], "tokens": [["a"]], "xmin": [0], "ymin": [0], "xmax": [900], "ymax": [900]}),
        "p.parquet",
    )
    write_table(pa.table({"id": [1], "tokens": [["a"]], "x": [900], "y": [0]}), "m.parquet")
    assert succeed("match", "p.parquet", "m.parquet", "--space", "0,0,1000,1000")["pairs"] == 1
    assert "column 'xmax'" in refused("match", "p.parquet", "m.parquet")
    for wrong in ("0,0,1", "a,b,c,d", "0,0,0,nan", ""):
        refused("match", "p.parquet", "m.parquet", "--space", wrong)


def test_bad_rows_stop_the_run_and_name_themselves(folder: Path) -> None:
    write_table(_with_a_bad_row(), "bad.parquet")
    line = refused("match", "subs.parquet", "bad.parquet", "--out", "out.csv")
    assert "row 4" in line and "column 'lat'" in line
    assert not Path("out.csv").exists()


def test_skipped_rows_are_noted_or_kept(folder: Path) -> None:
    write_table(_with_a_bad_row(), "bad.parquet")
    done = run("match", "subs.parquet", "bad.parquet", "--on-bad", "skip", "--out", "out.csv")
    assert done.exit_code == 0 and "1 of 4 rows of the messages left out" in done.stderr
    assert "the first is row 4, column 'lat'" in done.stderr
    wrong = SUBSCRIPTIONS.set_column(1, "expression", pa.array(["(a", "", "NOT pizza", "pizza"]))
    write_table(wrong, "wrong.parquet")
    summary = succeed("match", "wrong.parquet", "bad.parquet", "--rejects", "rejects.jsonl", "--out", "out.csv")
    assert summary["rejects"] == 2 and (30, 1) not in pairs_in("out.csv")
    kept = as_arrow("rejects.jsonl").to_pylist()
    assert [(row["table"], row["row"], row["column"]) for row in kept] == [
        ("subscriptions", 1, "expression"),
        ("messages", 4, "lat"),
    ]
    assert json.loads(kept[1]["record"])["text"] == "far out"


def test_a_table_without_a_good_row_is_a_failure(folder: Path) -> None:
    bad = _with_a_bad_row().slice(3)
    write_table(bad, "bad.parquet")
    for tables in (("subs.parquet", "bad.parquet"), ("bad.parquet", "bad.parquet")):
        done = run("match", *tables, "--on-bad", "skip", "--out", "out.csv", "--rejects", "rejects.jsonl")
        assert done.exit_code == 2 and not Path("out.csv").exists()
    line = refused("match", "subs.parquet", "bad.parquet", "--on-bad", "skip", "--out", "out.csv")
    assert "all 1 rows of the messages are bad; the first is row 1, column 'lat'" in line
    write_table(SUBSCRIPTIONS.set_column(2, "region", pa.array(["nowhere"] * 4)), "bad2.parquet")
    mostly = pa.concat_tables([MESSAGES.slice(0, 1), bad, bad.set_column(0, "id", pa.array([41]))])
    write_table(mostly, "mostly.parquet")
    done = run("match", "subs.parquet", "mostly.parquet", "--on-bad", "skip")
    assert done.exit_code == 0 and "warning: more than half: 2 of 3 rows of the messages left out" in done.stderr
    rejected = run("match", "bad2.parquet", "messages.parquet", "--rejects", "rejects.jsonl")
    assert rejected.exit_code == 2 and as_arrow("rejects.jsonl").num_rows == 4


def test_unknown_columns_are_named_and_may_be_allowed(folder: Path) -> None:
    write_table(SUBSCRIPTIONS.append_column("regoin", SUBSCRIPTIONS["region"]), "named.parquet")
    assert "do you mean 'region'?" in refused("match", "named.parquet", "messages.parquet")
    for allowed in (("--extra", "regoin"), ("--extra", "ignore"), ("--keep", "subscription.regoin")):
        assert succeed("match", "named.parquet", "messages.parquet", *allowed)["pairs"] == len(PAIRS)
    write_table(MESSAGES.append_column("tme", MESSAGES["id"]), "typo.parquet")
    assert "is it 'time'?" in refused("match", "subs.parquet", "typo.parquet")
    assert succeed("match", "subs.parquet", "typo.parquet", "--keep", "tme")["pairs"] == len(PAIRS)
    assert "looks like a messages table" in refused("match", "messages.parquet", "subs.parquet")


def test_the_time_of_messages_without_one_can_be_said(folder: Path) -> None:
    expires = pa.array(["2020-01-01T00:00:00Z"] * 4)
    write_table(SUBSCRIPTIONS.append_column("expires", expires), "old.parquet")
    assert succeed("match", "old.parquet", "messages.parquet")["pairs"] == 0
    assert succeed("match", "old.parquet", "messages.parquet", "--now", "2019-12-31")["pairs"] == len(PAIRS)
    assert "is no time" in refused("match", "old.parquet", "messages.parquet", "--now", "soon")


def test_subscriptions_that_can_never_match_are_noted(folder: Path) -> None:
    never = SUBSCRIPTIONS.set_column(1, "expression", pa.array(["a NOT a", "", "b NOT b", "pizza"]))
    write_table(never, "never.parquet")
    assert (
        "2 of the subscriptions can never match, such as a NOT a: 1, 3"
        in run("match", "never.parquet", "messages.parquet").stderr
    )


def _with_a_bad_row() -> pa.Table:
    return pa.concat_tables([MESSAGES, pa.table({"id": [40], "text": ["far out"], "lon": [0.0], "lat": [95.0]})])


def test_an_expression_is_refused_in_one_line_too(folder: Path) -> None:
    write_table(SUBSCRIPTIONS.set_column(1, "expression", pa.array(["a AND (b", "", "", ""])), "wrong.parquet")
    line = refused("match", "wrong.parquet", "messages.parquet")
    assert "row 1, column 'expression'" in line and "a AND (b" in line and "^" not in line


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("absent.parquet", "messages.parquet"), "absent.parquet does not exist"),
        (("subs.parquet", "absent.csv"), "absent.csv does not exist"),
        (("subs.parquet", "messages.parquet", "--method", "magic"), "no method 'magic'"),
        (("subs.parquet", "messages.parquet", "--option", "depth=3"), "no option 'depth'"),
        (("subs.parquet", "messages.parquet", "--option", "depth"), "takes key=value"),
        (("subs.parquet", "messages.parquet", "--option", "method=brute"), "no option of a method"),
        (("subs.parquet", "messages.parquet", "--out", "out.xlsx"), "no known ending"),
        (("subs.parquet", "messages.parquet", "--rejects", "r"), "no known ending"),
        (("messages.parquet", "subs.parquet"), "looks like a messages table"),
        (("nameless.csv", "messages.parquet"), "nameless.csv has no column 'id'; name it so, or use --make-ids"),
        (("broken.parquet", "messages.parquet"), "cannot be read"),
        (("subs.parquet", "messages.parquet", "--save-index", "full"), "holds other files"),
    ],
)
def test_bad_input_is_refused_in_one_line(folder: Path, arguments: tuple[str, ...], words: str) -> None:
    Path("nameless.csv").write_text("name,x,y\na,1,2\n")
    Path("broken.parquet").write_bytes(b"PAR1 no, not really")
    Path("full").mkdir()
    Path("full/mine.txt").write_text("keep me")
    assert words in refused("match", *arguments)
    assert Path("full/mine.txt").read_text() == "keep me"


@pytest.mark.parametrize("arguments", [("--threads", "0"), ("--on-bad", "shrug"), ("--nonsense",), ("third.csv",)])
def test_bad_usage_has_exit_code_2(folder: Path, arguments: tuple[str, ...]) -> None:
    done = run("match", "subs.parquet", "messages.parquet", *arguments)
    assert done.exit_code == 2 and done.stderr and "Traceback" not in done.stderr


def test_a_damaged_index_is_refused_by_name(folder: Path) -> None:
    succeed("match", "subs.parquet", "messages.parquet", "--save-index", "index")
    array = max(Path("index").glob("arrays-*/*.bin"), key=lambda file: file.stat().st_size)
    whole = array.read_bytes()
    array.write_bytes(bytes([whole[0] ^ 1]) + whole[1:])
    assert f"{array} does not match its checksum" in refused("match", "index", "messages.parquet")
    array.write_bytes(whole[:-1])
    assert f"{array} has" in refused("match", "index", "messages.parquet")
    array.unlink()
    assert f"{array} is missing" in refused("match", "index", "messages.parquet")
    Path("index/manifest.json").unlink()
    assert "manifest.json" in refused("match", "index", "messages.parquet")


def test_what_cannot_be_written_is_an_error(folder: Path) -> None:
    Path("file").write_text("")
    line = refused("match", "subs.parquet", "messages.parquet", "--out", "file/out.csv")
    assert "file" in line


def test_tables_and_index_may_be_in_an_object_store(bucket: str, tmp_path: Path) -> None:
    table = pa.table({"id": [1, 2], "expression": ["storm", "flood"], "region": ["world", "world"]})
    messages = pa.table({"id": [7], "text": ["a storm"], "x": [0.0], "y": [0.0]})
    write_table(table, f"{bucket}/s.parquet")
    write_table(messages, f"{bucket}/m.csv")
    for subscriptions in (f"{bucket}/s.parquet", f"{bucket}/index"):
        saving = [] if subscriptions.endswith("index") else ["--save-index", f"{bucket}/index"]
        command = ["match", subscriptions, f"{bucket}/m.csv", *saving, "--out", f"{bucket}/o.parquet"]
        done = CliRunner().invoke(app, command)
        assert done.exit_code == 0, done.output
        assert as_arrow(f"{bucket}/o.parquet").to_pylist() == [{"message": 7, "subscription": 1}]
        locate(f"{bucket}/o.parquet").remove()
    assert not Path("s3:").exists()
