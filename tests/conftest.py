"""Settings for the whole suite. HYPOTHESIS_MAX_EXAMPLES sets the budget of property tests."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from nearcast.arrays.jit import JIT_DISABLED
from nearcast.arrays.jit.mode import compile_now
from s3_server import S3Server, s3_server

compile_now()  # tests of the other modes set them in processes of their own

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # as in a shell's background jobs; processes of tests inherit it
    signal.signal(signal.SIGINT, signal.default_int_handler)

# No deadline: the first example of a property may compile a kernel.
settings.register_profile(
    "nearcast",
    max_examples=int(os.environ.get("HYPOTHESIS_MAX_EXAMPLES", "20" if JIT_DISABLED else "60")),
    deadline=None,
    derandomize="CI" in os.environ,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("nearcast")

LARGE_DATA = Path(os.environ.get("NEARCAST_DATA", Path(__file__).resolve().parents[2] / "shared" / "data"))


@pytest.fixture(scope="session")
def large_data() -> Path:
    """The folder of the large real data files; tests that need it are skipped where it is absent."""
    if not LARGE_DATA.is_dir():
        pytest.skip("the large data files are not here; set NEARCAST_DATA to their folder")
    return LARGE_DATA


@pytest.fixture(scope="session")
def object_store() -> Iterator[S3Server]:
    """A server of the S3 protocol, for the whole run."""
    with s3_server() as server:
        yield server


@pytest.fixture
def bucket(object_store: S3Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """The URL of a new bucket. The environment has all that is needed to use it; local copies go to a new folder."""
    for name, value in object_store.environment.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("NEARCAST_CACHE_DIR", str(tmp_path / "copies"))
    return object_store.new_bucket()
