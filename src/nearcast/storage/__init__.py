"""What lies on disk, and in which version of its format."""

from nearcast.storage.index_folder import INDEX_FORMAT, load_index, save_index

__all__ = ["INDEX_FORMAT", "load_index", "save_index"]
