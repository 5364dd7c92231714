"""Atoms: what clauses are made of, as strings. A plain token is its own atom.

Prefixes, phrases, groups and conditions are strings that begin with U+FFFF and a letter for their sort. U+FFFF is no
character: no analyser yields it, and subscriptions cannot name a token that contains it. So whatever carries tokens
carries atoms too: clauses, their columns, the vocabulary, saved files.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

MARK = "\uffff"
PREFIX, PHRASE, GROUP, FILTER = (MARK + sort for sort in '*"|{')

MOST_PHRASE_TOKENS = 63
"""The lengths of phrases that begin with a token are bits of one number."""

MOST_PREFIX_BYTES = 255


def prefix_atom(start: str) -> str:
    """The atom that a message has if one of its tokens begins so."""
    return PREFIX + start


def phrase_atom(tokens: Sequence[str]) -> str:
    """The atom that a message has if these tokens follow each other in it."""
    return PHRASE + MARK.join(tokens)


def group_atom(atoms: Iterable[str]) -> str:
    """The atom that a message has if it has one of these: tokens, prefixes or phrases."""
    return GROUP + (MARK * 2).join(sorted(set(atoms)))


def filter_atom(text: str) -> str:
    """The atom of a condition on a message column, in braces."""
    return FILTER + text


def is_derived(atom: str) -> bool:
    """Whether the atom is no plain token."""
    return atom.startswith(MARK)


def is_filter(atom: str) -> bool:
    return atom.startswith(FILTER)


def content(atom: str) -> str:
    """The text of a prefix or a filter."""
    return atom[2:]


def phrase_tokens(atom: str) -> list[str]:
    return atom[2:].split(MARK)


def group_members(atom: str) -> list[str]:
    return atom[2:].split(MARK * 2)


def members(atom: str) -> list[str]:
    """The atoms that must be in the vocabulary for this one to be found in messages."""
    if atom.startswith(PHRASE):
        return phrase_tokens(atom)
    return group_members(atom) if atom.startswith(GROUP) else []


def plain_tokens(atom: str) -> list[str]:
    """The tokens that an expression names by this atom; a prefix and a filter name none."""
    if not is_derived(atom):
        return [atom]
    return [token for member in members(atom) for token in plain_tokens(member)]


def phrase_words(atom: str) -> list[str]:
    """The tokens that a message with this derived atom must have."""
    return phrase_tokens(atom) if atom.startswith(PHRASE) else []


def occurs(atom: str, tokens: Iterable[str]) -> bool:
    """Whether a message with these tokens, in this order, has the atom, which is no filter. Defines the meaning."""
    if not is_derived(atom):
        return atom in tokens
    if atom.startswith(PREFIX):
        return any(token.startswith(content(atom)) for token in tokens)
    if atom.startswith(PHRASE):
        wanted, given = phrase_tokens(atom), list(tokens)
        return any(given[i : i + len(wanted)] == wanted for i in range(len(given) - len(wanted) + 1))
    return any(occurs(member, tokens) for member in group_members(atom))


_SHOWN = 5


def shown(atom: str) -> str:
    """The atom as a user writes it; a long group is cut."""
    if not is_derived(atom):
        return atom
    if atom.startswith(PREFIX):
        return content(atom) + "*"
    if atom.startswith(PHRASE):
        return f'"{" ".join(phrase_tokens(atom))}"'
    if atom.startswith(FILTER):
        return f"{{{content(atom)}}}"
    every = group_members(atom)
    more = f", … ({len(every)} in all)" if len(every) > _SHOWN else ""
    return f"any of {', '.join(map(shown, every[:_SHOWN]))}{more}"
