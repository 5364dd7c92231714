"""A server of the S3 protocol on 127.0.0.1, in a process of its own: moto's."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple

import pyarrow.fs

_START_SECONDS = 60.0
CREDENTIALS = {"AWS_ACCESS_KEY_ID": "key", "AWS_SECRET_ACCESS_KEY": "secret", "AWS_EC2_METADATA_DISABLED": "true"}


class S3Server(NamedTuple):
    """A running server."""

    port: int

    @property
    def endpoint(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def environment(self) -> dict[str, str]:
        """What a process needs to reach the server by plain s3:// URLs."""
        return {**CREDENTIALS, "AWS_ENDPOINT_URL": self.endpoint, "AWS_REGION": "us-east-1"}

    def whole_url(self, url: str) -> str:
        """The URL with all that a process with another environment needs, such as a worker of Spark."""
        query = f"endpoint_override=http://127.0.0.1:{self.port}&region=us-east-1"
        return f"{url.replace('://', '://key:secret@')}?{query}"

    def filesystem(self) -> pyarrow.fs.S3FileSystem:
        endpoint = f"127.0.0.1:{self.port}"
        return pyarrow.fs.S3FileSystem(
            access_key="key",
            secret_key="secret",
            region="us-east-1",
            scheme="http",
            endpoint_override=endpoint,
            allow_bucket_creation=True,
        )

    def new_bucket(self) -> str:
        """A URL of a new bucket with all that is needed to reach it, but credentials."""
        name = f"bucket-{uuid.uuid4().hex[:12]}"
        self.filesystem().create_dir(name)
        return f"s3://{name}"


@contextmanager
def s3_server() -> Iterator[S3Server]:
    """A server that ends with the block."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [sys.executable, "-W", "ignore", "-m", "moto.server", "-H", "127.0.0.1", "-p", str(port)]
    environment = {key: value for key, value in os.environ.items() if not key.startswith("AWS_ENDPOINT")}
    process = subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        _wait_for(port, process)
        yield S3Server(port)
    finally:
        process.kill()
        process.wait()


def _wait_for(port: int, process: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + _START_SECONDS
    while time.monotonic() < deadline:
        assert process.poll() is None, "moto's server ended at once"
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
            return
        except OSError:
            time.sleep(0.1)
    raise TimeoutError("moto's server does not answer")
