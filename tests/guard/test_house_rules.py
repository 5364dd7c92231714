"""Rules that a reader would otherwise have to remember: sizes, headers, names, what may import Numba."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import nearcast
from nearcast.engine.catalogue import HEADER_FIELDS, header_of, methods, methods_markdown
from nearcast.matching.method import REGISTRY

ROOT = Path(nearcast.__file__).parent
REPOSITORY = ROOT.parents[1]
FILES = sorted(ROOT.rglob("*.py"))
MAX_FILE_LINES, MAX_KERNEL_LINES, MAX_FUNCTION_LINES, MAX_ARGUMENTS = 600, 50, 60, 7
BANNED_NAMES = {"utils", "helpers", "helper", "manager", "misc", "common", "new", "v2", "final"}


def functions() -> Iterator[tuple[Path, ast.FunctionDef]]:
    for file in FILES:
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, ast.FunctionDef):
                yield file, node


def is_kernel(function: ast.FunctionDef) -> bool:
    return any(isinstance(d, ast.Name) and d.id in ("kernel", "inline_kernel") for d in function.decorator_list)


def test_files_stay_small_and_named_for_what_they_hold() -> None:
    for file in FILES:
        assert len(file.read_text().splitlines()) <= MAX_FILE_LINES, file
        assert file.stem not in BANNED_NAMES, file


def test_kernels_and_functions_stay_small() -> None:
    kernels = 0
    for file, function in functions():
        length = (function.end_lineno or 0) - function.lineno + 1
        limit = MAX_KERNEL_LINES if is_kernel(function) else MAX_FUNCTION_LINES
        assert length <= limit, f"{file.name}:{function.name} has {length} lines"
        if is_kernel(function):
            kernels += 1
            assert len(function.args.args) <= MAX_ARGUMENTS, f"{file.name}:{function.name}"
    assert kernels > 20, "the search for kernels found too few: has the decorator another name?"


def test_only_jit_names_numba() -> None:
    for file in FILES:
        names = {node.names[0].name for node in ast.walk(ast.parse(file.read_text())) if isinstance(node, ast.Import)}
        assert "numba" not in names or file.name == "jit.py", file


@pytest.mark.parametrize("name", sorted(REGISTRY))
def test_every_method_has_a_whole_header(name: str) -> None:
    header = header_of(REGISTRY[name])
    assert set(header) == set(HEADER_FIELDS) and all(header.values())
    assert (
        REGISTRY[name].paper in ("baseline", "nearcast")
        or (REPOSITORY / f"docs/measurements/papers/{REGISTRY[name].paper}.md").exists()
    )


def test_the_methods_page_is_current() -> None:
    assert (REPOSITORY / "docs/reference/methods.md").read_text() == methods_markdown(), "run `make docs`"


def test_public_names_exist_and_are_all() -> None:
    assert nearcast.__all__ == sorted(nearcast.__all__)
    for name in nearcast.__all__:
        assert getattr(nearcast, name) is not None
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = nearcast.nothing
    assert {info.name for info in methods()} == set(REGISTRY)


def test_importing_is_quick_and_compiles_nothing() -> None:
    program = (
        "import time; t = time.perf_counter(); import nearcast; quick = time.perf_counter() - t\n"
        "import nearcast.engine.engine, nearcast.engine.index\n"
        "from numba.core.dispatcher import Dispatcher; import gc\n"
        "compiled = [d for d in gc.get_objects() if isinstance(d, Dispatcher) and d.overloads]\n"
        "assert quick < 1, quick\n"
        "assert not [d for d in compiled if d.py_func.__module__.startswith('nearcast')], compiled\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_the_core_runs_without_the_extras() -> None:
    program = (
        "import sys\n"
        "class Absent:\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        "        if name.split('.')[0] in 'pandas polars matplotlib pyspark Stemmer pytest rich typer'.split():\n"
        "            raise ModuleNotFoundError(name)\n"
        "sys.meta_path.insert(0, Absent())\n"
        "import nearcast as nc\n"
        "index = nc.build_index({'id': [1], 'expression': ['a OR b'], 'region': ['circle(0, 0, 5km)']})\n"
        "assert index.match({'id': [9], 'text': ['B!'], 'x': [0.01], 'y': [0.0]}).num_rows == 1\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_files_speak_of_nearcast_alone() -> None:
    for file in [*FILES, *REPOSITORY.glob("*.md"), *(REPOSITORY / "docs").rglob("*.md")]:
        text = file.read_text()
        assert "/" + "work/" not in text and "/" + "tmp/" not in text, file
