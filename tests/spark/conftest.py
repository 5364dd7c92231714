"""One Spark session for all tests that ask for it: a session takes seconds to start, and a process has one."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

# PySpark's own: what it calls of pandas and of the standard library is not ours to mend.
_PYSPARK_WARNS = (
    "ignore::DeprecationWarning:pyspark",
    "ignore::FutureWarning:pyspark",
    "ignore::ResourceWarning",  # its sockets are closed by the collector
    "ignore::pytest.PytestUnraisableExceptionWarning",
)


@pytest.hookimpl(tryfirst=True)  # before xdist reads the groups
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """With `--dist loadgroup`: all tests with a session go to one process, the others by file."""
    for item in items:
        uses_spark = "spark" in getattr(item, "fixturenames", ())
        if item.get_closest_marker("xdist_group") is None:
            item.add_marker(pytest.mark.xdist_group("spark" if uses_spark else item.nodeid.partition("::")[0]))
        if uses_spark:
            for warning in _PYSPARK_WARNS:
                item.add_marker(pytest.mark.filterwarnings(warning))


def _show_tests_to_workers() -> None:
    """Workers import functions of test modules by name."""
    tests = str(Path(__file__).parents[1])
    os.environ["PYTHONPATH"] = os.pathsep.join([tests, *filter(None, [os.environ.get("PYTHONPATH")])])


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """A session on two cores of this machine."""
    from nearcast.spark.runtime.session import open_session

    _show_tests_to_workers()
    os.environ.setdefault("NEARCAST_JAVA_OPTIONS", "-XX:TieredStopAtLevel=1")  # starts in half the time
    os.environ.setdefault("NEARCAST_DRIVER_MEMORY", "1g")
    os.environ["NEARCAST_CACHE_DIR"] = str(tmp_path_factory.mktemp("copies"))  # workers keep what they start with
    session = open_session("local[2]", {"spark.sql.shuffle.partitions": 4})
    yield session
    session.stop()
