"""Text -> tokens: the one definition that library, command line and pipeline share. docs/text.md tells it in full."""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import snowballstemmer

from nearcast.arrays.ragged import starts_of
from nearcast.errors import ForeignVersion, InvalidInput
from nearcast.text.batch_words import words_of_array
from nearcast.text.stop_words import STOP_WORDS
from nearcast.text.words import SIGNS, normal_form, words

ANALYSER_VERSION = 1
"""Raised when any text gives other tokens than before. Stored with everything that holds tokens."""


@dataclass(frozen=True)
class Analyser:
    """Options of the definition. `stop_words` is a language code ("en"), `stem` a Snowball language ("english").

    >>> Analyser(stem="english").tokens("Running late @Bob, #PizzaDeals!")
    ['run', 'late', '@bob', '#pizzadeals']
    """

    fold_accents: bool = False
    stop_words: str | None = None
    stem: str | None = None

    def __post_init__(self) -> None:
        if self.stop_words is not None and self.stop_words not in STOP_WORDS:
            raise InvalidInput(f"no stop words for '{self.stop_words}'; there are {', '.join(STOP_WORDS)}")
        if self.stem is not None and self.stem not in snowballstemmer.algorithms():
            known = ", ".join(sorted(snowballstemmer.algorithms()))
            raise InvalidInput(f"no stemmer for '{self.stem}'; there are {known}")

    def tokens(self, text: str) -> list[str]:
        """The tokens of a text, in order, repeats kept."""
        found = words(text, self.fold_accents)
        if self.stop_words is not None:
            stopped = _stopped(self.stop_words, self.fold_accents)
            found = [token for token in found if token not in stopped]
        return found if self.stem is None else _stemmed(found, self.stem)

    def tokens_batch(self, texts: pa.Array | pa.ChunkedArray) -> pa.ListArray:
        """list<string>: what `tokens` gives for each text; a null text gives an empty list."""
        values, starts = words_of_array(texts, self.fold_accents)
        if self.stop_words is not None:
            values, starts = self._without_stop_words(values, starts)
        if self.stem is not None:
            values = self._stemmed_array(values)
        return pa.ListArray.from_arrays(pa.array(starts.astype(np.int32)), values)

    def normalise(self, token: str) -> str:
        """One literal token: normal form and stem, but neither cut nor dropped."""
        form = normal_form(token, self.fold_accents)
        return form if self.stem is None else _stemmed([form], self.stem)[0]

    def header(self) -> dict[str, Any]:
        """What a file stores, so that it is read with the same definition."""
        return {"version": ANALYSER_VERSION, **asdict(self)}

    @classmethod
    def from_header(cls, header: dict[str, Any]) -> Analyser:
        options = dict(header)
        version = options.pop("version", None)
        if version != ANALYSER_VERSION:
            raise ForeignVersion(f"tokens of analyser version {version}; this is version {ANALYSER_VERSION}")
        if unknown := options.keys() - cls.__dataclass_fields__.keys():
            raise ForeignVersion(f"analyser options that this version does not know: {', '.join(sorted(unknown))}")
        return cls(**options)

    def _without_stop_words(self, values: pa.Array, starts: np.ndarray) -> tuple[pa.Array, np.ndarray]:
        assert self.stop_words is not None
        stopped = pa.array(sorted(_stopped(self.stop_words, self.fold_accents)), pa.string())
        is_kept = pc.invert(pc.is_in(values, stopped))
        n_kept_before = starts_of(is_kept.to_numpy(zero_copy_only=False))
        return values.filter(is_kept), n_kept_before[starts]

    def _stemmed_array(self, values: pa.Array) -> pa.Array:
        """Distinct tokens are stemmed once: in real texts they are under a tenth of all."""
        assert self.stem is not None
        coded = values.dictionary_encode()
        stems = pa.array(_stemmed(coded.dictionary.to_pylist(), self.stem), pa.string())
        return stems.take(coded.indices)


@functools.cache
def _stopped(language: str, fold_accents: bool) -> frozenset[str]:
    return frozenset(normal_form(word, fold_accents) for word in STOP_WORDS[language])


def _stemmed(tokens: list[str], language: str) -> list[str]:
    """#tags and @names are left alone: they are names."""
    stem = _stemmer(language)
    return [token if token.startswith(_SIGNS) else stem(token) or token for token in tokens]


_SIGNS = tuple(SIGNS)
_of_thread = threading.local()


def _stemmer(language: str) -> Callable[[str], str]:
    """A stemmer of this thread's own: they hold state while they work. PyStemmer's where it is installed: 8
    to 30 times faster.
    """
    stemmers = _of_thread.__dict__
    if language not in stemmers:
        stemmers[language] = snowballstemmer.stemmer(language).stemWord
    return stemmers[language]
