"""The clauses of many expressions at once. `expression.parse` and `clauses.clauses` define them; this is faster.

Kernels cut the texts into pieces and write the pattern of each (see `expression_pieces`). The parser reads each
distinct pattern once, and a kernel puts the tokens of each text into the clauses of its pattern. A text that the
kernels cannot read, or whose pattern has a mistake, is read by the parser.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from nearcast.arrays.arrow import large_string_array, list_parts, string_buffers
from nearcast.arrays.jit import kernel
from nearcast.arrays.ragged import sort_in_place, starts_of, take
from nearcast.errors import ExpressionError
from nearcast.limits import LIMITS
from nearcast.text.analyser import Analyser
from nearcast.text.clauses import Clause, ClauseColumns, clauses
from nearcast.text.derived.atoms import is_derived
from nearcast.text.expression import parse
from nearcast.text.expression_pieces import Patterns, Pieces, WordTokens, count_pieces, write_patterns, write_pieces
from nearcast.text.vocabulary import Vocabulary

FEW = 24
"""The kernels are quicker from about 20 texts on."""

NO_FORM = -1
"""The form of a text with a mistake."""

_UNUSUAL = r"^-|[:*!&|]|^(?i:and|or|not)$"
"""Words that begin with a minus, or may be refused."""

_PLAIN = Analyser()  # reads patterns: a number is one token


class Forms(NamedTuple):
    """Clauses over numbered tokens. The clauses of form f are those from starts[f] to starts[f+1]."""

    starts: np.ndarray  # int64[n+1]
    required: np.ndarray  # int32[...]  numbers of tokens
    required_starts: np.ndarray  # int64[n_clauses+1]
    forbidden: np.ndarray  # int32[...]
    forbidden_starts: np.ndarray  # int64[n_clauses+1]


class _Texts(NamedTuple):
    """The form of each text, and the tokens that its numbers stand for."""

    forms: np.ndarray  # int64[n]  or NO_FORM
    tokens: np.ndarray  # int32[...]
    token_starts: np.ndarray  # int64[n+1]


def read_clauses(texts: pa.Array, analyser: Analyser, few: int = FEW) -> ClauseColumns:
    """The clauses of each text. There must be no nulls. Up to `few` texts are read one by one."""
    if len(texts) <= few:
        return _read_one_by_one(texts.to_pylist(), analyser)
    vocabulary = Vocabulary()  # numbers the tokens of these texts
    patterns = _patterns(texts, analyser, vocabulary)
    coded = large_string_array(patterns.raw, patterns.raw_starts).dictionary_encode()
    distinct = [_clauses_of_pattern(pattern) for pattern in coded.dictionary.to_pylist()]
    is_known = np.array([found is not None for found in distinct], bool)
    made = [[] if found is None else found for found in distinct]
    forms = coded.indices.to_numpy().astype(np.int64)
    for_parser = np.flatnonzero(~(patterns.is_readable & is_known[forms]))
    known, errors = _Texts(forms, patterns.tokens, patterns.token_starts), dict[int, ExpressionError]()
    if len(for_parser):
        more, known, errors = _parsed(texts, for_parser, analyser, vocabulary, known, len(made))
        made += more
    order = pc.sort_indices(vocabulary.tokens(np.arange(len(vocabulary)))).to_numpy().astype(np.int64)
    ranks = np.empty(len(order), np.int32)
    ranks[order] = np.arange(len(order), dtype=np.int32)
    return _filled(known._replace(tokens=ranks[known.tokens]), _columns_of(made, int), vocabulary.tokens(order), errors)


def _read_one_by_one(texts: list[str], analyser: Analyser) -> ClauseColumns:
    found, errors = list[list[Clause]](), dict[int, ExpressionError]()
    for i, text in enumerate(texts):
        try:
            found.append(clauses(parse(text, analyser)))
        except ExpressionError as error:
            errors[i] = error
            found.append([])
    tokens = sorted({token for own in found for clause in own for side in clause for token in side})
    ranks = {token: rank for rank, token in enumerate(tokens)}
    return ClauseColumns(*_columns_of(found, ranks.__getitem__), pa.array(tokens, pa.string()), errors)


def _patterns(texts: pa.Array, analyser: Analyser, vocabulary: Vocabulary) -> Patterns:
    raw, offsets = string_buffers(texts)
    counts = np.empty(len(texts), np.int64)
    count_pieces(raw, offsets, LIMITS.expression_characters, counts)
    starts = starts_of(np.maximum(counts, 0))
    kinds = np.empty(starts[-1], np.uint8)
    word_bytes, word_starts = np.empty(int(offsets[-1] - offsets[0]), np.uint8), np.empty(len(kinds) + 1, np.int64)
    n_words = write_pieces(raw, offsets, starts, kinds, word_bytes, word_starts)
    coded = large_string_array(word_bytes, word_starts[: n_words + 1]).dictionary_encode()
    words = coded.indices.to_numpy()
    flat, token_starts = list_parts(analyser.tokens_batch(_without_unusual(coded.dictionary)))
    of_words = WordTokens(vocabulary.add(flat), token_starts)
    most_tokens = int(np.diff(token_starts)[words].sum())
    out = Patterns(
        np.empty(8 * most_tokens + 4 * (len(kinds) + n_words), np.uint8),  # 7 bytes a number, 4 an operator
        np.empty(len(texts) + 1, np.int64),
        np.empty(most_tokens, np.int32),
        np.empty(len(texts) + 1, np.int64),
        counts >= 0,
    )
    write_patterns(Pieces(kinds, starts, words), of_words, np.full((len(vocabulary), 2), -1, np.int64), out)
    return out._replace(tokens=out.tokens[: out.token_starts[-1]])  # the rest was not written


def _without_unusual(words: pa.Array) -> pa.Array:
    """The words, empty where only the parser can read them."""
    return pc.if_else(pc.match_substring_regex(words, _UNUSUAL), "", words)


def _clauses_of_pattern(pattern: str) -> list[Clause] | None:
    """The clauses of a pattern; None if only the text itself gives them: it has a group of words, or a mistake, which
    is shown as the user wrote it.
    """
    try:
        found = clauses(parse(pattern, _PLAIN))
    except ExpressionError:
        return None
    return None if any(is_derived(atom) for clause in found for side in clause for atom in side) else found


def _parsed(
    texts: pa.Array, rows: np.ndarray, analyser: Analyser, vocabulary: Vocabulary, known: _Texts, n_forms: int
) -> tuple[list[list[Clause]], _Texts, dict[int, ExpressionError]]:
    """(new forms, `known` with the texts of these rows, the errors of these rows). Equal texts are parsed once."""
    forms, errors, made = known.forms.copy(), dict[int, ExpressionError](), list[list[Clause]]()
    seen: dict[str, tuple[int, list[str]] | ExpressionError] = {}
    token_lists: list[list[str]] = []
    for row, text in zip(rows.tolist(), texts.take(pa.array(rows)).to_pylist(), strict=True):
        if text not in seen:
            try:
                form, own_tokens = _numbered(clauses(parse(text, analyser)))
                seen[text] = (n_forms + len(made), own_tokens)
                made.append(form)
            except ExpressionError as error:
                seen[text] = error
        result = seen[text]
        if isinstance(result, ExpressionError):
            errors[row], result = result, (NO_FORM, [])
        forms[row] = result[0]
        token_lists.append(result[1])
    # The tokens of these rows follow all others; `take` then brings the rows into the order of the texts.
    added = vocabulary.add(pa.array([token for own_tokens in token_lists for token in own_tokens], pa.string()))
    counts = np.array([len(own_tokens) for own_tokens in token_lists], np.int64)
    starts = np.concatenate([known.token_starts, known.token_starts[-1] + np.cumsum(counts)])
    places = np.arange(len(forms))
    places[rows] = len(forms) + np.arange(len(rows))
    return made, _Texts(forms, *take(np.concatenate([known.tokens, added]), starts, places)), errors


def _numbered(found: list[Clause]) -> tuple[list[Clause], list[str]]:
    """(the clauses with numbers in place of tokens, the token of each number)."""
    numbers: dict[str, str] = {}
    form = [
        Clause(*(tuple(numbers.setdefault(token, str(len(numbers))) for token in side) for side in clause))
        for clause in found
    ]
    return form, list(numbers)


def _columns_of(found: Sequence[list[Clause]], number_of: Callable[[str], int]) -> Forms:
    """The clauses as columns."""
    starts = starts_of(np.array([len(own) for own in found], np.int64))
    every = [clause for own in found for clause in own]
    required = _numbers([clause.required for clause in every], number_of)
    return Forms(starts, *required, *_numbers([clause.forbidden for clause in every], number_of))


def _numbers(sides: list[tuple[str, ...]], number_of: Callable[[str], int]) -> tuple[np.ndarray, np.ndarray]:
    flat = np.array([number_of(token) for side in sides for token in side], np.int32)
    return flat, starts_of(np.array([len(side) for side in sides], np.int64))


def _filled(texts: _Texts, forms: Forms, tokens: pa.Array, errors: dict[int, ExpressionError]) -> ClauseColumns:
    has_form = texts.forms != NO_FORM
    of_text = np.where(has_form, texts.forms, 0)
    starts = starts_of(np.where(has_form, np.diff(forms.starts)[of_text], 0)) if len(of_text) else np.zeros(1, np.int64)
    numbers = np.repeat(forms.starts[of_text] - starts[:-1], np.diff(starts)) + np.arange(starts[-1])
    required_starts = starts_of(np.diff(forms.required_starts)[numbers])
    forbidden_starts = starts_of(np.diff(forms.forbidden_starts)[numbers])
    required, forbidden = np.empty(required_starts[-1], np.int32), np.empty(forbidden_starts[-1], np.int32)
    first_tokens = np.repeat(texts.token_starts[:-1], np.diff(starts))
    fill_clauses(forms.required, forms.required_starts, numbers, texts.tokens, first_tokens, required)
    fill_clauses(forms.forbidden, forms.forbidden_starts, numbers, texts.tokens, first_tokens, forbidden)
    made = ClauseColumns(starts, required, required_starts, forbidden, forbidden_starts, tokens, errors)
    order = np.arange(starts[-1])
    order_clauses(starts, required, required_starts, forbidden, forbidden_starts, order)
    if (order[1:] > order[:-1]).all():
        return made
    required, required_starts = take(required, required_starts, order)
    forbidden, forbidden_starts = take(forbidden, forbidden_starts, order)
    return ClauseColumns(starts, required, required_starts, forbidden, forbidden_starts, tokens, errors)


@kernel
def fill_clauses(numbers, starts, clauses_of_forms, tokens, first_tokens, out):
    """Write the sorted tokens of one side of each clause. Clause i is clauses_of_forms[i] with tokens for its numbers:
    number k stands for tokens[first_tokens[i] + k].
    """
    n = 0
    for i in range(len(clauses_of_forms)):
        first = n
        for k in range(starts[clauses_of_forms[i]], starts[clauses_of_forms[i] + 1]):
            out[n] = tokens[first_tokens[i] + numbers[k]]
            n += 1
        sort_in_place(out, first, n)


@kernel
def order_clauses(starts, required, required_starts, forbidden, forbidden_starts, order):
    """Sort the numbers of the clauses of each text, in place: by required, then by forbidden tokens."""
    for text in range(len(starts) - 1):
        first = starts[text]
        for i in range(first + 1, starts[text + 1]):
            clause = order[i]
            k = i
            while k > first:
                found = compare_rows(required, required_starts, clause, order[k - 1])
                if found == 0:
                    found = compare_rows(forbidden, forbidden_starts, clause, order[k - 1])
                if found >= 0:
                    break
                order[k] = order[k - 1]
                k -= 1
            order[k] = clause


@kernel
def compare_rows(values, starts, a, b):
    """-1, 0 or 1: row a comes before row b, equals it, or comes after it, in lexicographic order."""
    at_a, at_b = starts[a], starts[b]
    while at_a < starts[a + 1] and at_b < starts[b + 1]:
        if values[at_a] != values[at_b]:
            return -1 if values[at_a] < values[at_b] else 1
        at_a += 1
        at_b += 1
    return int(at_a < starts[a + 1]) - int(at_b < starts[b + 1])
