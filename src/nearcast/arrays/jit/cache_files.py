"""The files of a compiled kernel. Each ends with a checksum; damaged files are deleted and written again."""

from __future__ import annotations

import logging
import os
import pickle
import sys
import zlib
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from numba.core import config
from numba.core.caching import CompileResultCacheImpl, FunctionCache, IndexDataCacheFile

from nearcast.arrays.jit.cache_folder import KernelLocator
from nearcast.arrays.jit.inner_form import rebuild

_BYTES = 4  # of a checksum


class DamagedFile(Exception):
    """A file of the cache does not match its checksum."""


class KernelCache(FunctionCache):
    """The compiled forms of one kernel, by signature.

    Attributes:
        inner: whether the form without an entry from Python is wanted (see `Kernel.compile`).
    """

    class _impl_class(CompileResultCacheImpl):
        _locator_classes = (KernelLocator,)

        def rebuild(self, target_context: Any, payload: tuple[Any, ...]) -> Any:
            return rebuild(target_context, payload)

    def __init__(self, function: Callable[..., Any]) -> None:
        chosen_by_user = config.CACHE_LOCATOR_CLASSES  # for the user's own functions; Numba reads it here
        config.CACHE_LOCATOR_CLASSES = ""
        try:
            super().__init__(function)
        finally:
            config.CACHE_LOCATOR_CLASSES = chosen_by_user
        self.inner = False
        stamp = self._impl.locator.get_source_stamp()
        self._cache_file = _CheckedFiles(self._cache_path, self._impl.filename_base, stamp)

    def load_overload(self, signature: Any, target_context: Any) -> Any:
        """The compiled form, or None."""
        try:
            return super().load_overload(signature, target_context)
        except Exception as error:  # unpickling and LLVM raise errors of any kind
            self._discard(error)
            return None

    def _index_key(self, signature: Any, codegen: Any) -> Any:
        return (*super()._index_key(signature, codegen), self.inner)

    def _discard(self, error: Exception) -> None:
        """Delete the files of this kernel."""
        for file in Path(self._cache_path).glob(f"{self._impl.filename_base}.*"):
            with suppress(OSError):  # another process was quicker, or the folder belongs to another user
                file.unlink()
        message = f"the cached kernel {self._impl.filename_base} is damaged and is compiled again ({error})"
        logging.getLogger("nearcast").warning(message)


class _CheckedFiles(IndexDataCacheFile):
    """Numba's index file and data files, with a checksum at their end. Unpickling ignores what follows a pickle."""

    def _dump(self, value: Any) -> bytes:
        data: bytes = super()._dump(value)
        return data + zlib.crc32(data).to_bytes(_BYTES, sys.byteorder)

    def _load_index(self) -> dict[Any, str]:
        try:
            with open(self._index_path, "rb") as file:
                pickle.load(file)  # the version
                _check(file.read(), self._index_path)
        except FileNotFoundError:
            return {}
        loaded: dict[Any, str] = super()._load_index()
        return loaded

    def _load_data(self, name: str) -> Any:
        path = os.path.join(self._cache_path, name)
        with open(path, "rb") as file:
            data = file.read()
        _check(data, path)
        return pickle.loads(data)


def _check(data: bytes, path: str) -> None:
    if zlib.crc32(data[:-_BYTES]).to_bytes(_BYTES, sys.byteorder) != data[-_BYTES:]:
        raise DamagedFile(f"checksum of {path}")
