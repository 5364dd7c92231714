"""Starts Java with its standard error in a file: if Java fails, the reason is read from there instead of shown raw."""

from __future__ import annotations

import os
import re
import tempfile
from collections.abc import Mapping

from nearcast.errors import MissingPart

_REASON = re.compile(r"^(?:Exception in thread \S+ (?:[\w$]+\.)*[\w$]+: |Error: )(.+)")


def start_java(settings: Mapping[str, str]) -> None:
    """Start the Java process that PySpark will use, unless there is one. With NEARCAST_SPARK_LOG, show its output."""
    from pyspark import SparkConf, SparkContext
    from pyspark.java_gateway import launch_gateway

    if SparkContext._gateway is not None or "NEARCAST_SPARK_LOG" in os.environ:
        return
    conf = SparkConf(loadDefaults=False)
    for name, value in settings.items():
        conf.set(name, value)
    with tempfile.TemporaryFile() as stderr:  # Java keeps the file open when it is closed here
        try:
            gateway = launch_gateway(conf, {"stderr": stderr})
        except Exception as error:
            stderr.seek(0)
            raise MissingPart(_reason(stderr.read().decode(errors="replace")) or str(error)) from error
    SparkContext._ensure_initialized(gateway=gateway)


def _reason(stderr: str) -> str | None:
    lines = [line.strip() for line in stderr.splitlines()]
    known = [found[1] for line in lines if (found := _REASON.match(line))]
    return known[0] if known else next((line for line in lines if line and not line.startswith("WARNING")), None)
