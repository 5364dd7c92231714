"""Storage: the format of saved indexes, and its version."""

from nearcast.storage.index_folder import INDEX_FORMAT, load_index, save_index

__all__ = ["INDEX_FORMAT", "load_index", "save_index"]
