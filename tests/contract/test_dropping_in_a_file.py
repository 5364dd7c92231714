"""One new file in indexes/ is all it takes; and a subtly wrong one is caught by name."""

from __future__ import annotations

import importlib
import json
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from typer.testing import CliRunner

import nearcast
import nearcast.indexes
from nearcast.bench.runs.case import Settings, method_names
from nearcast.bench.runs.run_case import run_case
from nearcast.bench.workloads.workload import Workload
from nearcast.cli.main import app
from nearcast.engine.catalogue import methods, methods_markdown
from nearcast.matching.checks import checks_for, failure_of, run_checks
from nearcast.matching.method import REGISTRY
from nearcast.model import MATCH

PLAIN_SCAN = (Path(__file__).parent / "dropped_in" / "plain_scan.py").read_text()

WRONG: dict[str, tuple[str, str, str]] = {
    "once-per-box": (
        "return [row for row in sorted(self._rows) if self.holds(row, terms, place)]",
        "return list({tuple(self.store.arrays.boxes[row]): row "
        "for row in self._rows if self.holds(row, terms, place)}.values())",
        "check_equal_boxes_are_different_subscriptions",
    ),
    "open-borders": (
        "return box[0] <= place[2] and box[2] >= place[0] and box[1] <= place[3] and box[3] >= place[1]",
        "return box[0] <= place[2] and box[2] > place[0] and box[1] <= place[3] and box[3] > place[1]",
        "check_points_on_the_border_are_inside",
    ),
    "four-tokens": (
        "return all(term in terms for term in own)",
        "return all(term in terms for term in own[:4])",
        "check_every_token_must_occur",
    ),
    "stale-rows": (
        "self._rows -= set(rows.tolist())",
        "self._rows -= set(rows[1:].tolist())",
        "check_remove_is_complete_and_forgiving",
    ),
    "no-pruning": (
        "effort_ceiling = 1.0",
        "effort_ceiling = 0.5",
        "check_effort_stays_below_the_ceiling",
    ),
}


@pytest.fixture
def drop_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[str, str], None]]:
    """Put a file beside the methods: tmp_path becomes part of the folder nearcast.indexes, until the test ends."""
    monkeypatch.setattr(nearcast.indexes, "__path__", [*nearcast.indexes.__path__, str(tmp_path)])
    before, loaded = dict(REGISTRY), set(sys.modules)

    def drop(name: str, source: str) -> None:
        (tmp_path / f"{name.replace('-', '_')}.py").write_text(source.replace("plain-scan", name))
        importlib.invalidate_caches()
        nearcast.indexes.load(name)

    yield drop
    REGISTRY.clear()
    REGISTRY.update(before)
    for module in set(sys.modules) - loaded:
        if module.startswith("nearcast.indexes."):
            del sys.modules[module]


def test_a_correct_file_joins_registry_checks_docs_and_api(drop_in: Callable[[str, str], None]) -> None:
    drop_in("plain-scan", PLAIN_SCAN)
    assert ("match", "plain-scan") in REGISTRY
    assert "plain-scan" in [info.name for info in methods()]
    assert "| `plain-scan` | baseline | match |" in methods_markdown()
    assert [outcome for outcome in run_checks("plain-scan") if outcome.failure] == []
    index = nearcast.build_index({"id": [1], "tokens": [["a"]], "x": [0.0], "y": [0.0]}, method="plain-scan")
    assert index.match({"id": [5], "tokens": [["a", "b"]], "x": [0.0], "y": [0.0]}).to_pylist() == [
        {"message": 5, "subscription": 1}
    ]


def test_a_correct_file_joins_the_command_line_and_the_benchmark(drop_in: Callable[[str, str], None]) -> None:
    drop_in("plain-scan", PLAIN_SCAN)
    listed = CliRunner().invoke(app, ["methods", "--json"])
    assert "plain-scan" in [info["name"] for info in json.loads(listed.stdout)]
    workload = Workload(subscriptions=60, messages=5, vocabulary=100, topics=3, words_per_topic=10, long=(20, 30))
    case = run_case(method_names(), workload, Settings(rounds=1, singles=2, updates=10))
    assert "plain-scan" in [build["method"] for build in case["builds"]], "every method is benchmarked by default"


@pytest.mark.parametrize("name", WRONG)
def test_a_subtly_wrong_file_fails_a_named_check(name: str, drop_in: Callable[[str, str], None]) -> None:
    right, wrong, check = WRONG[name]
    assert right in PLAIN_SCAN
    drop_in(name, PLAIN_SCAN.replace(right, wrong))
    failure = failure_of(checks_for(MATCH)[check], [name])
    assert failure is not None and failure.startswith("AssertionError"), f"{check} did not notice {name}"


def test_a_file_in_the_real_folder_is_found_by_a_new_process(tmp_path: Path) -> None:
    package = Path(nearcast.__file__).parent
    shutil.copytree(package, tmp_path / "nearcast", ignore=shutil.ignore_patterns("__pycache__"))
    (tmp_path / "nearcast" / "indexes" / "plain_scan.py").write_text(PLAIN_SCAN)
    program = "import json, nearcast; print(json.dumps([info.name for info in nearcast.methods()]))"
    done = subprocess.run(
        [sys.executable, "-c", program],
        cwd=tmp_path,
        env={"PYTHONPATH": str(tmp_path)},
        capture_output=True,
        text=True,
    )
    assert "plain-scan" in json.loads(done.stdout), done.stderr


def test_a_taken_name_is_refused(drop_in: Callable[[str, str], None]) -> None:
    with pytest.raises(ValueError, match="'brute' is taken"):
        drop_in("brute-again", PLAIN_SCAN.replace("plain-scan", "brute"))
