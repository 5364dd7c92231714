"""Checks of arguments: what is not of the type that is needed raises InvalidInput and names the argument."""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Mapping
from types import UnionType
from typing import Any

import numpy as np

from nearcast.errors import InvalidInput

_LONGEST_PATH = 4_096
_LONGEST_NAME = 255


def a_text(given: Any, name: str) -> str:
    """The argument, which is text."""
    if not isinstance(given, str):
        raise InvalidInput(f"{name} is text, not {type(given).__name__}", column=name)
    return given


def a_flag(given: Any, name: str) -> bool:
    """The argument, which is True or False."""
    if not isinstance(given, bool):
        raise InvalidInput(f"{name} is True or False, not {type(given).__name__}", column=name)
    return given


def a_count(given: Any, name: str) -> int:
    """The argument, which is a whole number above 0."""
    if isinstance(given, bool) or not hasattr(given, "__index__") or not _is_above_zero(given):
        raise InvalidInput(f"{name} is a whole number above 0, not {_shown(given)}", column=name)
    return int(given)


def a_number(given: Any, name: str) -> float:
    """The argument, which is a finite number."""
    try:
        number = float(given) if not isinstance(given, str | bytes | bool) else math.nan
    except (TypeError, ValueError, OverflowError):
        number = math.nan
    if not math.isfinite(number):
        raise InvalidInput(f"{name} is a finite number, not {_shown(given)}", column=name)
    return number


def an_instance(given: Any, kind: type | UnionType, name: str) -> Any:
    """The argument, which is of this type."""
    if not isinstance(given, kind):
        wanted = getattr(kind, "__name__", str(kind))
        raise InvalidInput(f"{name} is of the type {wanted}, not {type(given).__name__}", column=name)
    return given


def some_tokens(given: Any, name: str = "tokens") -> list[str]:
    """The argument as a list, which is of strings."""
    tokens: list[Any] = [None]
    try:
        tokens = [*given] if isinstance(given, Iterable) and not isinstance(given, bytes) else tokens
    except TypeError:  # an array of no dimension says that it is iterable
        pass
    if not all(isinstance(token, str) for token in tokens):
        raise InvalidInput(f"{name} are a list of strings, not {_shown(given)}", column=name)
    return tokens


def some_numbers(given: Any, name: str, *counts: int) -> list[float]:
    """The argument as a list of numbers, of which there are as many as one of these counts."""
    try:
        is_list = not isinstance(given, str | bytes | np.ma.MaskedArray)
        numbers = [float(value) for value in given] if is_list else []
    except (TypeError, ValueError, OverflowError):
        numbers = []
    if len(numbers) not in counts:
        raise InvalidInput(f"{name}= takes {' or '.join(map(str, counts))} numbers, not {_shown(given)}", column=name)
    return numbers


def checked_attributes(given: Any) -> Mapping[str, Any] | None:
    """The argument, which is a dict of names and values, or None."""
    is_right = given is None or (isinstance(given, Mapping) and all(isinstance(name, str) for name in given))
    if not is_right:
        raise InvalidInput(f"attributes= is a dict of names and values, not {_shown(given)}", column="attributes")
    return given


def a_path(given: Any, name: str = "path") -> str:
    """The argument as text, which may name a file, a folder or a URL."""
    path = os.fspath(given) if isinstance(given, str | os.PathLike) else None
    if not isinstance(path, str):
        raise InvalidInput(f"{name} is a path or a URL, not {type(given).__name__}", column=name)
    parts, is_valid = path.split("/"), path != "" and "\0" not in path and is_unicode(path)
    if not is_valid or len(path) > _LONGEST_PATH or max(len(os.fsencode(part)) for part in parts) > _LONGEST_NAME:
        raise InvalidInput(f"{name} is no path: {_shown(path)}", column=name)
    return path


def is_unicode(text: str) -> bool:
    """Whether the text has no unpaired surrogate."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _is_above_zero(given: Any) -> bool:
    try:
        return int(given) > 0
    except TypeError:  # arrays of several numbers
        return False


def _shown(given: Any) -> str:
    text = repr(given)
    return text if len(text) <= 60 else f"{text[:57]}..."
