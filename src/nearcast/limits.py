"""How much of anything is accepted, so that hostile input costs what it is worth. Each limit is a setting.

A limit is changed by an environment variable before nearcast is imported (`NEARCAST_REGION_CORNERS=20000`) or by
`LIMITS.region_corners = 20_000`, which holds for what is read from then on.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, fields

from nearcast.errors import InvalidInput


@dataclass
class Limits:
    """The limits in force."""

    expression_characters: int = 100_000
    expression_depth: int = 50
    """Parentheses and NOTs within each other. A level takes four calls on Python's stack: at most 200."""
    expression_alternatives: int = 64
    """Clauses, once an expression is written out."""
    expression_filters: int = 4_000
    filter_values: int = 8_000
    """Values in one list, as in {type in (road, rail)}."""
    region_characters: int = 10_000_000
    region_crossings: int = 1_000
    """Crossings of the borders of a polygon that is not valid. Repairing takes time and memory for each."""
    region_meetings: int = 300_000
    """Pairs of edges of such a polygon whose boxes meet: each must be compared."""
    json_depth: int = 64
    """Objects and lists within each other, in a line of JSON Lines."""

    @classmethod
    def of_environment(cls) -> Limits:
        """The defaults, or what the environment says instead."""
        return cls(**{each.name: _of(each.name) for each in fields(cls) if variable(each.name) in os.environ})


def variable(name: str) -> str:
    """The environment variable of a limit."""
    return f"NEARCAST_{name.upper()}"


def _of(name: str) -> int:
    text = os.environ[variable(name)]
    if not (text.isascii() and text.isdigit() and 0 < len(text) <= 18):
        raise InvalidInput(f"{variable(name)} is a whole number above 0, not {text[:40]!r}")
    return int(text)


LIMITS = Limits.of_environment()
