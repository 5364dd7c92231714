"""What went wrong in Spark, in one line: its own texts are a Java stack round a Python traceback."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeVar

import pyarrow as pa

from nearcast.errors import NearcastError

_OURS = re.compile(r"^\s*(?:pyspark\.\S+: )?nearcast\.errors\.\w+: (.+)")
_PYTHON = re.compile(r"^((?:\w+\.)*\w*(?:Error|Exception|Input|Interrupt)): (.+)")
_JAVA = re.compile(r"^Caused by: (?:[\w$]+\.)*([\w$]+): (.+)")
_SLOW_START = re.compile("Python worker (failed )?to connect back")
_STARTS = 3
_EMPTY = ("An error occurred while calling", "Traceback (most recent call last)", "JVM stacktrace")

T = TypeVar("T")


@contextmanager
def plain_failures() -> Iterator[None]:
    """Failures of Spark, of Java and of the bridge between them become a NearcastError of one line; so do files that
    Arrow cannot read.
    """
    try:
        yield
    except NearcastError:
        raise
    except pa.ArrowException as error:
        raise NearcastError(f"a file cannot be read: {error}") from error
    except Exception as error:
        if not is_spark_error(error):
            raise
        raise NearcastError(failure_reason(error)) from error


def is_spark_error(error: BaseException) -> bool:
    return any(kind.__module__.partition(".")[0] in ("pyspark", "py4j") for kind in type(error).__mro__)


def failure_reason(error: BaseException) -> str:
    """The reason that our own code gave in a worker; else the innermost that a worker or Java gave."""
    lines = [line.strip() for line in str(error).splitlines()]
    ours = [found[1] for line in lines if (found := _OURS.match(line))]
    if ours:
        return ours[-1]
    python = [f"{found[1].rpartition('.')[2]}: {found[2]}" for line in lines if (found := _PYTHON.match(line))]
    if python and any(line.startswith("Traceback") for line in lines):
        return f"a worker of Spark failed: {python[-1]}"
    java = [f"{found[1]}: {found[2]}" for line in lines if (found := _JAVA.match(line))]
    if java:
        return f"Spark failed: {java[-1]}"
    first = next((line.lstrip(": ") for line in lines if line and not line.startswith(_EMPTY)), type(error).__name__)
    return f"Spark failed: {first}"


def retry_slow_start(work: Callable[[], T]) -> T:
    """What `work` returns; it is begun again where a Python worker was too slow to start. The one that asks a broker
    for its offsets is no fork of the daemon's, and Spark gives it ten seconds, whatever the machine has to do.
    """
    for _ in range(_STARTS - 1):
        try:
            return work()
        except Exception as error:
            if not _SLOW_START.search(str(error)):
                raise
    return work()
