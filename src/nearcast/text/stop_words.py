"""Common function words by language, from stop_words.toml.

Unicode treats a contraction as one word, with the straight and with the curly apostrophe, so both are in the lists.
"""

from __future__ import annotations

import tomllib
from importlib import resources


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split()) | frozenset(text.replace("'", "\u2019").split())


_FILE = resources.files("nearcast.text") / "stop_words.toml"
STOP_WORDS = {language: _words(text) for language, text in tomllib.loads(_FILE.read_text("utf-8")).items()}
