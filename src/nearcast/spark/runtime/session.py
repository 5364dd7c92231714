"""The only place that starts Spark, or joins the running session."""

from __future__ import annotations

import hashlib
import os
import re
import sys
import tempfile
import zipfile
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Any

import nearcast
from nearcast.errors import MissingPart
from nearcast.ingest.pipeline.master import check_master
from nearcast.spark.runtime.java import find_java, start_java

if TYPE_CHECKING:
    from pyspark.sql import DataFrame as DataFrame
    from pyspark.sql import SparkSession as SparkSession
else:  # PySpark is optional, and slow to import: here its names are only types
    DataFrame = SparkSession = Any

LOCAL = "local[*]"


def open_session(master: str | None = None, options: dict[str, Any] | None = None) -> SparkSession:
    """The running session, or a new one on `master`. `options` are Spark settings, which override ours."""
    running = running_session()
    if running is not None:
        return running
    master = master or os.environ.get("NEARCAST_MASTER", LOCAL)
    check_master(master)
    _prepare_environment(master)
    package = None if is_local(master) else package_as_zip()
    settings = {"spark.master": master, "spark.app.name": "nearcast", **_settings(master)}
    if package is not None:  # an executor unpacks it in its working folder before it starts the daemon
        settings["spark.executorEnv.PYTHONPATH"] = package[1]
    settings |= {name: str(value) for name, value in (options or {}).items()}
    try:
        start_java(settings)
        session: SparkSession = _spark_session_class().builder.config(map=settings).getOrCreate()
    except Exception as error:
        raise MissingPart(f"Spark does not start on '{master}': {_first_line(error)}") from error
    if package is not None:
        session.sparkContext.addArchive("#".join(map(str, package)))
    return session


def running_session() -> SparkSession | None:
    """The session of this process, or None. Only the code that started a session may stop it."""
    return _spark_session_class().getActiveSession()


def is_local(master: str) -> bool:
    """Whether all workers run on this machine with this Python, so that no package must be sent."""
    return master.startswith(("local[", "local-cluster[")) or master == "local"


def cores_of(session: SparkSession) -> int:
    """The number of tasks that run at once. Spark Connect does not tell: then as many as this host has cores."""
    try:
        return max(1, int(session.sparkContext.defaultParallelism))
    except AttributeError:
        return os.cpu_count() or 1


def spark_path(path: str | os.PathLike[str]) -> str:
    """A local path as Spark takes it: on the local file system whatever the default one is, with escaped patterns."""
    return "file://" + re.sub(r"([\[\]{}*?\\])", r"\\\1", os.path.abspath(path))


def _spark_session_class() -> Any:
    try:
        from pyspark.sql import SparkSession
    except ImportError:
        raise MissingPart("the pipeline needs PySpark: pip install 'nearcast[spark]'") from None
    return SparkSession


def _prepare_environment(master: str) -> None:
    os.environ["JAVA_HOME"] = str(find_java())
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    os.environ.setdefault("PYSPARK_DRIVER_PYTHON", sys.executable)
    if is_local(master):
        os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")  # else Spark warns on machines whose name is not known


def _settings(master: str) -> dict[str, str]:
    """Our settings: Arrow, times in UTC, the daemon for workers, and little output."""
    log = resources.files("nearcast.spark.runtime") / "log4j2.properties"
    java = f"-Dlog4j2.configurationFile=file:{log} {os.environ.get('NEARCAST_JAVA_OPTIONS', '')}".strip()
    return {
        "spark.driver.extraJavaOptions": java,
        "spark.executor.extraJavaOptions": java if is_local(master) else "",
        "spark.driver.memory": os.environ.get("NEARCAST_DRIVER_MEMORY", "2g"),
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.shuffle.partitions": str(2 * (os.cpu_count() or 1)),
        "spark.sql.execution.arrow.pyspark.enabled": "true",
        "spark.sql.execution.arrow.maxRecordsPerBatch": "65536",  # one kernel call per batch
        "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
        "spark.python.worker.reuse": "true",
        "spark.python.daemon.module": "nearcast.spark.runtime.daemon",
        "spark.python.unix.domain.socket.enabled": "true",
    }


def _first_line(error: Exception) -> str:
    return next((line.strip() for line in str(error).splitlines() if line.strip()), type(error).__name__)


def package_as_zip() -> tuple[Path, str]:
    """(this package as a ZIP file, the name of the folder in which an executor unpacks it).

    Compiled kernels are cached by the content of the sources, not by their paths (see arrays/jit/cache_folder.py), so a
    later run on the same host finds them.
    """
    root = Path(nearcast.__file__).parent
    target = Path(tempfile.mkdtemp(prefix="nearcast-")) / "nearcast.zip"
    digest = hashlib.sha256()
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as archive:
        for file in sorted(root.rglob("*")):
            if file.is_file() and "__pycache__" not in file.parts:
                name, content = file.relative_to(root.parent), file.read_bytes()
                digest.update(f"{name} {len(content)}\n".encode() + content)
                archive.writestr(str(name), content)
    return target, f"nearcast-package-{digest.hexdigest()[:16]}"
