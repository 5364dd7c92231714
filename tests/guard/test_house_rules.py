"""Rules that a reader would otherwise have to remember: sizes, headers, names, what may import Numba."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import nearcast
from nearcast.engine.catalogue import HEADER_FIELDS, MethodInfo, header_of, methods, methods_markdown
from nearcast.matching.method import find_method

ROOT = Path(nearcast.__file__).parent
REPOSITORY = ROOT.parents[1]
FILES = sorted(ROOT.rglob("*.py"))
MAX_FILE_LINES, MAX_KERNEL_LINES, MAX_FUNCTION_LINES, MAX_ARGUMENTS = 600, 50, 60, 7
MAX_PACKAGE_FILES, MAX_CONTRACT_LINES, MAX_ENGINE_MODULES = 15, 4000, 135
KERNEL_DECORATORS = {"kernel", "inline_kernel", "lean_kernel"}
BANNED_NAMES = {"utils", "helpers", "helper", "manager", "misc", "common", "new", "v2", "final"}


def functions() -> Iterator[tuple[Path, ast.FunctionDef]]:
    for file in FILES:
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, ast.FunctionDef):
                yield file, node


def is_kernel(function: ast.FunctionDef) -> bool:
    decorators = (d.func if isinstance(d, ast.Call) else d for d in function.decorator_list)
    return any(isinstance(d, ast.Name) and d.id in KERNEL_DECORATORS for d in decorators)


def real_arguments(function: ast.FunctionDef) -> int:
    """The number of arguments, where a tuple that the body unpacks counts as its members."""
    names = {argument.arg for argument in function.args.args}
    members = dict.fromkeys(names, 1)
    for node in ast.walk(function):
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Tuple):
            source = node.value.value if isinstance(node.value, ast.Subscript) else node.value
            is_slice = not isinstance(node.value, ast.Subscript) or isinstance(node.value.slice, ast.Slice)
            if isinstance(source, ast.Name) and source.id in names and is_slice:
                members[source.id] = max(members[source.id], len(node.targets[0].elts))
    return sum(members.values())


def test_real_arguments_counts_the_members_of_unpacked_tuples() -> None:
    source = "def f(a, both, box):\n    x, y = both\n    low, high = box[:2]\n    first = box[0]\n"
    function = ast.parse(source).body[0]
    assert isinstance(function, ast.FunctionDef) and real_arguments(function) == 5


def test_files_stay_small_and_named_for_what_they_hold() -> None:
    for file in FILES:
        assert len(file.read_text().splitlines()) <= MAX_FILE_LINES, file
        assert file.stem not in BANNED_NAMES, file


def test_packages_stay_small() -> None:
    for folder in {file.parent for file in FILES}:
        assert len(list(folder.glob("*.py"))) <= MAX_PACKAGE_FILES, folder
    contract = [file for file in FILES if file.is_relative_to(ROOT / "matching")]
    assert sum(len(file.read_text().splitlines()) for file in contract) <= MAX_CONTRACT_LINES


def test_kernels_and_functions_stay_small() -> None:
    kernels = 0
    for file, function in functions():
        length = (function.end_lineno or 0) - function.lineno + 1
        limit = MAX_KERNEL_LINES if is_kernel(function) else MAX_FUNCTION_LINES
        assert length <= limit, f"{file.name}:{function.name} has {length} lines"
        if is_kernel(function):
            kernels += 1
            assert real_arguments(function) <= MAX_ARGUMENTS, f"{file.name}:{function.name}"
    assert kernels > 200, "the search for kernels found too few: has the decorator another name?"


def test_everything_but_kernels_has_types() -> None:
    """Mypy does not ask for annotations, since kernels have none."""
    for file, function in functions():
        if is_kernel(function) or is_kernel_part(function):
            continue
        arguments = [*function.args.posonlyargs, *function.args.args, *function.args.kwonlyargs]
        untyped = [argument.arg for argument in arguments if argument.annotation is None]
        assert set(untyped) <= {"self", "cls"}, f"{file.name}:{function.name} has no types for {untyped}"
        assert function.returns is not None, f"{file.name}:{function.name} has no return type"


def is_kernel_part(function: ast.FunctionDef) -> bool:
    """Code of Numba intrinsics, which Numba types itself."""
    names = {argument.arg for argument in function.args.args}
    return bool(names & {"typingctx", "context", "builder"}) or is_intrinsic(function)


def is_intrinsic(function: ast.FunctionDef) -> bool:
    return any(isinstance(d, ast.Name) and d.id == "intrinsic" for d in function.decorator_list)


def test_no_type_check_is_switched_off_in_the_code() -> None:
    for file in FILES:
        assert "type: " + "ignore" not in file.read_text(), file


def test_the_engine_imports_only_what_it_uses() -> None:
    program = (
        "import sys, nearcast as nc\n"
        "engine = nc.Engine()\n"
        "engine.subscribe('a OR b', near=(0, 0), km=2)\n"
        "assert engine.publish('a', at=(0, 0))\n"
        "print(sum(name.split('.')[0] == 'nearcast' for name in sys.modules))\n"
    )
    environment = os.environ | {"NUMBA_DISABLE_JIT": "1"}
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, env=environment)
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) < MAX_ENGINE_MODULES


def test_only_jit_names_numba() -> None:
    for file in FILES:
        names = {node.names[0].name for node in ast.walk(ast.parse(file.read_text())) if isinstance(node, ast.Import)}
        assert "numba" not in names or file.parent.name == "jit", file


@pytest.mark.parametrize("info", methods(), ids=lambda info: info.name)
def test_every_method_has_a_whole_header(info: MethodInfo) -> None:
    method = find_method("match", info.name)
    header = header_of(method)
    assert set(header) == set(HEADER_FIELDS) and all(header.values())
    page = REPOSITORY / f"docs/measurements/papers/{method.paper}.md"
    assert method.paper in ("baseline", "nearcast") or page.exists()


def test_the_methods_page_is_current() -> None:
    assert (REPOSITORY / "docs/reference/methods.md").read_text() == methods_markdown(), "run `make docs`"


def test_public_names_exist_and_are_all() -> None:
    assert nearcast.__all__ == sorted(nearcast.__all__)
    for name in nearcast.__all__:
        assert getattr(nearcast, name) is not None
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = nearcast.nothing


def test_importing_is_quick_and_compiles_nothing() -> None:
    program = (
        "import time; t = time.process_time(); import nearcast; quick = time.process_time() - t\n"
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
