"""TOML files that describe sweeps, papers and workloads: shipped files by name, other files by path."""

from __future__ import annotations

import os
import tomllib
from collections.abc import Collection, Mapping
from importlib import resources
from pathlib import Path
from typing import Any, Literal

from nearcast.errors import InvalidInput

Folder = Literal["sweeps", "papers"]


def shipped_names(folder: Folder) -> list[str]:
    """The names of the files that come with nearcast."""
    files = (resources.files("nearcast.bench") / folder).iterdir()
    return sorted(file.name.removesuffix(".toml") for file in files if file.name.endswith(".toml"))


def find_toml(name: str | os.PathLike[str], folder: Folder) -> dict[str, Any]:
    """The content of a shipped file, or of the .toml file at a path. `name` defaults to the name of the file."""
    shipped = shipped_names(folder)
    if str(name) in shipped:
        with resources.as_file(resources.files("nearcast.bench") / folder / f"{name}.toml") as path:
            return {"name": str(name)} | read_toml(path)
    path = Path(name)
    if path.suffix != ".toml":
        raise InvalidInput(f"no {folder[:-1]} '{name}'; there are {', '.join(shipped)}, or give a .toml file")
    return {"name": path.stem} | read_toml(path)


def read_toml(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise InvalidInput(f"{path} cannot be read as TOML: {error}") from None


def require_known(content: Any, known: Collection[str], what: str) -> None:
    """InvalidInput if the content of a table has an unknown key. `what` names the table in the error text."""
    if not isinstance(content, Mapping):
        raise InvalidInput(f"{what} is a table of names and values, not {content!r}")
    for key in content:
        if key not in known:
            raise InvalidInput(f"{what} has no entry '{key}'; it has {', '.join(sorted(known))}")


def table_of(content: Mapping[str, Any], name: str) -> dict[str, Any]:
    """The table with this name inside another table; empty if there is none."""
    value = content.get(name, {})
    if not isinstance(value, Mapping):
        raise InvalidInput(f"'{name}' is a table of names and values, not {value!r}")
    return dict(value)
