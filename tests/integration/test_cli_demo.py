"""`nearcast demo --library` at a reduced size: it runs, its answer is checked, and its report has everything."""

from __future__ import annotations

import base64
import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from typer.testing import CliRunner

import nearcast as nc
from nearcast import demo
from nearcast.arrays.jit import JIT_DISABLED
from nearcast.cli.main import app
from nearcast.demo import library
from nearcast.demo.demo_subscriptions import DEMO_SUBSCRIPTIONS, LICENCE, sample_messages, subscriptions_table
from nearcast.tables import as_arrow

SIZE = "20" if JIT_DISABLED else "500"
N_MESSAGES = 300 if JIT_DISABLED else 7493  # plain Python takes a message in 10 ms


@pytest.fixture(scope="module", autouse=True)
def _shorter_year() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(library, "sample_messages", year)
        yield


def year() -> pa.Table:
    """All messages or, in plain Python, every 24th, so that months and places stay mixed."""
    rows = np.arange(N_MESSAGES) * (7493 // N_MESSAGES)
    return sample_messages().take(pa.array(rows))


@pytest.fixture(scope="module")
def out(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("demo") / "output"


@pytest.fixture(scope="module")
def figures(out: Path) -> Any:
    done = CliRunner().invoke(app, ["demo", "--library", "--out", str(out), "--subscriptions", SIZE, "--json"])
    assert done.exit_code == 0, done.output
    return json.loads(done.stdout)


def test_it_reports_its_figures(figures: Any, out: Path) -> None:
    assert figures["subscriptions"] == int(SIZE) + len(DEMO_SUBSCRIPTIONS)
    assert figures["messages"] == N_MESSAGES and figures["deliveries"] > N_MESSAGES // 10
    assert figures["checked_messages"] >= min(N_MESSAGES, 500) and figures["checked_pairs"] > 0
    assert figures["licence"] == LICENCE
    assert sorted(figures["files"]) == sorted(str(file) for file in out.iterdir())


def test_its_tables_are_what_the_library_gives(figures: Any, out: Path) -> None:
    subscriptions, matches = as_arrow(out / "subscriptions.parquet"), as_arrow(out / "matches.parquet")
    assert subscriptions.num_rows == figures["subscriptions"] and matches.num_rows == figures["deliveries"]
    assert nc.build_index(subscriptions, "keyword-first", extra=["name"]).match(year()).equals(matches)
    if not JIT_DISABLED:
        delivered = set(matches["subscription"].to_pylist())
        assert {each.id for each in DEMO_SUBSCRIPTIONS} <= delivered, "a subscription got nothing"


def test_its_report_has_the_pictures_and_the_licence(figures: Any, out: Path) -> None:
    page = (out / "report.html").read_text()
    pictures = re.findall(r'src="data:image/png;base64,([^"]+)"', page)
    assert len(pictures) == 3
    assert all(base64.b64decode(picture).startswith(b"\x89PNG") for picture in pictures)
    assert LICENCE in page and "http" not in page, "the report stands alone"
    assert all(each.name in page for each in DEMO_SUBSCRIPTIONS)


def test_people_see_deliveries_figures_and_the_licence(tmp_path: Path) -> None:
    done = CliRunner().invoke(app, ["demo", "--library", "--out", str(tmp_path), "--subscriptions", "10"])
    assert done.exit_code == 0, done.output
    shown = " ".join(done.stdout.split())
    for words in ("Some deliveries", "messages per second", "µs per message", "same as brute", LICENCE):
        assert words in shown


def test_without_matplotlib_the_report_has_no_pictures(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "nearcast.demo.pictures", raising=False)
    for name in [name for name in sys.modules if name.split(".")[0] == "matplotlib"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    done = CliRunner().invoke(app, ["demo", "--library", "--out", str(tmp_path), "--subscriptions", "10"])
    assert done.exit_code == 0 and "no pictures" in done.stderr
    assert "<img" not in (tmp_path / "report.html").read_text()


def test_a_wrong_answer_would_be_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    right = library._match

    def wrong(*given: Any) -> Any:
        matches, measured = right(*given)
        return matches.slice(matches.num_rows // 2), measured

    monkeypatch.setattr(library, "_match", wrong)
    done = CliRunner().invoke(app, ["demo", "--library", "--out", str(tmp_path), "--subscriptions", "10"])
    assert done.exit_code == 2 and "differ from brute force" in done.stderr


def test_the_same_subscriptions_are_drawn_each_time() -> None:
    messages = year()
    assert subscriptions_table(messages, 50).equals(subscriptions_table(messages, 50))


def test_the_sample_is_small_and_carries_its_licence() -> None:
    folder = Path(demo.__file__).parent / "sample"
    assert sum(file.stat().st_size for file in folder.iterdir()) < 400_000
    assert LICENCE in (folder / "LICENCE.md").read_text()
    assert sample_messages().column_names == ["id", "text", "lon", "lat", "time"]
    assert sample_messages().num_rows == 7493
