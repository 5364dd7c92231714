"""Opens Arrow's file systems, with limits on the time that an unreachable store may take."""

from __future__ import annotations

import os
from datetime import timedelta
from typing import Any
from urllib.parse import SplitResult, parse_qsl, unquote, urlsplit

import pyarrow.fs
from pyarrow.fs import FileSystem

from nearcast.errors import StorageError

TIMEOUT = "NEARCAST_STORE_TIMEOUT"
"""Seconds without an answer after which a request is repeated. The third failure is an error."""

_ATTEMPTS = 3
_ENDPOINTS = ("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL")  # as AWS's own programs read them; Arrow does not
_S3_OPTIONS = ("endpoint_override", "region", "scheme", "anonymous", "role_arn", "allow_bucket_creation")


def open_store(root: str) -> FileSystem:
    """The file system of a URL. Nothing is sent yet."""
    parts = urlsplit(root, allow_fragments=False)
    if parts.scheme == "s3":
        return _open_s3(parts)
    if parts.scheme == "gs":
        return _open_gs(parts)
    return FileSystem.from_uri(root)[0]


def _seconds() -> float:
    text = os.environ.get(TIMEOUT, "20")
    try:
        seconds = float(text)
    except ValueError:
        seconds = 0.0
    if not seconds > 0:
        raise StorageError(f"{TIMEOUT} is a number of seconds, not '{text}'")
    return seconds


def _open_s3(parts: SplitResult) -> FileSystem:
    options = _options_of(parts, _S3_OPTIONS)
    if parts.username:
        options |= {"access_key": unquote(parts.username), "secret_key": unquote(parts.password or "")}
    endpoint = next((found for name in _ENDPOINTS if (found := os.environ.get(name))), None)
    endpoint = options.get("endpoint_override", endpoint)
    if endpoint:
        options |= _endpoint(endpoint, options.get("scheme"))
    for name in ("anonymous", "allow_bucket_creation"):
        if name in options:
            options[name] = options[name].lower() in ("true", "1")
    retries = pyarrow.fs.AwsStandardS3RetryStrategy(max_attempts=_ATTEMPTS)
    seconds = _seconds()
    return pyarrow.fs.S3FileSystem(
        connect_timeout=min(5.0, seconds),
        request_timeout=seconds,
        retry_strategy=retries,
        allow_delayed_open=True,  # a small file is one request, not three
        **options,
    )


def _endpoint(endpoint: str, scheme: str | None) -> dict[str, str]:
    """An endpoint with its scheme apart, as in http://host:port."""
    before, mark, host = endpoint.rpartition("://")
    chosen = scheme or (before if mark else "")
    return {"endpoint_override": host, **({"scheme": chosen} if chosen else {})}


def _open_gs(parts: SplitResult) -> FileSystem:
    options = _options_of(parts, ("endpoint_override", "scheme", "anonymous", "project_id"))
    if "anonymous" in options:
        options["anonymous"] = options["anonymous"].lower() in ("true", "1")
    limit = timedelta(seconds=_ATTEMPTS * _seconds())
    return pyarrow.fs.GcsFileSystem(retry_time_limit=limit, **options)


def _options_of(parts: SplitResult, known: tuple[str, ...]) -> dict[str, Any]:
    """The options in the query of a URL."""
    options: dict[str, Any] = dict(parse_qsl(parts.query, keep_blank_values=True))
    for name in options:
        if name not in known:
            raise StorageError(f"{parts.scheme}:// URLs have no option '{name}'; there are {', '.join(known)}")
    return options
