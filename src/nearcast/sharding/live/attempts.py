"""Finds the file that kills the workers that read it.

Tasks of a repeated batch mark each file while they read it and match its messages. A mark that stays shows that its
worker died there. Such a batch is one task, so that no other file is read when a worker dies. A file with too many
marks is set aside: it goes to the rejects, and the batch goes on without it.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple


class Attempts(NamedTuple):
    """The marks of one batch. Small: it travels to workers with each task."""

    folder: str
    most: int  # deaths of workers after which a file is set aside

    def are_over(self, path: str) -> bool:
        """Whether a file must not be read again."""
        mark = _mark(path)
        return (
            os.path.isdir(self.folder) and sum(name.startswith(mark) for name in os.listdir(self.folder)) >= self.most
        )

    @contextmanager
    def mark(self, path: str) -> Iterator[None]:
        """Mark the file within the block. A mark stays only if the process dies."""
        os.makedirs(self.folder, exist_ok=True)
        file = os.path.join(self.folder, f"{_mark(path)}-{uuid.uuid4().hex}")
        with open(file, "w", encoding="utf-8") as out:
            out.write(path)
        try:
            yield
        finally:
            os.unlink(file)

    def n_marks(self) -> int:
        return len(os.listdir(self.folder)) if os.path.isdir(self.folder) else 0

    def forget(self) -> None:
        shutil.rmtree(self.folder, ignore_errors=True)


def _mark(path: str) -> str:
    return hashlib.sha256(path.encode()).hexdigest()[:32]
