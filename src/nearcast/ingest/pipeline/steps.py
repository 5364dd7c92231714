"""Steps that are skipped when nothing changed: a finished step records its inputs and its result beside its output.

    OUT                  a file or a folder
    .OUT.step.json       format, inputs (path, bytes, time of each file), options, output, result

A step is up to date if its record names the same inputs and options, and its output is unchanged since.
"""

from __future__ import annotations

import glob
import json
import os
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from nearcast import __version__
from nearcast.errors import InvalidInput
from nearcast.ingest.sources import visible_files
from nearcast.storage.location import Location, is_url, locate

FORMAT = ["nearcast-step", 1]
_MAGIC = "*?["


class Step(NamedTuple):
    """The inputs, outputs and options of a step."""

    name: str
    inputs: tuple[str, ...]  # files, folders, globs
    outputs: tuple[str, ...]  # the record is beside the first
    options: Mapping[str, Any]  # everything else that determines the output, as JSON values


class Done(NamedTuple):
    """The result of a step."""

    result: dict[str, Any]
    was_done: bool  # it was up to date: nothing was run


def run_step(step: Step, work: Callable[[], dict[str, Any]], force: bool = False) -> Done:
    """The result of `work`, or its last result if inputs, options and output are unchanged."""
    require_inputs(step.inputs)
    record = record_of(step.outputs[0])
    made_from = _made_from(step)
    if not force:
        earlier = _read(record)
        if earlier is not None and earlier["from"] == made_from and earlier["output"] == _listing(step.outputs):
            return Done(earlier["result"], True)
    record.remove()  # a step that fails must not look done
    result = _as_json(work())  # the same values as when it is read back
    content = {"format": FORMAT, "from": made_from, "output": _listing(step.outputs), "result": result}
    record.write(json.dumps(content, indent=1).encode())
    return Done(result, False)


def record_of(output: str | os.PathLike[str]) -> Location:
    """The record of an output. It is hidden, so that neither Spark nor Arrow takes it for data."""
    place = locate(output)
    return place.sibling(f".{place.name}.step.json")


def require_inputs(inputs: Iterable[str]) -> None:
    """Refuse missing inputs before Spark starts, which takes seconds."""
    for each in inputs:
        place = locate(each)
        if _entries(each) or (place.is_local and Path(place.path).is_dir()):
            continue
        named, is_glob = (each, _is_glob(each)) if place.is_local else (place.shown, False)
        raise InvalidInput(f"{named}: no such file" + (" matches" if is_glob else " or folder"))


def files_of(path: str) -> list[str]:
    """The local files of a path, a folder or a pattern, sorted, without hidden files."""
    path = locate(path).path if is_url(path) else path
    found = sorted(glob.glob(path, recursive=True)) if _is_glob(path) and not os.path.exists(path) else [path]
    files: list[str] = []
    for each in found:
        if os.path.isdir(each):
            files += sorted(map(str, visible_files(Path(each))))
        elif os.path.isfile(each):
            files.append(each)
    return files


def _is_glob(path: str) -> bool:
    return any(letter in path for letter in _MAGIC)


def _made_from(step: Step) -> dict[str, Any]:
    inputs = _listing(step.inputs)
    return _as_json({"step": step.name, "version": __version__, "inputs": inputs, "options": step.options})


def _as_json(values: dict[str, Any]) -> dict[str, Any]:
    plain: dict[str, Any] = json.loads(json.dumps(values, default=str))
    return plain


def _listing(paths: Iterable[str]) -> list[list[Any]]:
    """[path, bytes, time of change] of each file: enough to see that a file was written since."""
    return [entry for path in paths for entry in _entries(path)]


def _entries(path: str) -> list[list[Any]]:
    place = locate(path)
    if place.is_local:
        return [[os.path.abspath(file), (about := os.stat(file)).st_size, about.st_mtime_ns] for file in files_of(path)]
    own = place.entry()
    return [[entry.location.url, entry.size, entry.time_ns] for entry in ([own] if own else place.files())]


def _read(record: Location) -> dict[str, Any] | None:
    try:
        content = json.loads(record.read())
    except (FileNotFoundError, NotADirectoryError, ValueError):
        return None
    return content if isinstance(content, dict) and content.get("format") == FORMAT else None
