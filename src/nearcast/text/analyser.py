"""The analyser: turns texts into tokens, alike for library, command line and pipeline (docs/reference/text.md)."""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import snowballstemmer

from nearcast.arguments import a_flag, a_text
from nearcast.arrays.ragged import starts_of
from nearcast.errors import ForeignVersion, InvalidInput
from nearcast.text.batch_tokens import tokens_of_texts
from nearcast.text.languages.presets import PLAIN, STOP_WORD_CODES
from nearcast.text.languages.segmentation import NONE, installed
from nearcast.text.unicode_tokens import SIGNS, normal_form, tokens_of_text

ANALYSER_VERSION = 2
"""Increased whenever some text yields different tokens than before. Stored in every file that contains tokens."""


@dataclass(frozen=True)
class Analyser:
    """Tokenisation with options. `stop_words` is a language code ("en"), `stem` a Snowball language ("english").
    `segmentation` is the library that cuts Thai, Lao, Khmer and Burmese into words: the one that is installed.

    >>> Analyser(stem="english").tokens("Running late @Bob, #PizzaDeals!")
    ['run', 'late', '@bob', '#pizzadeals']
    """

    fold_accents: bool = False
    stop_words: str | None = None
    stem: str | None = None
    emoji: bool = True
    segmentation: str = field(default_factory=installed)

    def __post_init__(self) -> None:
        for flag in ("fold_accents", "emoji"):
            a_flag(getattr(self, flag), flag)
        for name in ("stop_words", "stem", "segmentation"):
            if getattr(self, name) is not None:
                a_text(getattr(self, name), name)
        if self.stop_words is not None:
            _normal_stop_words(self.stop_words, self.fold_accents)  # raises if there are none for this language
        if self.stem is not None and self.stem not in snowballstemmer.algorithms():
            known = ", ".join(sorted(snowballstemmer.algorithms()))
            raise InvalidInput(f"no stemmer for '{self.stem}'; known languages are {known}")

    @classmethod
    def named(cls, name: str) -> Analyser:
        """The analyser of a language: its stop words, if there is a list, and its stems. "plain" has neither."""
        languages, name = snowballstemmer.algorithms(), a_text(name, "analyser")
        if name == PLAIN:
            return cls()
        if name not in languages:
            known = ", ".join([PLAIN, *sorted(languages)])
            raise InvalidInput(f"no analyser '{name}'; it is one of {known}, or an Analyser", column="analyser")
        return cls(stop_words=STOP_WORD_CODES.get(name), stem=name)

    @classmethod
    def of(cls, given: Analyser | str | None) -> Analyser:
        """An analyser, given itself or by the name of a language; the plain one for None."""
        if given is None:
            return cls()
        if isinstance(given, str):
            return cls.named(given)
        if not isinstance(given, Analyser):
            reason = f"analyser is a nearcast.Analyser or the name of a language, not {type(given).__name__}"
            raise InvalidInput(reason, column="analyser")
        return given

    def tokens(self, text: str) -> list[str]:
        """The tokens of a text, in order, repeats kept."""
        text = a_text(text, "text")
        found = tokens_of_text(text, self.fold_accents, self.emoji, self.segmentation)
        if self.stop_words is not None:
            stop_words = _normal_stop_words(self.stop_words, self.fold_accents)
            found = [token for token in found if token not in stop_words]
        return found if self.stem is None else _stemmed(found, self.stem)

    def tokens_batch(self, texts: pa.Array | pa.ChunkedArray) -> pa.ListArray:
        """list<string>: the result of `tokens` for each text; an empty list for a null text."""
        values, starts = tokens_of_texts(texts, self.fold_accents, self.emoji, self.segmentation)
        if self.stop_words is not None:
            values, starts = self._without_stop_words(values, starts)
        if self.stem is not None:
            values = self._stemmed_array(values)
        return pa.ListArray.from_arrays(pa.array(starts.astype(np.int32)), values)

    def normalise(self, token: str) -> str:
        """The normal form and stem of one literal token. The token is not split and not dropped as a stop word."""
        form = normal_form(a_text(token, "token"), self.fold_accents)
        return form if self.stem is None else _stemmed([form], self.stem)[0]

    def prefix(self, word: str) -> str:
        """The normal form of the beginning of a token; empty unless it is one word of at least 2 letters or numbers.

        With a stemmer, a word that its stem begins stands for the stem: tokens are compared as stems.
        """
        found = tokens_of_text(a_text(word, "word"), self.fold_accents, self.emoji, self.segmentation)
        if len(found) != 1 or found[0] != normal_form(word, self.fold_accents) or not _has_two_letters(found[0]):
            return ""
        stem = found[0] if self.stem is None else _stemmed(found, self.stem)[0]
        return stem if found[0].startswith(stem) and _has_two_letters(stem) else found[0]

    def header(self) -> dict[str, Any]:
        """Version and options, as files store them; `from_header` restores the analyser."""
        return {"version": ANALYSER_VERSION, **asdict(self)}

    @classmethod
    def from_header(cls, header: dict[str, Any]) -> Analyser:
        options = dict(header)
        version = options.pop("version", None)
        if version == 1:
            options |= {"emoji": False, "segmentation": NONE}
        elif version != ANALYSER_VERSION:
            reason = f"tokens of analyser version {version}; this is version {ANALYSER_VERSION}: rebuild from the texts"
            raise ForeignVersion(reason)
        if unknown := options.keys() - cls.__dataclass_fields__.keys():
            raise ForeignVersion(f"analyser options that this version does not know: {', '.join(sorted(unknown))}")
        return cls(**options)

    def _without_stop_words(self, values: pa.Array, starts: np.ndarray) -> tuple[pa.Array, np.ndarray]:
        assert self.stop_words is not None
        stop_words = pa.array(sorted(_normal_stop_words(self.stop_words, self.fold_accents)), pa.string())
        is_kept = pc.invert(pc.is_in(values, stop_words))
        n_kept_before = starts_of(is_kept.to_numpy(zero_copy_only=False))
        return values.filter(is_kept), n_kept_before[starts]

    def _stemmed_array(self, values: pa.Array) -> pa.Array:
        """Stem each distinct token once: under a tenth of the tokens of real texts are distinct."""
        assert self.stem is not None
        coded = values.dictionary_encode()
        stems = pa.array(_stemmed(coded.dictionary.to_pylist(), self.stem), pa.string())
        return stems.take(coded.indices)


@functools.cache
def _normal_stop_words(language: str, fold_accents: bool) -> frozenset[str]:
    from nearcast.text.stop_words import STOP_WORDS  # few analysers drop stop words

    if language not in STOP_WORDS:
        raise InvalidInput(f"no stop words for '{language}'; known languages are {', '.join(STOP_WORDS)}")
    return frozenset(normal_form(word, fold_accents) for word in STOP_WORDS[language])


def _stemmed(tokens: list[str], language: str) -> list[str]:
    """Stem all tokens but #tags and @names: names have no stem."""
    stem = _stemmer(language)
    return [token if token.startswith(_SIGNS) else stem(token) or token for token in tokens]


def _has_two_letters(token: str) -> bool:
    return sum(character.isalnum() for character in token) > 1


_SIGNS = tuple(SIGNS)
_stemmers = threading.local()


def _stemmer(language: str) -> Callable[[str], str]:
    """The stemmer of the current thread; stemmers keep state during a call, so threads cannot share one.

    snowballstemmer uses PyStemmer if that is installed, which is 8 to 30 times faster.
    """
    stemmers = _stemmers.__dict__
    if language not in stemmers:
        stemmers[language] = snowballstemmer.stemmer(language).stemWord
    return stemmers[language]
