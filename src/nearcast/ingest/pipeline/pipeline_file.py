"""Reads a pipeline from a TOML file. Paths are relative to the file."""

from __future__ import annotations

import os
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from nearcast.errors import InvalidInput
from nearcast.ingest.output_folder import mounted_path
from nearcast.ingest.sources import local_source
from nearcast.sharding.layout import Layout
from nearcast.storage.location import is_url

_KNOWN: dict[str, tuple[str, ...]] = {
    "": ("out", "messages", "subscriptions", "build", "match", "stream"),
    "messages": ("sources", "map"),
    "subscriptions": ("sources", "map"),
    "build": ("shards", "method", "space", "weights", "analyser"),
    "match": ("layout",),
    "stream": ("files", "changes"),
}


class Raw(NamedTuple):
    """Raw files, and which of their columns become which column of a table."""

    sources: tuple[str, ...]
    mapping: Mapping[str, str] = {}


class Pipeline(NamedTuple):
    """What to run."""

    out: Path
    messages: Raw
    subscriptions: Raw
    shards: int | None = None
    method: str = "auto"
    space: tuple[float, ...] | None = None
    weights: str | None = None  # a file; by default, the vocabulary of the pipeline gives the weights
    analyser: str | None = None  # the name of a language
    layout: Layout = "auto"
    stream_files: int = 0  # replay the messages as a stream of this many files; 0: no replay
    changes: str | None = None  # a change log that takes effect after half of these files

    def path(self, *names: str) -> str:
        return os.fspath(self.out.joinpath(*names))


def read_pipeline(path: str | os.PathLike[str], out: str | os.PathLike[str] | None = None) -> Pipeline:
    """The pipeline of a file; `out` overrides the output folder in the file."""
    file = Path(path)
    try:
        settings = tomllib.loads(file.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise InvalidInput(f"{file} cannot be read as TOML: {error}") from None
    reader = _Reader(file, settings)
    target = mounted_path(out if out is not None else _beside(file, reader.value("", "out", str, "pipeline-output")))
    changes = reader.value("stream", "changes", str, None)
    weights = reader.value("build", "weights", str, None)
    return Pipeline(
        Path(target),
        reader.raw("messages"),
        reader.raw("subscriptions"),
        shards=reader.positive("build", "shards", None),
        method=reader.value("build", "method", str, "auto"),
        space=reader.space(),
        weights=_beside(file, weights) if weights else None,
        analyser=reader.value("build", "analyser", str, None),
        layout=reader.one_of("match", "layout", ("auto", "replicated", "sharded")),
        stream_files=reader.positive("stream", "files", 0),
        changes=local_source(_beside(file, changes)) if changes else None,
    )


def _beside(file: Path, path: str) -> str:
    """A path relative to the folder of the file, or a URL."""
    return path if is_url(path) else str(file.parent / path)


class _Reader:
    """Gives values of the right type, or raises an error of one line that names the place."""

    def __init__(self, file: Path, settings: dict[str, Any]) -> None:
        self._file, self._settings = file, settings
        for part, known in _KNOWN.items():
            for name in self._part(part):
                if name not in known:
                    where = f" in [{part}]" if part else ""
                    raise InvalidInput(f"{file}: unknown '{name}'{where}; there are {', '.join(known)}")

    def _part(self, part: str) -> dict[str, Any]:
        found = self._settings.get(part, {}) if part else self._settings
        if not isinstance(found, dict):
            raise InvalidInput(f"{self._file}: '{part}' is a table, as in [{part}]")
        return found

    def value(self, part: str, name: str, kind: type, default: Any) -> Any:
        found = self._part(part).get(name, default)
        if found is not default and (not isinstance(found, kind) or isinstance(found, bool)):
            raise InvalidInput(f"{self._file}: {f'{part}.' if part else ''}{name} is a {kind.__name__}, not {found!r}")
        return found

    def positive(self, part: str, name: str, default: int | None) -> Any:
        found = self.value(part, name, int, default)
        if found is not default and found < 1:
            raise InvalidInput(f"{self._file}: {part}.{name} is at least 1, not {found}")
        return found

    def one_of(self, part: str, name: str, choices: tuple[str, ...]) -> Any:
        found = self.value(part, name, str, choices[0])
        if found not in choices:
            raise InvalidInput(f"{self._file}: {part}.{name} is one of {', '.join(choices)}, not '{found}'")
        return found

    def raw(self, kind: str) -> Raw:
        sources = self.value(kind, "sources", list, None)
        if not sources or not all(isinstance(each, str) for each in sources):
            raise InvalidInput(f'{self._file}: {kind}.sources is a list of files, as in ["raw/*.csv.gz"]')
        mapping = self.value(kind, "map", dict, None) or {}
        return Raw(tuple(_beside(self._file, each) for each in sources), mapping)

    def space(self) -> tuple[float, ...] | None:
        bounds = self.value("build", "space", list, None)
        if bounds is None:
            return None
        if len(bounds) != 4 or not all(isinstance(each, int | float) for each in bounds):
            raise InvalidInput(f"{self._file}: build.space is four numbers, xmin, ymin, xmax, ymax")
        return tuple(float(each) for each in bounds)
