"""Words of Thai, Lao, Khmer and Burmese, which are written without spaces, by the dictionaries of ICU (icu4py).

Other versions may cut other words. So an analyser names the library that it uses, files store the name, and text of
these scripts is refused where the library is missing or another one.
"""

from __future__ import annotations

import functools
import importlib.util

from nearcast.errors import MissingPart

LIBRARY = "icu4py"
NONE = "none"
"""No library: each letter with its marks is a token."""


@functools.cache
def installed() -> str:
    """The name and version of the library, or NONE."""
    if importlib.util.find_spec(LIBRARY) is None:
        return NONE
    from importlib.metadata import version

    return f"{LIBRARY} {version(LIBRARY)}"


@functools.lru_cache(maxsize=65_536)
def words_of_run(run: str, segmentation: str) -> tuple[str, ...]:
    """The words of a run of letters of these scripts. Raises MissingPart unless the library is the named one."""
    if segmentation != installed():
        there = "it is not installed" if installed() == NONE else f"here is {installed()}"
        raise MissingPart(
            f"'{run[:20]}' is cut into words by {segmentation}, but {there}: "
            f"pip install '{segmentation.replace(' ', '==')}', or build again with this one"
        )
    from icu4py.breakers import WordBreaker  # 25 ms; most texts need it never

    words = (str(word) for word in WordBreaker(run, "th"))
    return tuple(word for word in words if any(character.isalpha() for character in word))
