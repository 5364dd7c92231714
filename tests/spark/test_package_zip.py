"""A package that is shipped to a worker is whole, and finds the kernels that another copy of it compiled."""

from __future__ import annotations

import os
import subprocess
import sys
import zipfile
from pathlib import Path

from nearcast.arrays.jit import JIT_DISABLED
from nearcast.spark.runtime.session import package_as_zip

RANK_PARAMS = """
import nearcast, nearcast.ingest.match_task, numpy
from nearcast.sharding.routing.replicas import first_common
first_common(numpy.arange(3), numpy.arange(2, 5))
print(nearcast.__file__)
"""


def test_copies_in_different_places_are_whole_and_share_what_they_compile(tmp_path: Path) -> None:
    archive, name = package_as_zip()
    cache = tmp_path / "cache"
    compiled = []
    for run in ("one", "two"):
        with zipfile.ZipFile(archive) as opened:
            opened.extractall(tmp_path / run / name)
        # As an executor starts it: the path is relative to the folder of the run.
        printed = subprocess.run(
            [sys.executable, "-c", RANK_PARAMS],
            env=os.environ | {"PYTHONPATH": name, "NUMBA_CACHE_DIR": str(cache)},
            cwd=tmp_path / run,
            capture_output=True,
            text=True,
            check=True,
        )
        assert Path(printed.stdout.strip()) == tmp_path / run / name / "nearcast" / "__init__.py"
        compiled.append({file.name: file.stat().st_mtime_ns for file in cache.rglob("*.nbc")})
    assert compiled[0] == compiled[1] and (JIT_DISABLED or compiled[0])


def test_the_name_depends_on_the_content() -> None:
    assert package_as_zip()[1] == package_as_zip()[1]
