"""Twenty thousand mixed updates: a short version of tests/soak."""

from __future__ import annotations

from pathlib import Path

import pytest

from changing_world import soak
from nearcast.arrays.jit import JIT_DISABLED

# Past the 1,024 rows from which removals compact the store.
UPDATES, N_IDS = (2_000, 2_500) if JIT_DISABLED else (20_000, 5_000)


@pytest.mark.parametrize("method", ["pyramid", "pyramid crowded=8 young=500", "auto"])
def test_answers_stay_exact_and_memory_is_reused(method: str, tmp_path: Path) -> None:
    soak(method, UPDATES, N_IDS, tmp_path, vocabulary=N_IDS // 10)
