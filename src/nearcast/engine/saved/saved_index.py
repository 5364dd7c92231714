"""Saved indexes, opened again."""

from __future__ import annotations

import os

from nearcast.arguments import a_flag
from nearcast.engine.index import Index
from nearcast.errors import InvalidInput


def open_index(path: str | os.PathLike[str], verify: bool = True, *, trust: bool = True) -> Index:
    """A saved index, memory-mapped and shared with other processes. Changes stay in this process.

    `path` may be a URL: the index is then copied to this host once, and the copy is mapped. With trust=False, the index
    may be a stranger's: all that is read is checked, and the index is built anew from its rows, in memory.
    """
    from nearcast.storage.index_folder import open_saved

    saved = open_saved(path, a_flag(verify, "verify"))
    if not a_flag(trust, "trust"):
        from nearcast.engine.saved.rebuilt import rebuilt_index  # few indexes are strangers'

        return rebuilt_index(saved.arrays, saved.header)
    index = Index.restored(saved.arrays, saved.header)
    index._saved = (saved.url, saved.generation, index.versions.number)
    return index


def reopened_index(path: str, generation: str) -> Index:
    """The index that was at this path when it was pickled. Raises if another one is there."""
    index = open_index(path, verify=False)
    if index._saved is None or index._saved[1] != generation:
        raise InvalidInput(f"the index at {path} was replaced since it was pickled; open it again")
    return index
