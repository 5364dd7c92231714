"""Spark's failures in one line: its own texts are Java stacks around Python tracebacks."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeVar

import pyarrow as pa

from nearcast.errors import DataLoss, NearcastError

_OURS = re.compile(r"^\s*(?:pyspark\.\S+: )?nearcast\.errors\.\w+: (.+)")
_OUR_LOSS = re.compile(r"^\s*(?:pyspark\.\S+: )?nearcast\.errors\.DataLoss: ", re.MULTILINE)
_PYTHON = re.compile(r"^((?:\w+\.)*\w*(?:Error|Exception|Input|Interrupt)): (.+)")
_JAVA = re.compile(r"^Caused by: (?:[\w$]+\.)*([\w$]+): (.+)")
_SLOW_START = re.compile("Python worker (failed )?to connect back")
ATTEMPTS = 3
_NO_REASON = ("An error occurred while calling", "Traceback (most recent call last)", "JVM stacktrace")

T = TypeVar("T")


@contextmanager
def plain_failures() -> Iterator[None]:
    """Turn failures of Spark, of Java and of Py4J into a NearcastError of one line, and unreadable files too."""
    try:
        yield
    except NearcastError:
        raise
    except pa.ArrowException as error:
        raise NearcastError(f"a file cannot be read: {error}") from error
    except Exception as error:
        if not is_spark_error(error):
            raise
        kind = DataLoss if _OUR_LOSS.search(str(error)) else NearcastError
        raise kind(failure_reason(error)) from error


def is_spark_error(error: BaseException) -> bool:
    return any(kind.__module__.partition(".")[0] in ("pyspark", "py4j") for kind in type(error).__mro__)


def failure_reason(error: BaseException) -> str:
    """The reason that our code gave in a worker, or else the innermost reason of a worker or of Java."""
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
    first = next(
        (line.lstrip(": ") for line in lines if line and not line.startswith(_NO_REASON)), type(error).__name__
    )
    return f"Spark failed: {first}"


def retry(work: Callable[[], T], is_worth: Callable[[Exception], bool]) -> T:
    """The result of `work`, which is repeated after errors that are worth it, up to ATTEMPTS times in all."""
    for _ in range(ATTEMPTS - 1):
        try:
            return work()
        except Exception as error:
            if not is_worth(error):
                raise
    return work()


def retry_slow_start(work: Callable[[], T]) -> T:
    """The result of `work`, which is repeated if a Python worker was too slow to start. The worker that reads the
    offsets of a broker is not forked from the daemon, and Spark gives it ten seconds even on a busy machine.
    """
    return retry(work, is_slow_start)


def is_slow_start(error: Exception) -> bool:
    return _SLOW_START.search(str(error)) is not None
