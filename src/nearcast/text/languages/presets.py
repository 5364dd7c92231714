"""Analysers by the name of a language: its stop words and its stemmer."""

from __future__ import annotations

STOP_WORD_CODES = {
    "dutch": "nl",
    "english": "en",
    "french": "fr",
    "german": "de",
    "italian": "it",
    "portuguese": "pt",
    "spanish": "es",
}
"""Languages with a list of stop words. Others with a stemmer have the stemmer alone."""

PLAIN = "plain"
"""The preset without options."""
