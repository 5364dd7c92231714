"""A file or a folder on any file system: a local path, or a URL of an object store or of HDFS.

Object stores rename nothing and have no folders. So nothing here renames: a file is written whole under its final name,
and a set of files becomes visible when its manifest is written, last. On local disks a file is written under a
temporary name, synced and renamed.
"""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import unquote, urlsplit

from nearcast.arguments import a_path
from nearcast.arrays.bundle import write_whole
from nearcast.errors import StorageError

if TYPE_CHECKING:
    from pyarrow.fs import FileSystem

_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*)://|(file|s3[an]?|gc?s|hdfs|abfss?):/")
_ALIASES = {"s3a": "s3", "s3n": "s3", "gcs": "gs", "abfss": "abfs"}
SCHEMES = ("file", "s3", "s3a", "gs", "hdfs", "abfs")


class Entry(NamedTuple):
    """A file of a listing."""

    location: Location
    size: int
    time_ns: int  # of the last change


class Location(NamedTuple):
    """A place on a file system. Small and picklable: it travels to workers."""

    url: str  # a local path, or a URL whose scheme Arrow knows
    path: str  # on its file system

    @property
    def is_local(self) -> bool:
        return self.url == self.path

    @property
    def name(self) -> str:
        return self.path.rstrip("/").rpartition("/")[2]

    @property
    def shown(self) -> str:
        """The URL without a password."""
        return re.sub(r"(://[^:/@]*):[^@/]*@", r"\1:...@", self.url)

    @property
    def filesystem(self) -> FileSystem:
        """Arrow's file system of this place."""
        if self.is_local:
            from pyarrow.fs import LocalFileSystem

            return LocalFileSystem()
        with self.faults("opened"):
            return _file_system(_root_of(self.url))

    def child(self, *names: str) -> Location:
        if self.is_local:
            path = os.path.join(self.path, *names)
            return Location(path, path)
        place, mark, query = self.url.partition("?")
        below = "/".join(names)
        return Location(f"{place.rstrip('/')}/{below}{mark}{query}", f"{self.path.rstrip('/')}/{below}")

    def sibling(self, name: str) -> Location:
        """The place of this name beside this one."""
        if self.is_local:
            path = os.path.join(os.path.dirname(self.path), name)
            return Location(path, path)
        place, mark, query = self.url.partition("?")
        before, path = place.rstrip("/").rpartition("/")[0], self.path.rstrip("/").rpartition("/")[0]
        return Location(f"{before}/{name}{mark}{query}", f"{path}/{name}")

    # -- reading

    def read(self, start: int = 0, size: int | None = None) -> bytes:
        """The content, or `size` bytes from `start` on. Raises FileNotFoundError."""
        with self.faults("read"), self.filesystem.open_input_file(self.path) as file:
            size = file.size() - start if size is None else size
            return bytes(file.read_at(size, start))

    def download(self, target: Path, digest: Any = None) -> None:
        """Copy this file to local disk, synced; `digest.update` gets the bytes on their way."""
        with self.faults("read"), self.filesystem.open_input_stream(self.path) as source, open(target, "wb") as out:
            while piece := source.read(_CHUNK):
                out.write(piece)
                if digest is not None:
                    digest.update(piece)
            out.flush()
            os.fsync(out.fileno())

    def is_file(self) -> bool:
        return bool(self._info().is_file)

    def is_folder(self) -> bool:
        """Whether there is a folder. In an object store, something lies below."""
        from pyarrow.fs import FileType

        return bool(self._info().type == FileType.Directory)

    def names(self) -> list[str]:
        """The names of the files and folders directly in this folder; none if it does not exist."""
        return sorted(info.base_name for info in self._listing(recursive=False))

    def files(self) -> list[Entry]:
        """All files below this folder, sorted."""
        found = sorted((info for info in self._listing(recursive=True) if info.is_file), key=lambda info: info.path)
        first = len(self.path.rstrip("/")) + 1
        return [Entry(self.child(info.path[first:]), info.size, info.mtime_ns or 0) for info in found]

    def entry(self) -> Entry | None:
        """This file as an entry, None if it is no file."""
        info = self._info()
        return Entry(self, info.size, info.mtime_ns or 0) if info.is_file else None

    def _info(self) -> Any:
        with self.faults("read"):
            return self.filesystem.get_file_info(self.path.rstrip("/"))

    def _listing(self, recursive: bool) -> list[Any]:
        from pyarrow.fs import FileSelector

        with self.faults("listed"):
            selector = FileSelector(self.path.rstrip("/"), allow_not_found=True, recursive=recursive)
            return list(self.filesystem.get_file_info(selector))

    # -- writing

    def write(self, content: bytes) -> None:
        """Write the file whole: a reader sees the old content or the new one."""
        with self.faults("written"):
            if self.is_local:
                Path(self.path).parent.mkdir(parents=True, exist_ok=True)
                write_whole(Path(self.path), content)
                return
            self._make_parent()
            with self.filesystem.open_output_stream(self.path) as out:
                out.write(content)

    @contextmanager
    def writing(self) -> Iterator[Any]:
        """A stream into a file that no reader looks for yet: only a manifest written later names it."""
        with self.faults("written"):
            self._make_parent()
            with self.filesystem.open_output_stream(self.path) as out:
                yield out

    def upload(self, source: Path) -> None:
        """Copy a local file here."""
        with open(source, "rb") as file, self.writing() as out:
            shutil.copyfileobj(file, out, _CHUNK)

    def remove(self) -> None:
        """Remove a file, or a folder with all that is in it. Nothing there is no error."""
        with self.faults("removed"):
            info = self._info()
            if info.is_file:
                self.filesystem.delete_file(self.path)
            elif self.is_folder():
                self.filesystem.delete_dir(self.path)

    def _make_parent(self) -> None:
        """Make the folder around a file, where the file system has folders."""
        if not self.url.startswith(("s3:", "gs:")):
            self.filesystem.create_dir(self.path.rpartition("/")[0] or "/", recursive=True)

    @contextmanager
    def faults(self, done: str) -> Iterator[None]:
        """Turn the errors of a store into one line that names the URL and the remedy."""
        import pyarrow as pa

        try:
            yield
        except (FileNotFoundError, StorageError):
            raise
        except (OSError, pa.ArrowException) as error:
            is_content = isinstance(error, pa.ArrowInvalid) and done != "opened"  # of a file that was fetched
            if self.is_local or is_content:
                raise
            reason = " ".join(str(error).split())
            remedy = _REMEDIES.get(self.url.partition(":")[0], "check that the store can be reached from here")
            raise StorageError(f"{self.shown} cannot be {done}: {reason[:400]}; {remedy}") from None


def is_url(path: str | os.PathLike[str]) -> bool:
    """Whether this is a URL and no local path."""
    return _SCHEME.match(os.fspath(path)) is not None


def locate(path: str | os.PathLike[str] | Location) -> Location:
    """The location of a local path or a URL."""
    if isinstance(path, Location):
        return path
    text = a_path(path)
    found = _SCHEME.match(text)
    if found is None:
        return Location(*[os.path.abspath(text)] * 2)
    if found[1] is None and found[2] != "file":  # pathlib makes s3:/bucket of s3://bucket
        text = text.replace(":/", "://", 1)
    scheme = (found[1] or found[2]).lower()
    if scheme not in (*SCHEMES, *_ALIASES):
        known = ", ".join(f"{each}://" for each in SCHEMES)
        raise StorageError(f"{text} cannot be opened: no file system '{scheme}'; give a local path or {known}")
    parts = urlsplit(text, allow_fragments=False)
    if scheme == "file":
        if parts.netloc not in ("", "localhost"):
            raise StorageError(f"{text} names the host {parts.netloc}; write file:/// and an absolute path")
        return Location(*[os.path.abspath(unquote(parts.path))] * 2)
    url = f"{_ALIASES.get(scheme, scheme)}{text[len(scheme) :]}"
    if not parts.netloc.rpartition("@")[2]:
        raise StorageError(f"{text} names no bucket or host; write {scheme}://BUCKET/PATH")
    return Location(url, _path_of(url))


def _path_of(url: str) -> str:
    """The path as Arrow's file system of this URL takes it."""
    parts = urlsplit(url, allow_fragments=False)
    path = parts.path.strip("/")
    if parts.scheme == "s3" or parts.scheme == "gs":
        return f"{parts.netloc.rpartition('@')[2]}/{path}".rstrip("/")
    if parts.scheme == "abfs":
        container, at, _ = parts.netloc.rpartition("@")
        return f"{container.partition(':')[0]}/{path}".rstrip("/") if at else f"{parts.netloc}/{path}".rstrip("/")
    return f"/{path}"


def _root_of(url: str) -> str:
    """The URL without its path: places with one root share one connection."""
    parts = urlsplit(url, allow_fragments=False)
    return parts._replace(path="/").geturl()


@lru_cache(32)
def _file_system(root: str) -> FileSystem:
    from nearcast.storage.stores import open_store

    return open_store(root)


_CHUNK = 1 << 22
_REMEDIES = {
    "s3": "check bucket, region= or AWS_REGION, endpoint_override= or AWS_ENDPOINT_URL, and the AWS credentials",
    "gs": "check the bucket, and GOOGLE_APPLICATION_CREDENTIALS",
    "hdfs": "check host and port, and JAVA_HOME, HADOOP_HOME and CLASSPATH=$(hadoop classpath --glob)",
    "abfs": "check container and account, and the Azure credentials",
}
