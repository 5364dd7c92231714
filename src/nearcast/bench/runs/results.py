"""Raw results as JSON files. Every table and picture can be made again from them: see bench/reports."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from nearcast.arrays.bundle import write_whole
from nearcast.errors import InvalidInput


class Format(NamedTuple):
    """A kind of result file."""

    name: str
    version: int
    what: str  # for error texts
    command: str  # that writes such files

    def head(self) -> dict[str, Any]:
        return {"format": self.name, "version": self.version}


SWEEP_FORMAT = Format("nearcast-bench", 2, "a benchmark's result", "nearcast bench run --out DIR")


@dataclass(frozen=True)
class Result:
    """The raw measurements of a sweep."""

    sweep: dict[str, Any]
    surroundings: dict[str, Any]  # see environment.py
    runs: list[dict[str, Any]]

    def document(self) -> dict[str, Any]:
        """The content of the file."""
        return SWEEP_FORMAT.head() | {"sweep": self.sweep, "surroundings": self.surroundings, "runs": self.runs}


class Documented(Protocol):
    def document(self) -> dict[str, Any]: ...


def save_result(result: Documented, path: str | os.PathLike[str]) -> None:
    """Write the result as JSON, completely or not at all."""
    target = Path(path)
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        write_whole(target, (json.dumps(result.document(), indent=1) + "\n").encode(), is_private=False)
    except OSError as error:
        raise InvalidInput(f"{target} cannot be written: {error}") from None


def load_document(path: str | os.PathLike[str], wanted: Format) -> dict[str, Any]:
    """The content of a result file; InvalidInput if the file has another format or version."""
    try:
        document = json.loads(Path(path).read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise InvalidInput(f"{path} cannot be read as {wanted.what}: {error}") from None
    if not isinstance(document, dict) or document.get("format") != wanted.name:
        raise InvalidInput(f"{path} is not {wanted.what}; `{wanted.command}` writes result.json")
    if document.get("version") != wanted.version:
        raise InvalidInput(f"{path} is of version {document.get('version')}; this program reads {wanted.version}")
    return document


def load_result(path: str | os.PathLike[str]) -> Result:
    document = load_document(path, SWEEP_FORMAT)
    return Result(document["sweep"], document["surroundings"], document["runs"])
