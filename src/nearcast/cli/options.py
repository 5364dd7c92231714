"""Options that several commands share, and functions that read their values."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Annotated, Any, TypeVar

from typer import Argument, Option

from nearcast.errors import InvalidInput

T = TypeVar("T")
argument = partial(Argument, show_default=False)
required = partial(Option, show_default=False)
"""What must be given has no default to show."""


def read_place(text: str) -> str:
    """A path, or a URL in the form in which it is used: file:/// as a path, s3a:// as s3://."""
    from nearcast.storage.location import is_url, locate

    return locate(text).url if is_url(text) else text


place = partial(required, parser=read_place)
"""An option that takes a path or a URL."""

Json = Annotated[bool, Option("--json", help="Print the result as JSON.")]
Space = Annotated[
    str | None,
    Option(metavar="XMIN,YMIN,XMAX,YMAX", help="Coordinates are planar, in these bounds. [default: lon/lat]"),
]
AnalyserName = Annotated[
    str | None,
    Option(
        "--analyser",
        metavar="LANGUAGE",
        help="Read texts and expressions in this language, such as english: its common words are dropped, words are "
        "reduced to their stems. [default: plain]",
    ),
]
Extra = Annotated[
    list[str] | None,
    Option(
        "--extra",
        metavar="COLUMN",
        help="A column that nearcast does not know and that may be there; `ignore` allows any. Repeatable.",
    ),
]
Keep = Annotated[
    list[str] | None,
    Option(
        metavar="COLUMN",
        help="Carry a column of the messages or subscriptions into the matches; message.X and subscription.X say"
        " which. Also distance_km and words. Repeatable.",
    ),
]
Now = Annotated[
    str | None,
    Option(
        metavar="TIME",
        help="The time of messages without one, as in 2026-01-31T12:00:00Z: what has expired then does not match."
        " [default: the present]",
    ),
]
Source = Annotated[
    Path | None, Option("--from", metavar="MESSAGES", help="Take words and places from this messages table in lon/lat.")
]
Shards = Annotated[int | None, Option(min=1, help="Number of shards. [default: by size and cores]")]


def read_extra(names: list[str] | None) -> str | list[str]:
    """The argument `extra=` of the library."""
    return "raise" if not names else "ignore" if "ignore" in names else names


def read_space(text: str | None) -> tuple[float, ...] | None:
    bounds = None if text is None else _numbers(text, float)
    if bounds is not None and len(bounds) != 4:
        raise InvalidInput(f"--space takes four numbers, as in 0,0,1000,1000, not '{text}'")
    return bounds


def read_counts(option: str, text: str) -> tuple[int, ...]:
    """The whole numbers, 1 or more, in a list separated by commas."""
    counts = _numbers(text, int)
    if not counts or min(counts) < 1:
        raise InvalidInput(f"{option} takes whole numbers, 1 or more, as in 1,2, not '{text}'")
    return counts


def _numbers(text: str, number: Callable[[str], T]) -> tuple[T, ...]:
    """The numbers in a list separated by commas; none if one cannot be read."""
    try:
        return tuple(number(part) for part in text.split(","))
    except ValueError:
        return ()


def read_names(text: str) -> list[str]:
    """The names in a list separated by commas."""
    return [name.strip() for name in text.split(",") if name.strip()]


def given(**options: Any) -> dict[str, Any]:
    """The options that have a value."""
    return {name: value for name, value in options.items() if value is not None}
