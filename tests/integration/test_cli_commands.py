"""The command as a whole: version, errors, `methods` and `warmup`; once as a real process."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

import nearcast as nc
from nearcast.arrays.jit import JIT_DISABLED
from nearcast.cli import match_actions as match_module
from nearcast.cli.console import one_line
from nearcast.cli.main import app
from nearcast.engine.catalogue import methods_markdown
from nearcast.matching import checks
from nearcast.matching.checks import Check
from nearcast.matching.method import REGISTRY, method_names
from nearcast.model import MATCH, Kind

RUN = "from nearcast.cli.main import main; main()"


def process(*arguments: str, **options: Any) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", RUN, *arguments], capture_output=True, text=True, timeout=120, **options
    )


def test_the_version_is_the_packages() -> None:
    assert CliRunner().invoke(app, ["--version"]).stdout == f"nearcast {nc.__version__}\n"


def test_a_real_process_says_one_line_and_ends_with_2(tmp_path: Path) -> None:
    done = process("match", "absent.parquet", "absent.parquet", cwd=tmp_path)
    assert (done.returncode, done.stdout, done.stderr) == (2, "", "error: absent.parquet does not exist\n")


def test_a_real_process_matches(tmp_path: Path) -> None:
    (tmp_path / "s.csv").write_text("id,expression,region\n1,rain,world\n")
    (tmp_path / "m.csv").write_text("id,text,x,y\n5,Rain again,1,2\n6,Sun,1,2\n")
    done = process("match", "s.csv", "m.csv", "--out", "out.csv", "--json", cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    assert json.loads(done.stdout)["pairs"] == 1
    assert (tmp_path / "out.csv").read_text().splitlines() == ['"message","subscription"', "5,1"]


def test_help_loads_no_compiler() -> None:
    program = (
        "import sys\nfrom typer.testing import CliRunner\nfrom nearcast.cli.main import app\n"
        "assert CliRunner().invoke(app, ['--help']).exit_code == 0\n"
        "assert not {'numba', 'pyarrow', 'matplotlib', 'shapely'} & set(sys.modules), sorted(sys.modules)\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_a_reader_that_leaves_early_is_no_error() -> None:
    first = subprocess.Popen(
        [sys.executable, "-c", RUN, "methods", "--json"], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    assert first.stdout is not None and first.stderr is not None
    first.stdout.close()
    assert first.stderr.read() == b""
    first.stderr.close()
    assert first.wait() == 1


def test_an_interrupt_prints_one_word(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(match_module, "_answer", interrupted)
    done = CliRunner().invoke(app, ["match", "a.csv", "b.csv"])
    assert (done.exit_code, done.stderr) == (130, "interrupted\n")


def test_errors_of_many_lines_become_one() -> None:
    assert one_line("no operand at character 3\n  a AND\n    ^") == "no operand at character 3: a AND"


def test_methods_lists_every_method() -> None:
    listed = json.loads(CliRunner().invoke(app, ["methods", "--json"]).stdout)
    assert {info["name"] for info in listed} == set(method_names())
    assert all(info["idea"] and info["kinds"] for info in listed)
    shown = CliRunner().invoke(app, ["methods"]).stdout
    assert all(name in shown for name in method_names())


def test_methods_writes_its_page_only_when_it_changed(tmp_path: Path) -> None:
    page = tmp_path / "docs" / "methods.md"
    arguments = ["methods", "--markdown", str(page), "--json"]
    assert json.loads(CliRunner().invoke(app, arguments).stdout)["changed"]
    assert page.read_text() == methods_markdown()
    os.utime(page, (1, 1))
    assert not json.loads(CliRunner().invoke(app, arguments).stdout)["changed"]
    assert page.stat().st_mtime == 1
    page.write_text("stale")
    assert json.loads(CliRunner().invoke(app, arguments).stdout)["changed"]
    assert page.read_text() == methods_markdown()


def passing(_: str) -> None: ...


def failing(method: str) -> None:
    raise AssertionError(f"{method} lost [a] pair")


def of_kind_match(some: dict[str, Check]) -> Callable[[Kind], dict[str, Check]]:
    return lambda kind: some if kind is MATCH else {}


def test_checks_pass_or_fail_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checks, "checks_for", of_kind_match({"check_all_is_well": passing}))
    done = CliRunner().invoke(app, ["methods", "--check", "brute"])
    assert done.exit_code == 0 and "all is well" in done.stdout and "passed" in done.stdout
    monkeypatch.setattr(
        checks, "checks_for", of_kind_match({"check_all_is_well": passing, "check_nothing_is_lost": failing})
    )
    done = CliRunner().invoke(app, ["methods", "--check", "brute"])
    assert done.exit_code == 1 and "nothing is lost" in done.stdout and "FAILED" in done.stdout
    done = CliRunner().invoke(app, ["methods", "--check", "brute", "--json"])
    assert done.exit_code == 1
    assert [outcome["passed"] for outcome in json.loads(done.stdout)] == [True, False]
    assert "brute lost [a] pair" in json.loads(done.stdout)[1]["reason"]


def test_a_known_gap_is_excused_until_it_passes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checks, "checks_for", of_kind_match({"check_nothing_is_lost": failing}))
    monkeypatch.setattr(REGISTRY["match", "brute"], "known_gaps", {"check_nothing_is_lost": "not yet"})
    done = CliRunner().invoke(app, ["methods", "--check", "brute"])
    assert done.exit_code == 0 and "known gap: not yet" in done.stdout
    monkeypatch.setattr(checks, "checks_for", of_kind_match({"check_nothing_is_lost": passing}))
    done = CliRunner().invoke(app, ["methods", "--check", "brute", "--json"])
    assert done.exit_code == 1 and "passes now" in done.stdout


@pytest.mark.parametrize("arguments", [["methods", "--check", "magic"], ["warmup", "--methods", "magic"]])
def test_an_unknown_method_is_refused_in_one_line(arguments: list[str]) -> None:
    done = CliRunner().invoke(app, arguments)
    assert done.exit_code == 2 and done.stderr.startswith("error: no method 'magic'; there are ")
    assert len(done.stderr.splitlines()) == 1


USE_EVERYTHING = """
import importlib, pkgutil, sys, tempfile
from pathlib import Path
import nearcast as nc
from nearcast.arrays.jit.dispatcher import Kernel
from nearcast.cli.warmup import warm_kernels
from nearcast.engine.warm_up import MANY, parts_of, warm_part
from nearcast.matching.checks import checks_for, failure_of
from nearcast.matching.method import REGISTRY
from nearcast.model import KINDS
from nearcast.tables import as_arrow, write_table

for part in ("arrays", "geo", "text", "tables", "matching", "structures", "indexes", "storage", "engine"):
    package = importlib.import_module(f"nearcast.{part}")
    for module in pkgutil.walk_packages(package.__path__, f"nearcast.{part}."):
        importlib.import_module(module.name)
modules = [(name, module) for name, module in sorted(sys.modules.items()) if name.startswith("nearcast.")]
kernels = {f"{name}.{key}": kernel for name, module in modules for key, kernel in vars(module).items()
           if isinstance(kernel, Kernel)}
assert len(kernels) > 40, len(kernels)

def compiled():
    return {name: set(map(str, kernel.stats.cache_misses)) for name, kernel in kernels.items()}

warm_kernels(None, True)  # in other processes, from calls that were interpreted here
before = compiled()
for part in parts_of():
    warm_part(part, MANY)
for (kind, method), _ in sorted(REGISTRY.items()):
    for check in checks_for(KINDS[kind]).values():
        failure_of(check, [method])  # without options: their kernels are compiled when somebody sets them
regions = ["circle(0, 0, 5km)", "world"]
subscriptions = as_arrow({"id": [1, 2], "expression": ["a OR b NOT c", ""], "region": regions})
messages = as_arrow({"id": [1, 2], "text": ["A plain text", "Ein süßer"], "x": [0.0, 1.0], "y": [0.0, 1.0]})
tokens = as_arrow({"id": [3], "tokens": [["a", "z"]], "lon": [0.5], "lat": [0.5]})
sides = {"xmin": [0, 0], "ymin": [0, 0], "xmax": [1, 1], "ymax": [1, 1]}
boxes = as_arrow({"id": [5, 6], "tokens": [["a"], []], **sides})
folder = Path(tempfile.mkdtemp())
for ending in ("parquet", "csv", "jsonl"):
    write_table(subscriptions, folder / f"s.{ending}")
    write_table(messages, folder / f"m.{ending}")
    index = nc.build_index(folder / f"s.{ending}")
    index.insert(boxes)
    index.match(folder / f"m.{ending}")
    index.match(tokens)
late = {name: new for name, all_of_it in compiled().items() if (new := all_of_it - before[name])}
assert not late, f"compiled after the warm-up: {late}"
"""


def _run_everything(environment: dict[str, str]) -> None:
    command = [sys.executable, "-W", "error", "-c", USE_EVERYTHING]
    done = subprocess.run(command, capture_output=True, text=True, env=os.environ | environment)
    assert done.returncode == 0, done.stderr


@pytest.mark.skipif(JIT_DISABLED, reason="nothing is compiled")
def test_after_warmup_nothing_is_left_to_compile() -> None:
    _run_everything({})


@pytest.mark.slow
@pytest.mark.skipif(JIT_DISABLED, reason="nothing is compiled")
def test_after_warmup_with_an_empty_cache_nothing_is_left_to_compile(tmp_path: Path) -> None:
    _run_everything({"NUMBA_CACHE_DIR": str(tmp_path)})


def test_python_m_nearcast_is_the_command() -> None:
    done = subprocess.run([sys.executable, "-m", "nearcast", "--version"], capture_output=True, text=True)
    assert done.stdout == f"nearcast {nc.__version__}\n" and done.returncode == 0, done.stderr
