"""Starting Java so that what it writes to standard error is kept, not shown: its first line tells why it failed."""

from __future__ import annotations

import os
import re
import tempfile
from collections.abc import Mapping

from nearcast.errors import MissingPart

_REASON = re.compile(r"^(?:Exception in thread \S+ (?:[\w$]+\.)*[\w$]+: |Error: )(.+)")


def start_java(settings: Mapping[str, str]) -> None:
    """Start the Java process that PySpark will find, unless there is one. NEARCAST_SPARK_LOG shows all that it says."""
    from pyspark import SparkConf, SparkContext
    from pyspark.java_gateway import launch_gateway

    if SparkContext._gateway is not None or "NEARCAST_SPARK_LOG" in os.environ:
        return
    conf = SparkConf(loadDefaults=False)
    for name, value in settings.items():
        conf.set(name, value)
    with tempfile.TemporaryFile() as said:  # the open file goes on in Java when it is closed here
        try:
            gateway = launch_gateway(conf, {"stderr": said})
        except Exception as error:
            said.seek(0)
            raise MissingPart(_reason(said.read().decode(errors="replace")) or str(error)) from error
    SparkContext._ensure_initialized(gateway=gateway)


def _reason(said: str) -> str | None:
    lines = [line.strip() for line in said.splitlines()]
    known = [found[1] for line in lines if (found := _REASON.match(line))]
    return known[0] if known else next((line for line in lines if line and not line.startswith("WARNING")), None)
