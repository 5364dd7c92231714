"""Steps that are not done again: beside its output a finished step leaves what it was made from, and what it told.

    OUT                  a file or a folder
    .OUT.step.json       format, inputs (path, bytes, time of each file), options, output, result

A step is up to date when its record names the same inputs and options, and its output is as the step left it.
"""

from __future__ import annotations

import glob
import json
import os
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from nearcast import __version__
from nearcast.arrays.bundle import write_whole
from nearcast.errors import InvalidInput

FORMAT = ["nearcast-step", 1]
_MAGIC = "*?["


class Step(NamedTuple):
    """What a step reads, writes, and is told."""

    name: str
    inputs: tuple[str, ...]  # files, folders, globs
    outputs: tuple[str, ...]  # the record lies beside the first
    options: Mapping[str, Any]  # all else that decides the output, as JSON holds it


class Done(NamedTuple):
    result: dict[str, Any]
    was_done: bool  # before: nothing was run


def run_step(step: Step, work: Callable[[], dict[str, Any]], force: bool = False) -> Done:
    """The result of `work`, or, where inputs, options and output are as they were, what it told the last time."""
    require_inputs(step.inputs)
    record = record_of(step.outputs[0])
    made_from = _made_from(step)
    if not force:
        earlier = _read(record)
        if earlier is not None and earlier["from"] == made_from and earlier["output"] == _listing(step.outputs):
            return Done(earlier["result"], True)
    record.unlink(missing_ok=True)  # a step that fails must not look done
    result = json.loads(json.dumps(work(), default=str))  # as it will be read back
    told = {"format": FORMAT, "from": made_from, "output": _listing(step.outputs), "result": result}
    write_whole(record, json.dumps(told, indent=1).encode())
    return Done(result, False)


def record_of(output: str | os.PathLike[str]) -> Path:
    """Hidden, so that neither Spark nor Arrow takes it for a table."""
    path = Path(output)
    return path.parent / f".{path.name}.step.json"


def require_inputs(inputs: Iterable[str]) -> None:
    """Said before Spark starts, which takes seconds."""
    for each in inputs:
        if not files_of(each) and not Path(each).is_dir():
            raise InvalidInput(f"{each}: no such file" + (" matches" if _is_glob(each) else " or folder"))


def files_of(path: str) -> list[str]:
    """The files that a path, a folder or a glob stands for, sorted; hidden ones are none."""
    found = sorted(glob.glob(path, recursive=True)) if _is_glob(path) and not os.path.exists(path) else [path]
    files: list[str] = []
    for each in found:
        if os.path.isdir(each):
            files += sorted(str(file) for file in Path(each).rglob("*") if file.is_file() and _is_seen(file, each))
        elif os.path.isfile(each):
            files.append(each)
    return files


def _is_glob(path: str) -> bool:
    return any(letter in path for letter in _MAGIC)


def _is_seen(file: Path, below: str) -> bool:
    return not any(part.startswith((".", "_")) for part in file.relative_to(below).parts)


def _made_from(step: Step) -> dict[str, Any]:
    made_from = {"step": step.name, "version": __version__, "inputs": _listing(step.inputs), "options": step.options}
    whole: dict[str, Any] = json.loads(json.dumps(made_from, default=str))
    return whole


def _listing(paths: Iterable[str]) -> list[list[Any]]:
    """Path, bytes and time of change of each file: enough to see that something was written there since."""
    listed: list[list[Any]] = []
    for path in paths:
        for file in files_of(path):
            about = os.stat(file)
            listed.append([os.path.abspath(file), about.st_size, about.st_mtime_ns])
    return listed


def _read(record: Path) -> dict[str, Any] | None:
    try:
        told = json.loads(record.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    return told if isinstance(told, dict) and told.get("format") == FORMAT else None
