"""On a real standalone master with two workers, which get the package from the driver."""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from nearcast.spark.runtime.java import find_java

pytestmark = pytest.mark.slow


def pyspark_home() -> str:
    return str(Path(pytest.importorskip("pyspark").__file__).parent)


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@pytest.fixture
def master(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """The address of a master with two workers of one core, and a user's cache that is empty."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.delenv("NUMBA_CACHE_DIR", raising=False)
    home = Path(pyspark_home())
    environment = os.environ | {"SPARK_HOME": str(home), "SPARK_LOCAL_IP": "127.0.0.1", "JAVA_HOME": str(find_java())}
    address = f"spark://127.0.0.1:{free_port()}"
    roles = [["master.Master", "--port", address.rsplit(":", 1)[1]]]
    roles += [["worker.Worker", "-c", "1", "-m", "1g", "-d", str(tmp_path / f"w{k}"), address] for k in range(2)]
    started = []
    for number, (role, *words) in enumerate(roles):
        command = [str(home / "bin" / "spark-class"), f"org.apache.spark.deploy.{role}"]
        command += ["--host", "127.0.0.1", "--webui-port", str(free_port()), *words]
        with (tmp_path / f"{number}.log").open("w") as log:
            started.append(subprocess.Popen(command, env=environment, stdout=log, stderr=log))
    yield address
    for process in started:
        process.kill()
        process.wait()


SCRIPT = str(Path(__file__).with_name("standalone_run.py"))


def run_script(*command: str, **variables: str) -> dict[str, Any]:
    environment = os.environ | {"PYSPARK_PYTHON": sys.executable, **variables}
    run = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
    report: dict[str, Any] = json.loads(run.stdout.splitlines()[-1])
    return report


def kernels(folder: Path) -> set[str]:
    """The compiled kernels below a folder."""
    return {file.name for file in folder.rglob("*.nbc")}


def test_no_executor_compiles_when_the_kernel_cache_is_shipped(master: str, tmp_path: Path) -> None:
    """As docs/how-to/run-on-a-cluster.md says: warm a cache, pack it, and submit it with the job."""
    cache = tmp_path / "cache/nearcast/kernels"
    run_script(sys.executable, SCRIPT, master, str(tmp_path))  # compiles what the job needs
    archive = shutil.make_archive(str(tmp_path / "kernels"), "gztar", cache)
    warm = kernels(cache)
    submit = [str(Path(pyspark_home()) / "bin/spark-submit"), "--master", master]
    submit += ["--archives", f"{archive}#kernels", "--conf", "spark.executorEnv.NUMBA_CACHE_DIR=./kernels"]
    report = run_script(*submit, SCRIPT, master, str(tmp_path), SPARK_HOME=pyspark_home())
    assert report["replicated"][0] and report["sharded"][0]
    shipped = [folder for worker in (tmp_path / "w0", tmp_path / "w1") for folder in worker.glob("*/*/kernels")]
    assert shipped and warm, "the executors had the cache"
    assert all(kernels(folder) == warm for folder in shipped), "an executor compiled a kernel"
    assert kernels(cache) == warm, "so did the driver"


def test_the_package_is_shipped_and_spark_equals_the_library(master: str, tmp_path: Path) -> None:
    report = run_script(sys.executable, SCRIPT, master, str(tmp_path))
    assert all(Path(file).is_relative_to(tmp_path) for file in report["packages"]), "in the folders of the run"
    assert any((tmp_path / "cache" / "nearcast" / "kernels").rglob("*.nbc")), "and kernels where they stay"
    assert report["replicated"][0] and report["sharded"][0] and report["sharded"][1] > 100
